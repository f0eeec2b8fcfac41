#include "runtime/model_facts.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

namespace cyb {
namespace {

std::string main_encoding(const Model& model) {
  std::map<std::string_view, std::uint64_t> bytes;
  for (const TensorEntry& tensor : model.tensors()) {
    bytes[dtype_name(tensor.dtype)] += tensor.size_bytes;
  }
  const auto most =
      std::ranges::max_element(bytes, {}, [](const auto& item) { return item.second; });
  return most == bytes.end() ? "" : std::string(most->first);
}

/// An integer of the config by dotted path.
std::int64_t config_integer(const Model& model, std::string_view path) {
  const ConfigValue* value = model.config().at(path);
  return value == nullptr || value->integer() == nullptr ? 0 : *value->integer();
}

std::int64_t modified_time(const std::string& path) {
  std::error_code missing;
  const auto time = std::filesystem::last_write_time(path, missing);
  if (missing) return 0;
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

}  // namespace

Result<ModelFacts> model_facts(const Model& model) {
  ModelFacts out;
  CYB_ASSIGN(const Digest id, model.model_id());
  out.model_id = digest_text(id);
  out.path = model.path();
  out.type = model.model_type();
  out.encoding = main_encoding(model);
  if (model.chat() != nullptr) {
    const ConfigValue* text = model.chat()->find("template");
    if (text != nullptr && text->string() != nullptr) out.chat_template = *text->string();
  }
  out.file_bytes = model.file_bytes();
  out.modified = modified_time(out.path);
  const std::pair<std::int64_t ModelFacts::*, const char*> numbers[] = {
      {&ModelFacts::parameters, "parameters"},
      {&ModelFacts::max_positions, "architecture.max_position_embeddings"},
      {&ModelFacts::hidden_size, "architecture.hidden_size"},
      {&ModelFacts::n_layers, "architecture.num_hidden_layers"},
      {&ModelFacts::n_heads, "architecture.num_attention_heads"},
      {&ModelFacts::n_kv_heads, "architecture.num_key_value_heads"},
      {&ModelFacts::vocab_size, "architecture.vocab_size"}};
  for (const auto& [member, path] : numbers) out.*member = config_integer(model, path);
  return out;
}

}  // namespace cyb
