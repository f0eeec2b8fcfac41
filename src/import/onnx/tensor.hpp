// HostTensor: a tensor that is known while a file is imported; its bytes lie in a mapped file or in
// memory of its own. Files: from a TensorProto with inline or external data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "import/onnx/proto.hpp"
#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"
#include "tensor/tensor_view.hpp"

namespace cyb::onnx {

struct HostTensor {
  DType dtype = DType::kF32;
  Shape shape;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // keeps `bytes` alive; null: the model file does

  /// Zeroed memory of its own, aligned to 64 bytes; `data` is where to write. Errors: OutOfMemory,
  /// Format for a size that overflows.
  static Result<HostTensor> allocate(DType dtype, const Shape& shape, std::byte*& data);
  static Result<HostTensor> of_ints(std::span<const std::int64_t> values, const Shape& shape);
  /// A view that references may read: the bytes, aligned to their elements (copied if need be).
  Result<HostTensor> aligned() const;
  TensorView view() const noexcept { return {dtype, shape, bytes.data()}; }
  /// Values of an integer or bool tensor; nullopt for other dtypes.
  std::optional<std::vector<std::int64_t>> ints() const;
  /// The one value of a float or integer tensor with one element.
  std::optional<double> scalar() const;
};

/// Our dtype of a TensorProto.DataType; nullopt where there is none.
std::optional<DType> dtype_of(std::int32_t element_type) noexcept;
/// The schema's name of a type: "FLOAT", "STRING", "type 99".
std::string type_name(std::int32_t element_type);

/// The files that external tensors lie in, each mapped once.
class ExternalFiles {
 public:
  /// `folder`: the model's own; empty: external data is refused.
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}

  /// The bytes of a tensor of `size_bytes` bytes with elements of `unit` bytes. Errors: Format for
  /// a location that leaves the folder, a range that does not fit the file or the shape, a range
  /// that overlaps another tensor's without being the same; Io.
  Result<std::span<const std::byte>> read(const TensorProto& tensor, std::uint64_t size_bytes,
                                          std::uint64_t unit, std::shared_ptr<const void>& owner);
  /// Paths of the files read so far.
  std::vector<std::string> paths() const;

 private:
  struct File {
    std::shared_ptr<const MappedFile> mapped;
    std::map<std::uint64_t, std::uint64_t> ranges;  // offset -> end
  };

  std::string folder_;
  std::map<std::string, File, std::less<>> files_;
};

/// The relative path of an external location. Errors: Format where it is not made of plain names.
Result<std::string> external_location(const TensorProto& tensor);

/// A tensor of the file. Errors: Format (shape against data), SourceEncoding (a type without a
/// dtype of ours: strings, complex, 4-bit, 8-bit floats), those of ExternalFiles.
Result<HostTensor> read_tensor(const TensorProto& tensor, ExternalFiles& files);

}  // namespace cyb::onnx
