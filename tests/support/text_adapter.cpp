// The values are a fixed uneven sequence in [-1, 1).
#include "support/text_adapter.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace cyb::test {
namespace {

bool write(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  return static_cast<bool>(file.flush());
}

}  // namespace

bool write_text_adapter(const std::string& folder, const std::string& keys) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  const std::string name = "\"base_model.model.model.layers.0.mlp.down_proj.lora_";
  std::string header =
      "{" + name + "A.weight\":{\"dtype\":\"F32\",\"shape\":[2,64],\"data_offsets\":[0,512]}," +
      name + "B.weight\":{\"dtype\":\"F32\",\"shape\":[32,2],\"data_offsets\":[512,768]}}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const std::uint64_t size = header.size();
  std::string all(reinterpret_cast<const char*>(&size), sizeof size);
  all += header;
  for (int i = 0; i < 192; ++i) {
    const float v = static_cast<float>((i * 37 + 11) % 64) / 32.0f - 1.0f;
    all.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  return write(folder + "/adapter_config.json",
               R"({"peft_type":"LORA","r":2,"bias":"none",)" + keys + "}") &&
         write(folder + "/adapter_model.safetensors", all);
}

}  // namespace cyb::test
