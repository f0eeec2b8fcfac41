// GgufFile: the header of one GGUF file (versions 2 and 3) as views into its bytes. Every count is
// checked against the bytes that remain before it is used; arrays are kept as one span, never as
// objects per element.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace cyb::gguf {

enum class ValueType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

std::string_view type_name(ValueType type) noexcept;
/// Bytes of one item; 0 for strings and arrays.
std::size_t fixed_size(ValueType type) noexcept;

/// One metadata value. Views stay valid as long as the parsed bytes.
struct Value {
  std::string_view key;
  ValueType type = ValueType::kU8;
  ValueType item_type = ValueType::kU8;  // of an array's items, else = type
  std::uint64_t count = 1;               // items of an array
  std::span<const std::byte> bytes;      // the number, the text, or the array's items as stored
};

/// Walks the strings of an array value (their lengths were checked by parse).
class StringWalk {
 public:
  explicit StringWalk(const Value& value) noexcept : bytes_(value.bytes), left_(value.count) {}
  /// Next string; nullopt at the end.
  std::optional<std::string_view> next() noexcept;

 private:
  std::span<const std::byte> bytes_;
  std::uint64_t left_;
};

struct TensorInfo {
  std::string_view name;
  DType dtype = DType::kF32;
  Shape shape;               // outermost first (GGUF's order reversed)
  std::uint64_t offset = 0;  // from the first byte of the file
  std::uint64_t size_bytes = 0;
};

struct GgufFile {
  std::uint32_t version = 0;
  std::uint64_t alignment = 32;
  std::uint64_t data_offset = 0;  // first byte of tensor data
  /// Bytes of the data between and after the tensors, padding to the alignment aside: nothing says
  /// what they are.
  std::uint64_t unclaimed_bytes = 0;
  std::vector<Value> values;  // in file order
  std::vector<TensorInfo> tensors;

  /// Errors: Format (with the key or tensor name), SourceEncoding for tensor types that have no row
  /// in the format table.
  static Result<GgufFile> parse(std::span<const std::byte> bytes);
};

/// An Error of kind Format with code "GGUF".
Error gguf_error(std::string text);

}  // namespace cyb::gguf
