// Reading and writing of .npy (numpy.org, "A simple file format for NumPy arrays").
#include "conformance/onnx_backend/npy.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

namespace cyb::test {
namespace {

constexpr std::array kKinds = {std::pair{"<f4", DType::kF32}, std::pair{"<f2", DType::kF16},
                               std::pair{"<f8", DType::kF64}, std::pair{"|i1", DType::kI8},
                               std::pair{"|u1", DType::kU8},  std::pair{"|b1", DType::kBool},
                               std::pair{"<i2", DType::kI16}, std::pair{"<u2", DType::kUint16},
                               std::pair{"<i4", DType::kI32}, std::pair{"<u4", DType::kUint32},
                               std::pair{"<i8", DType::kI64}, std::pair{"<u8", DType::kUint64}};

std::optional<std::vector<std::int64_t>> read_dims(const std::string& header) {
  const std::size_t at = header.find("'shape': (");
  if (at == std::string::npos) return std::nullopt;
  std::vector<std::int64_t> dims;
  const char* p = header.data() + at + 10;
  const char* end = header.data() + header.size();
  while (p != end && *p != ')') {
    std::int64_t value = 0;
    const auto [next, code] = std::from_chars(p, end, value);
    if (code == std::errc{}) dims.push_back(value);
    p = code == std::errc{} ? next : p + 1;
  }
  if (dims.size() > Shape::kMaxRank) return std::nullopt;
  return dims;
}

}  // namespace

std::optional<NpyArray> read_npy(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string all((std::istreambuf_iterator<char>(file)), {});
  if (all.size() < 12 || all.compare(0, 6, "\x93NUMPY") != 0) return std::nullopt;
  const bool wide = all[6] != 1;
  std::uint32_t length = 0;
  std::memcpy(&length, all.data() + 8, wide ? 4 : 2);
  const std::size_t start = (wide ? 12U : 10U) + length;
  if (start > all.size()) return std::nullopt;
  const std::string header = all.substr(0, start);
  if (header.find("'fortran_order': False") == std::string::npos) return std::nullopt;
  const auto dims = read_dims(header);
  if (!dims) return std::nullopt;
  NpyArray out;
  out.shape = Shape{std::span<const std::int64_t>(*dims)};
  for (const auto& [name, dtype] : kKinds) {
    if (header.find(std::string("'descr': '") + name + "'") == std::string::npos) continue;
    out.dtype = dtype;
    const auto size = tensor_bytes(dtype, out.shape);
    if (!size || *size != all.size() - start) return std::nullopt;
    out.bytes.resize(*size);
    if (*size != 0) std::memcpy(out.bytes.data(), all.data() + start, *size);
    return out;
  }
  return std::nullopt;
}

bool write_npy(const std::string& path, DType dtype, const Shape& shape, const std::byte* data) {
  std::string dims;
  for (const std::int64_t d : shape.dims()) dims += std::to_string(d) + ",";
  for (const auto& [name, kind] : kKinds) {
    if (kind != dtype) continue;
    std::string header =
        std::string("{'descr': '") + name + "', 'fortran_order': False, 'shape': (" + dims + "), }";
    header.append(63 - (10 + header.size()) % 64, ' ').push_back('\n');
    std::ofstream file(path, std::ios::binary);
    const auto length = static_cast<std::uint16_t>(header.size());
    file.write("\x93NUMPY\x01\x00", 8);
    file.write(reinterpret_cast<const char*>(&length), 2);
    file << header;
    file.write(reinterpret_cast<const char*>(data),
               static_cast<std::streamsize>(tensor_bytes(dtype, shape).value_or(0)));
    return file.good();
  }
  return false;
}

}  // namespace cyb::test
