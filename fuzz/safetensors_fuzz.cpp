// Fuzzes the safetensors header; input that begins with { also as a config.json and a
// generation_config.json.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "import/hf/generation_config.hpp"
#include "import/hf/hf_config.hpp"
#include "import/json_strict.hpp"
#include "import/safetensors/safetensors_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cyb;
  std::uint64_t sum = 0;
  const auto file = safetensors::SafetensorsFile::parse(std::as_bytes(std::span(data, size)));
  if (file) {
    for (const safetensors::TensorInfo& tensor : file->tensors) {
      if (tensor.size_bytes > 0)
        sum += data[tensor.offset] + data[tensor.offset + tensor.size_bytes - 1];
    }
  }
  if (size > 0 && data[0] == '{') {
    const auto json =
        parse_json(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    ImportReport report;
    if (json) {
      const auto config = hf::read_config(*json, report);
      if (config) sum += architecture_config(config->architecture).items().size();
      const auto generation = hf::read_generation_config(&*json, report);
      if (generation) sum += generation->eos_ids.size();
    }
  }
  return sum == UINT64_MAX ? 1 : 0;
}
