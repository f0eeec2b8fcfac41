// GGUF header parsing. Layout: magic, u32 version, u64 tensors, u64 values, values, tensor infos,
// padding, tensor data (the public description of the ggml project). Version 1 had 32-bit counts
// and is refused.
#include "import/gguf/gguf_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.hpp"
#include "base/json_text.hpp"
#include "base/limits.hpp"
#include "base/reader.hpp"
#include "base/utf8.hpp"
#include "import/names.hpp"

namespace cyb::gguf {
namespace {

constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMinValueBytes = 8 + 1 + 4 + 1;  // key length, key, type, smallest value
constexpr std::uint64_t kMinTensorBytes =
    8 + 1 + 4 + 8 + 4 + 8;  // name length, name, rank, one dim, type, offset

struct TypeRow {
  ValueType type;
  std::string_view name;
  std::size_t size;
};

constexpr std::array kTypes = {
    TypeRow{ValueType::kU8, "u8", 1},         TypeRow{ValueType::kI8, "i8", 1},
    TypeRow{ValueType::kU16, "u16", 2},       TypeRow{ValueType::kI16, "i16", 2},
    TypeRow{ValueType::kU32, "u32", 4},       TypeRow{ValueType::kI32, "i32", 4},
    TypeRow{ValueType::kF32, "f32", 4},       TypeRow{ValueType::kBool, "bool", 1},
    TypeRow{ValueType::kString, "string", 0}, TypeRow{ValueType::kArray, "array", 0},
    TypeRow{ValueType::kU64, "u64", 8},       TypeRow{ValueType::kI64, "i64", 8},
    TypeRow{ValueType::kF64, "f64", 8},
};

/// ggml's names of tensor types, for messages about those that have no row in the format table.
constexpr std::array<std::string_view, 42> kGgmlTypes = {
    "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
    "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
    "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
    "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
    "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
    "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",    "NVFP4",    "Q1_0"};

std::string ggml_type_text(std::uint32_t type) {
  if (type < kGgmlTypes.size()) return std::string(kGgmlTypes[type]);
  return fmt::format("ggml type {}", type);
}

Result<ValueType> read_type(BoundedReader& in, std::string_view key) {
  CYB_ASSIGN(const std::uint32_t raw, in.read<std::uint32_t>());
  if (raw > static_cast<std::uint32_t>(ValueType::kF64)) {
    return fail(gguf_error(fmt::format("key {}: unknown value type {}", json_quote(key), raw)));
  }
  return static_cast<ValueType>(raw);
}

/// A key or tensor name: 1..kMaxKeyBytes bytes of valid UTF-8 without control characters.
Result<std::string_view> read_name(BoundedReader& in, std::string_view what) {
  CYB_ASSIGN(const std::uint64_t size, in.read<std::uint64_t>());
  if (size == 0)
    return fail(gguf_error(fmt::format("a {} is empty (byte {})", what, in.position())));
  if (size > kMaxKeyBytes) {
    return fail(gguf_error(fmt::format("a {} of {} bytes at byte {} exceeds the limit of {}", what,
                                       size, in.position(), kMaxKeyBytes)));
  }
  CYB_ASSIGN(const std::string_view text, in.take_text(size));
  if (const auto problem = name_problem(text)) {
    return fail(gguf_error(fmt::format("{} {}: {}", what, json_quote(text), *problem)));
  }
  return text;
}

Result<std::span<const std::byte>> read_string(BoundedReader& in, std::string_view key) {
  CYB_ASSIGN(const std::uint64_t size, in.read<std::uint64_t>());
  if (size > kMaxStringBytes || size > in.remaining()) {
    return fail(gguf_error(fmt::format("key {}: a string of {} bytes ({} remain, the limit is {})",
                                       json_quote(key), size, in.remaining(), kMaxStringBytes)));
  }
  return in.take(size);
}

/// The items of an array as one span; strings are walked once to find the end.
Result<void> read_array(BoundedReader& in, std::span<const std::byte> all, Value& value) {
  CYB_ASSIGN(value.item_type, read_type(in, value.key));
  CYB_ASSIGN(value.count, in.read<std::uint64_t>());
  if (value.item_type == ValueType::kArray) {
    return fail(gguf_error(
        fmt::format("key {}: arrays of arrays are not supported", json_quote(value.key))));
  }
  const std::uint64_t least =
      value.item_type == ValueType::kString ? 8 : fixed_size(value.item_type);
  if (!in.can_hold(value.count, least)) {
    return fail(gguf_error(fmt::format(
        "key {}: an array of {} items of type {} does not fit in the {} bytes that remain",
        json_quote(value.key), value.count, type_name(value.item_type), in.remaining())));
  }
  const std::uint64_t begin = in.position();
  if (value.item_type == ValueType::kString) {
    for (std::uint64_t i = 0; i < value.count; ++i) CYB_TRY(read_string(in, value.key));
  } else {
    CYB_TRY(in.take(value.count * least));
  }
  value.bytes = all.subspan(begin, in.position() - begin);
  return {};
}

Result<Value> read_value(BoundedReader& in, std::span<const std::byte> all) {
  Value value;
  CYB_ASSIGN(value.key, read_name(in, "metadata key"));
  CYB_ASSIGN(value.type, read_type(in, value.key));
  value.item_type = value.type;
  if (value.type == ValueType::kArray) {
    CYB_TRY(read_array(in, all, value));
  } else if (value.type == ValueType::kString) {
    CYB_ASSIGN(value.bytes, read_string(in, value.key));
  } else {
    CYB_ASSIGN(value.bytes, in.take(fixed_size(value.type)));
  }
  if (value.type == ValueType::kBool && std::to_integer<unsigned>(value.bytes[0]) > 1) {
    return fail(
        gguf_error(fmt::format("key {}: a bool is neither 0 nor 1", json_quote(value.key))));
  }
  return value;
}

template <class T>
std::optional<std::string_view> find_duplicate(const std::vector<T>& items,
                                               std::string_view T::* name) {
  std::vector<std::string_view> names;
  names.reserve(items.size());
  for (const T& item : items) names.push_back(item.*name);
  std::ranges::sort(names);
  const auto at = std::ranges::adjacent_find(names);
  if (at == names.end()) return std::nullopt;
  return *at;
}

Result<void> read_values(BoundedReader& in, std::span<const std::byte> all, std::uint64_t count,
                         GgufFile& file) {
  if (!in.can_hold(count, kMinValueBytes)) {
    return fail(gguf_error(fmt::format("{} metadata values do not fit in the {} bytes that remain",
                                       count, in.remaining())));
  }
  file.values.reserve(std::min<std::uint64_t>(count, 4096));
  for (std::uint64_t i = 0; i < count; ++i) {
    CYB_ASSIGN(Value value, read_value(in, all));
    if (in.position() > kMaxHeaderBytes) {
      return fail(
          gguf_error(fmt::format("metadata exceeds the limit of {} bytes", kMaxHeaderBytes)));
    }
    file.values.push_back(value);
  }
  if (const auto twice = find_duplicate(file.values, &Value::key)) {
    return fail(gguf_error(fmt::format("duplicate metadata key {}", json_quote(*twice))));
  }
  return {};
}

Result<std::uint64_t> find_alignment(const GgufFile& file) {
  for (const Value& value : file.values) {
    if (value.key != "general.alignment") continue;
    if (value.type != ValueType::kU32) {
      return fail(
          gguf_error(fmt::format("general.alignment is a {}, want u32", type_name(value.type))));
    }
    std::uint32_t alignment = 0;
    std::memcpy(&alignment, value.bytes.data(), sizeof alignment);
    if (alignment == 0 || alignment > kMaxAlignment || (alignment & (alignment - 1)) != 0) {
      return fail(gguf_error(fmt::format("general.alignment = {} is not a power of two up to {}",
                                         alignment, kMaxAlignment)));
    }
    return alignment;
  }
  return kDefaultAlignment;
}

Result<Shape> read_shape(BoundedReader& in, std::string_view name) {
  CYB_ASSIGN(const std::uint32_t rank, in.read<std::uint32_t>());
  if (rank == 0 || rank > kMaxGgufRank) {
    return fail(gguf_error(fmt::format("tensor {}: {} dimensions, want 1 to {}", json_quote(name),
                                       rank, kMaxGgufRank)));
  }
  std::array<std::int64_t, kMaxGgufRank> dims{};
  for (std::uint32_t i = 0; i < rank; ++i) {
    CYB_ASSIGN(const std::uint64_t dim, in.read<std::uint64_t>());
    if (dim > INT64_MAX) {
      return fail(
          gguf_error(fmt::format("tensor {}: dimension {} is {}", json_quote(name), i, dim)));
    }
    dims[rank - 1 - i] = static_cast<std::int64_t>(dim);
  }
  return Shape(std::span<const std::int64_t>(dims.data(), rank));
}

/// One tensor info; `offset` is still relative to the data.
Result<TensorInfo> read_tensor(BoundedReader& in) {
  TensorInfo tensor;
  CYB_ASSIGN(tensor.name, read_name(in, "tensor name"));
  CYB_ASSIGN(tensor.shape, read_shape(in, tensor.name));
  CYB_ASSIGN(const std::uint32_t type, in.read<std::uint32_t>());
  CYB_ASSIGN(tensor.offset, in.read<std::uint64_t>());
  const auto dtype = dtype_from_gguf(type);
  if (!dtype) return fail(source_encoding(tensor.name, ggml_type_text(type)));
  tensor.dtype = *dtype;
  const auto size = tensor_bytes(tensor.dtype, tensor.shape);
  if (!size) {
    return fail(gguf_error(
        fmt::format("tensor {}: shape {} overflows or is no multiple of the {} block of {}",
                    json_quote(tensor.name), tensor.shape.text(), dtype_name(tensor.dtype),
                    format_info(tensor.dtype).block_values)));
  }
  tensor.size_bytes = *size;
  return tensor;
}

/// `order`: the tensors by their absolute offsets, without overlaps.
std::uint64_t unclaimed(std::span<const TensorInfo* const> order, const GgufFile& file,
                        std::uint64_t file_bytes) {
  std::uint64_t out = 0, at = file.data_offset;
  const auto claim_from = [&](std::uint64_t begin) {
    const std::uint64_t padded = checked_round_up(at, file.alignment).value_or(begin);
    if (begin > padded) out += begin - padded;
  };
  for (const TensorInfo* tensor : order) {
    claim_from(tensor->offset);
    at = tensor->offset + tensor->size_bytes;
  }
  claim_from(file_bytes);
  return out;
}

/// Offsets become absolute; ranges must lie inside the file, sums must not wrap, no two tensors may
/// share a byte.
Result<void> place_tensors(GgufFile& file, std::uint64_t file_bytes) {
  for (TensorInfo& tensor : file.tensors) {
    const auto begin = checked_add(file.data_offset, tensor.offset);
    if (tensor.offset % file.alignment != 0) {
      return fail(
          gguf_error(fmt::format("tensor {}: offset {} is not a multiple of the alignment {}",
                                 json_quote(tensor.name), tensor.offset, file.alignment)));
    }
    if (!begin || !range_fits(*begin, tensor.size_bytes, file_bytes)) {
      return fail(gguf_error(
          fmt::format("tensor {}: offset {} and {} bytes exceed the file of {} bytes",
                      json_quote(tensor.name), tensor.offset, tensor.size_bytes, file_bytes)));
    }
    tensor.offset = *begin;
  }
  std::vector<const TensorInfo*> order;
  order.reserve(file.tensors.size());
  for (const TensorInfo& tensor : file.tensors) order.push_back(&tensor);
  std::ranges::sort(order, {},
                    [](const TensorInfo* t) { return std::pair(t->offset, t->size_bytes); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i - 1]->offset + order[i - 1]->size_bytes > order[i]->offset) {
      return fail(gguf_error(fmt::format("tensors {} and {} overlap at byte {}",
                                         json_quote(order[i - 1]->name), json_quote(order[i]->name),
                                         order[i]->offset)));
    }
  }
  file.unclaimed_bytes = unclaimed(order, file, file_bytes);
  return {};
}

Result<std::uint32_t> read_version(BoundedReader& in) {
  if (in.remaining() < 24) return fail(gguf_error("not a GGUF file: shorter than its header"));
  CYB_ASSIGN(const std::uint32_t magic, in.read<std::uint32_t>());
  if (magic != kMagic) return fail(gguf_error("not a GGUF file: the first bytes are not \"GGUF\""));
  CYB_ASSIGN(const std::uint32_t version, in.read<std::uint32_t>());
  if (version == 1)
    return fail(gguf_error("GGUF version 1 is not supported; convert the file again"));
  if ((version & 0xFFFFu) == 0 && version != 0)
    return fail(gguf_error("big-endian GGUF is not supported"));
  if (version != 2 && version != 3)
    return fail(gguf_error(fmt::format("unknown GGUF version {}", version)));
  return version;
}

}  // namespace

