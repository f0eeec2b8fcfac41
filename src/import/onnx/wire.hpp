// WireReader: the fields of one protobuf message, one after the other, as views into the bytes.
// Nothing nests here: a message inside a message is a span that another WireReader reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/reader.hpp"
#include "base/result.hpp"

namespace cyb::onnx {

enum class WireType : std::uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct WireField {
  std::uint32_t number = 0;
  WireType type = WireType::kVarint;
  std::uint64_t value = 0;           // varint and fixed: the bits
  std::span<const std::byte> bytes;  // kBytes: the content
};

class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> message) noexcept : in_(message) {}

  bool done() const noexcept { return in_.remaining() == 0; }
  /// Errors: Format with code "ONNX": a cut field, a number above 64 bits, a group, field number 0.
  Result<WireField> next();

 private:
  Result<std::uint64_t> varint();

  BoundedReader in_;
};

/// An Error of kind Format with code "ONNX".
Error onnx_error(std::string text);

// Values of a field; the wire type must be the one of the schema. Errors: Format.
Result<std::span<const std::byte>> as_bytes(const WireField& field);
/// Valid UTF-8 of at most kMaxStringBytes.
Result<std::string_view> as_text(const WireField& field);
Result<std::int64_t> as_int(const WireField& field);
/// An enum or int32: 0..2^31-1.
Result<std::int32_t> as_small(const WireField& field);
Result<float> as_float(const WireField& field);

/// Appends the numbers of a repeated field, packed or not.
Result<void> append_ints(const WireField& field, std::vector<std::int64_t>& out);
Result<void> append_floats(const WireField& field, std::vector<float>& out);
Result<void> append_doubles(const WireField& field, std::vector<double>& out);

}  // namespace cyb::onnx
