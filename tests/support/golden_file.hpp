// The safetensors file of a golden. Any failure throws, which fails the test.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace cyb::test {

class GoldenFile {
 public:
  explicit GoldenFile(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path);
    raw_.assign(std::istreambuf_iterator<char>(file), {});
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, raw_.data(), 8);
    header_ = nlohmann::json::parse(raw_.substr(8, header_bytes));
    begin_ = 8 + header_bytes;
  }
  template <class T>
  std::vector<T> values(const char* key) const {
    const nlohmann::json& offsets = header_.at(key)["data_offsets"];
    const auto begin = offsets[0].get<std::size_t>(), end = offsets[1].get<std::size_t>();
    std::vector<T> out((end - begin) / sizeof(T));
    std::memcpy(out.data(), raw_.data() + begin_ + begin, end - begin);
    return out;
  }
  template <class T>
  std::vector<std::int32_t> ids(const char* key) const {
    std::vector<std::int32_t> out;
    for (const T value : values<T>(key)) out.push_back(static_cast<std::int32_t>(value));
    return out;
  }
  std::vector<std::uint32_t> shape(const char* key) const {
    return header_.at(key).at("shape").get<std::vector<std::uint32_t>>();
  }

 private:
  std::string raw_;
  nlohmann::json header_;
  std::size_t begin_ = 0;
};

}  // namespace cyb::test
