// Helpers of the importer's tests: bytes of draft tensors, config values, temporary checkpoints
// with edited configs.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "import/import.hpp"
#include "support/process.hpp"
#include "support/tiny_checkpoint.hpp"

namespace cyb::test {

inline std::vector<std::byte> produced(const DraftTensor& tensor) {
  std::vector<std::byte> out;
  const auto done = tensor.produce([&out](std::span<const std::byte> part) -> Result<void> {
    out.insert(out.end(), part.begin(), part.end());
    return {};
  });
  if (!done) throw std::runtime_error(done.error().text());
  return out;
}

inline std::uint32_t crc32_of(const std::vector<std::byte>& bytes) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const std::byte b : bytes) {
    crc ^= std::to_integer<std::uint32_t>(b);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xEDB88320u : 0u);
  }
  return ~crc;
}

inline const DraftTensor* find_tensor(const ModelDraft& draft, const std::string& name) {
  for (const DraftTensor& tensor : draft.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

inline double number_at(const ModelDraft& draft, const std::string& path) {
  const ConfigValue* value = draft.config.at(path);
  if (value == nullptr || !value->number()) throw std::runtime_error("no number at " + path);
  return *value->number();
}

inline std::string text_at(const ModelDraft& draft, const std::string& path) {
  const ConfigValue* value = draft.config.at(path);
  if (value == nullptr || value->string() == nullptr)
    throw std::runtime_error("no text at " + path);
  return *value->string();
}

inline bool flag_at(const ModelDraft& draft, const std::string& path) {
  const ConfigValue* value = draft.config.at(path);
  if (value == nullptr || value->boolean() == nullptr)
    throw std::runtime_error("no bool at " + path);
  return *value->boolean();
}

inline bool mentions(const std::vector<std::string>& texts, const std::string& part) {
  for (const std::string& text : texts) {
    if (text.find(part) != std::string::npos) return true;
  }
  return false;
}

/// A tiny checkpoint in a folder of its own, whose files a test may change before it imports it.
class Checkpoint {
 public:
  explicit Checkpoint(const std::string& name, unsigned n_shards = 1) {
    write_tiny_checkpoint(name, folder_.path(), n_shards);
  }

  std::string path() const { return folder_.path(); }
  std::string file(const std::string& name) const { return folder_.file(name); }
  /// Changes a JSON file (made when it is not there).
  void edit(const std::string& name, const std::function<void(nlohmann::json&)>& change) const {
    nlohmann::json json = nlohmann::json::object();
    if (std::filesystem::exists(file(name))) json = nlohmann::json::parse(read_file(file(name)));
    change(json);
    write_file(file(name), json.dump(1));
  }
  void edit_config(const std::function<void(nlohmann::json&)>& change) const {
    edit("config.json", change);
  }

  Result<ModelDraft> import() { return read_source(path(), report); }
  /// The error's text; "" where the import succeeds.
  std::string error() {
    const auto draft = import();
    return draft ? std::string() : draft.error().text();
  }

  ImportReport report;

 private:
  TemporaryFolder folder_;
};

}  // namespace cyb::test
