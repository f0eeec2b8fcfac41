// Files around the reader and the header of tensor/npy.hpp.
#include "conformance/onnx_backend/npy.hpp"

#include <fstream>
#include <iterator>

#include "tensor/npy.hpp"

namespace cyb::test {

std::optional<NpyArray> read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  const auto view = parse_npy(std::as_bytes(std::span(all)));
  if (!view) return std::nullopt;
  const std::size_t size = tensor_bytes(view->dtype, view->shape).value_or(0);
  return NpyArray{view->dtype, view->shape, {view->data, view->data + size}};
}

bool write_npy(const std::string& path, DType dtype, const Shape& shape, const std::byte* data) {
  const auto header = npy_header(dtype, shape);
  if (!header) return false;
  std::ofstream file(path, std::ios::binary);
  file << *header;
  file.write(reinterpret_cast<const char*>(data),
             static_cast<std::streamsize>(tensor_bytes(dtype, shape).value_or(0)));
  return file.good();
}

}  // namespace cyb::test
