// Hugging Face folders for tests: the tiny random models of tests/golden/tiny, whose weights are
// functions of their names (tools/rebuild_tiny.py), and a plain safetensors writer. Any failure
// throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cyb::test {

/// The weight of that name: crc32 seeds splitmix64, scaled by name and shape.
std::vector<float> recipe_weights(const std::string& name, const std::vector<std::int64_t>& shape);

struct StoredTensor {
  std::string name;
  std::string dtype;  // "F32"
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};

StoredTensor f32_tensor(const std::string& name, const std::vector<std::int64_t>& shape);
void write_safetensors(const std::string& path, const std::vector<StoredTensor>& tensors);
void write_file(const std::string& path, const std::string& text);
std::string read_file(const std::string& path);

/// Tensors of a tiny model in the order of tensors.json.
std::vector<StoredTensor> tiny_tensors(const std::string& name);
/// model.safetensors, or `n_shards` files with model.safetensors.index.json.
void write_weights(const std::string& folder, const std::vector<StoredTensor>& tensors,
                   unsigned n_shards = 1);

/// Writes config.json, generation_config.json and the weights of tests/golden/tiny/<name> into
/// `folder`, which must exist.
void write_tiny_checkpoint(const std::string& name, const std::string& folder,
                           unsigned n_shards = 1);

}  // namespace cyb::test
