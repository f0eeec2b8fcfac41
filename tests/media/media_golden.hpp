// Files of tests/golden/media and what others read from them.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cyb {

inline std::vector<std::byte> media_bytes(const std::string& name) {
  std::ifstream in(std::string(CYB_TESTS_DIR) + "/golden/media/" + name, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::byte> out(text.size());
  std::transform(text.begin(), text.end(), out.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return out;
}

inline nlohmann::json media_golden() {
  std::ifstream in(std::string(CYB_TESTS_DIR) + "/golden/media/media.json");
  return nlohmann::json::parse(in);
}

}  // namespace cyb
