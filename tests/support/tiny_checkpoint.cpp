// The recipe of tools/rebuild_tiny.py in C++, bit for bit.
#include "support/tiny_checkpoint.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string_view>

namespace cyb::test {
namespace {

std::uint32_t crc32(std::string_view text) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

/// f32 in [-1, 1): the upper 24 bits of splitmix64's output number i + 1.
float uniform(std::uint64_t seed, std::size_t i) {
  std::uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15ull;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  z ^= z >> 31;
  return static_cast<float>(z >> 40) * 0x1p-23f - 1.0f;
}

bool has_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::ranges::any_of(
      parts, [&text](const char* part) { return text.find(part) != std::string::npos; });
}

std::string golden(const std::string& name, const std::string& file) {
  return std::string(CYB_TESTS_DIR) + "/golden/tiny/" + name + "/" + file;
}

}  // namespace

std::vector<float> recipe_weights(const std::string& name, const std::vector<std::int64_t>& shape) {
  std::string low = name;
  std::ranges::transform(low, low.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::int64_t n =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  const bool flat = shape.size() <= 1 || *std::ranges::max_element(shape) == n;
  float scale = 0.2f, base = 0.0f;
  if (flat) {
    const bool gain = has_any(low, {"norm", "ln_", "layernorm"}) &&
                      (low.ends_with("weight") || low.ends_with("scale"));
    if (gain) scale = 0.25f, base = 1.0f;
  } else {
    const bool embed = has_any(low, {"embed", "shared.weight", "wte", "wpe"});
    const std::int64_t fan = embed ? shape.back() : n / shape[0];
    scale = static_cast<float>(1.7320508 / std::sqrt(static_cast<double>(fan)));
  }
  const std::uint64_t seed = std::uint64_t{crc32(name)} << 32;
  std::vector<float> out(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = base + scale * uniform(seed, i);
  return out;
}

StoredTensor f32_tensor(const std::string& name, const std::vector<std::int64_t>& shape) {
  const std::vector<float> values = recipe_weights(name, shape);
  StoredTensor out{name, "F32", shape, std::vector<std::byte>(values.size() * sizeof(float))};
  std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
  return out;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void write_safetensors(const std::string& path, const std::vector<StoredTensor>& tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::uint64_t offset = 0;
  for (const StoredTensor& tensor : tensors) {
    const std::uint64_t end = offset + tensor.bytes.size();
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  std::string all(sizeof length, '\0');
  std::memcpy(all.data(), &length, sizeof length);
  all += text;
  for (const StoredTensor& tensor : tensors)
    all.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  write_file(path, all);
}

std::vector<StoredTensor> tiny_tensors(const std::string& name) {
  const auto files = nlohmann::ordered_json::parse(read_file(golden(name, "tensors.json")));
  std::vector<StoredTensor> out;
  for (const auto& [tensor, entry] : files.at("model.safetensors").items()) {
    std::vector<std::int64_t> shape;
    for (std::size_t i = 1; i < entry.size(); ++i) shape.push_back(entry[i].get<std::int64_t>());
    out.push_back(f32_tensor(tensor, shape));
  }
  return out;
}

void write_weights(const std::string& folder, const std::vector<StoredTensor>& tensors,
                   unsigned n_shards) {
  if (n_shards == 1) return write_safetensors(folder + "/model.safetensors", tensors);
  nlohmann::json map;
  std::uint64_t total = 0;
  for (unsigned shard = 0; shard < n_shards; ++shard) {
    std::array<char, 64> name{};
    std::snprintf(name.data(), name.size(), "model-%05u-of-%05u.safetensors", shard + 1, n_shards);
    std::vector<StoredTensor> part;
    for (std::size_t i = shard; i < tensors.size(); i += n_shards) part.push_back(tensors[i]);
    for (const StoredTensor& tensor : part) {
      map[tensor.name] = name.data();
      total += tensor.bytes.size();
    }
    write_safetensors(folder + "/" + name.data(), part);
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  write_file(folder + "/model.safetensors.index.json", index.dump(1));
}

void write_tiny_checkpoint(const std::string& name, const std::string& folder, unsigned n_shards) {
  for (const char* file : {"config.json", "generation_config.json"}) {
    if (std::filesystem::exists(golden(name, file)))
      write_file(folder + "/" + file, read_file(golden(name, file)));
  }
  write_weights(folder, tiny_tensors(name), n_shards);
}

}  // namespace cyb::test
