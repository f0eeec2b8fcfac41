// The protobuf wire format (protobuf.dev, "Encoding"): varints of at most 10 bytes, fixed numbers
// and length-delimited fields. Groups are no part of the ONNX schema and are refused.
#include "import/onnx/wire.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "base/limits.hpp"
#include "base/utf8.hpp"

namespace cyb::onnx {
namespace {

constexpr unsigned kMaxVarintBytes = 10;

Error wrong_type(const WireField& field) {
  return onnx_error(
      fmt::format("field {} has wire type {}", field.number, static_cast<unsigned>(field.type)));
}

Error cut(std::uint64_t position) {
  return onnx_error(fmt::format("truncated at byte {} of a message", position));
}

/// Numbers of a packed field of N-byte items.
template <class T>
Result<void> append_fixed(std::span<const std::byte> bytes, std::vector<T>& out) {
  if (bytes.size() % sizeof(T) != 0)
    return fail(onnx_error(fmt::format("a packed field of {} bytes", bytes.size())));
  if (bytes.empty()) return {};
  const std::size_t old = out.size();
  out.resize(old + bytes.size() / sizeof(T));
  std::memcpy(out.data() + old, bytes.data(), bytes.size());
  return {};
}

}  // namespace

Error onnx_error(std::string text) {
  return Error(ErrorKind::kFormat, "ONNX", std::move(text));
}

Result<std::uint64_t> WireReader::varint() {
  std::uint64_t out = 0;
  for (unsigned i = 0; i < kMaxVarintBytes; ++i) {
    const auto byte = in_.read<std::uint8_t>();
    if (!byte) return fail(cut(in_.position()));
    const std::uint64_t low = *byte & 0x7FU;
    if (i == kMaxVarintBytes - 1 && *byte > 1) break;
    out |= low << (7 * i);
    if ((*byte & 0x80U) == 0) return out;
  }
  return fail(onnx_error(fmt::format("a number above 64 bits at byte {}", in_.position())));
}

Result<WireField> WireReader::next() {
  CYB_ASSIGN(const std::uint64_t key, varint());
  const std::uint64_t number = key >> 3;
  WireField out;
  if (number == 0 || number > 0x1FFFFFFF)
    return fail(onnx_error(fmt::format("field number {} at byte {}", number, in_.position())));
  out.number = static_cast<std::uint32_t>(number);
  switch (key & 7U) {
    case 0: {
      CYB_ASSIGN(out.value, varint());
      return out;
    }
    case 1: {
      out.type = WireType::kFixed64;
      const auto value = in_.read<std::uint64_t>();
      if (!value) return fail(cut(in_.position()));
      out.value = *value;
      return out;
    }
    case 2: {
      out.type = WireType::kBytes;
      CYB_ASSIGN(const std::uint64_t size, varint());
      const auto bytes = in_.take(size);
      if (!bytes) return fail(cut(in_.position()));
      out.bytes = *bytes;
      return out;
    }
    case 5: {
      out.type = WireType::kFixed32;
      const auto value = in_.read<std::uint32_t>();
      if (!value) return fail(cut(in_.position()));
      out.value = *value;
      return out;
    }
    default:
      return fail(onnx_error(fmt::format("wire type {} at byte {}", key & 7U, in_.position())));
  }
}

Result<std::span<const std::byte>> as_bytes(const WireField& field) {
  if (field.type != WireType::kBytes) return fail(wrong_type(field));
  return field.bytes;
}

Result<std::string_view> as_text(const WireField& field) {
  CYB_ASSIGN(const std::span<const std::byte> bytes, as_bytes(field));
  if (bytes.size() > kMaxStringBytes)
    return fail(onnx_error(
        fmt::format("a string of {} bytes, the limit is {}", bytes.size(), kMaxStringBytes)));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (utf8_find_invalid(text) != std::string_view::npos)
    return fail(onnx_error(fmt::format("field {} is not valid UTF-8", field.number)));
  return text;
}

Result<std::int64_t> as_int(const WireField& field) {
  if (field.type != WireType::kVarint) return fail(wrong_type(field));
  return static_cast<std::int64_t>(field.value);
}

Result<std::int32_t> as_small(const WireField& field) {
  CYB_ASSIGN(const std::int64_t value, as_int(field));
  if (value < 0 || value > INT32_MAX)
    return fail(onnx_error(fmt::format("field {} is {}", field.number, value)));
  return static_cast<std::int32_t>(value);
}

Result<float> as_float(const WireField& field) {
  if (field.type != WireType::kFixed32) return fail(wrong_type(field));
  return std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
}

Result<void> append_ints(const WireField& field, std::vector<std::int64_t>& out) {
  if (field.type == WireType::kVarint) {
    out.push_back(static_cast<std::int64_t>(field.value));
    return {};
  }
  CYB_ASSIGN(const std::span<const std::byte> bytes, as_bytes(field));
  BoundedReader in(bytes);
  while (in.remaining() != 0) {
    std::uint64_t value = 0;
    unsigned shift = 0;
    for (bool more = true; more; shift += 7) {
      const auto byte = in.read<std::uint8_t>();
      if (!byte || shift > 63 || (shift == 63 && *byte > 1))
        return fail(onnx_error(fmt::format("field {}: a bad packed number", field.number)));
      value |= static_cast<std::uint64_t>(*byte & 0x7FU) << shift;
      more = (*byte & 0x80U) != 0;
    }
    out.push_back(static_cast<std::int64_t>(value));
  }
  return {};
}

Result<void> append_floats(const WireField& field, std::vector<float>& out) {
  if (field.type == WireType::kFixed32) {
    CYB_ASSIGN(const float value, as_float(field));
    out.push_back(value);
    return {};
  }
  CYB_ASSIGN(const std::span<const std::byte> bytes, as_bytes(field));
  return append_fixed(bytes, out);
}

Result<void> append_doubles(const WireField& field, std::vector<double>& out) {
  if (field.type == WireType::kFixed64) {
    out.push_back(std::bit_cast<double>(field.value));
    return {};
  }
  CYB_ASSIGN(const std::span<const std::byte> bytes, as_bytes(field));
  return append_fixed(bytes, out);
}

}  // namespace cyb::onnx