std::string_view type_name(ValueType type) noexcept {
  return kTypes[static_cast<std::size_t>(type)].name;
}
std::size_t fixed_size(ValueType type) noexcept {
  return kTypes[static_cast<std::size_t>(type)].size;
}
Error gguf_error(std::string text) {
  return Error(ErrorKind::kFormat, "GGUF", std::move(text));
}

std::optional<std::string_view> StringWalk::next() noexcept {
  std::uint64_t size = 0;
  if (left_ == 0 || bytes_.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, bytes_.data(), sizeof size);
  if (size > bytes_.size() - sizeof size) return std::nullopt;
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + sizeof size, size);
  bytes_ = bytes_.subspan(sizeof size + size);
  --left_;
  return text;
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes) {
  BoundedReader in(bytes);
  GgufFile file;
  CYB_ASSIGN(file.version, read_version(in));
  CYB_ASSIGN(const std::uint64_t n_tensors, in.read<std::uint64_t>());
  CYB_ASSIGN(const std::uint64_t n_values, in.read<std::uint64_t>());
  if (n_tensors > kMaxTensors) {
    return fail(
        gguf_error(fmt::format("{} tensors exceed the limit of {}", n_tensors, kMaxTensors)));
  }
  CYB_TRY(read_values(in, bytes, n_values, file));
  CYB_ASSIGN(file.alignment, find_alignment(file));
  if (!in.can_hold(n_tensors, kMinTensorBytes)) {
    return fail(gguf_error(fmt::format("{} tensors do not fit in the {} bytes that remain",
                                       n_tensors, in.remaining())));
  }
  file.tensors.reserve(n_tensors);
  for (std::uint64_t i = 0; i < n_tensors; ++i) {
    CYB_ASSIGN(const TensorInfo tensor, read_tensor(in));
    file.tensors.push_back(tensor);
  }
  if (const auto twice = find_duplicate(file.tensors, &TensorInfo::name)) {
    return fail(gguf_error(fmt::format("duplicate tensor {}", json_quote(*twice))));
  }
  const auto data = checked_round_up(in.position(), file.alignment);
  if (!data) return fail(gguf_error("the tensor data starts beyond the file"));
  file.data_offset = *data;
  CYB_TRY(place_tensors(file, bytes.size()));
  return file;
}

}  // namespace cyb::gguf
