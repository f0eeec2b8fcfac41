// Fuzzes external data: tensors whose location, offset and length come from the input, read from a
// folder with one file of 256 bytes in it. Messages are separated by a byte 0xFF 0xFF.
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "import/onnx/tensor.hpp"

namespace {

class Folder {
 public:
  Folder() {
    path_ = (std::filesystem::temp_directory_path() / "cyb-onnx-fuzz-XXXXXX").string();
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
    std::ofstream(path_ + "/d", std::ios::binary) << std::string(256, 'd');
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const auto all = std::as_bytes(std::span(data, size));
  cyb::onnx::ExternalFiles files(folder.path());
  std::size_t begin = 0, sum = 0;
  while (begin < size) {
    std::size_t end = begin;
    while (end + 1 < size && !(data[end] == 0xFF && data[end + 1] == 0xFF)) ++end;
    if (end + 1 >= size) end = size;
    const auto proto = cyb::onnx::parse_tensor(all.subspan(begin, end - begin));
    if (proto) {
      const auto tensor = cyb::onnx::read_tensor(*proto, files);
      if (tensor) {
        for (const std::byte b : tensor->bytes) sum += static_cast<std::size_t>(b);
      }
    }
    begin = end + 2;
  }
  return sum == SIZE_MAX ? 1 : 0;
}
