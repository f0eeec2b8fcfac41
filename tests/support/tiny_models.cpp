// The mapping from config.json is written out here, apart from the importer's, so that an engine
// can be tested without it.
#include "support/tiny_models.hpp"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/utf8.hpp"
#include "support/process.hpp"

namespace cyb::test {
namespace {

using nlohmann::json;

std::string golden_path(const std::string& name, const std::string& file) {
  return std::string(CYB_TESTS_DIR) + "/golden/tiny/" + name + "/" + file;
}

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
T need(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return *std::move(result);
}

/// CRC-32 as zlib has it.
std::uint32_t crc32(const std::string& text) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : text) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1u)));
  }
  return ~crc;
}

/// n values in [-1, 1): splitmix64 of the name and the index.
std::vector<float> uniform(const std::string& name, std::size_t n) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t z = (std::uint64_t{crc32(name)} << 32) + (i + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    out[i] = static_cast<float>(z >> 40) * 0x1p-23f - 1.0f;
  }
  return out;
}

DraftTensor draft_tensor(const std::string& name, const std::vector<std::int64_t>& shape) {
  return {name, DType::kF32, Shape(std::span<const std::int64_t>(shape)),
          [values = named_weights(name, shape)](const ByteSink& sink) {
            return sink(std::as_bytes(std::span(values)));
          }};
}

template <class T>
void copy_key(const json& from, ConfigTable& to, const char* key, const char* name = nullptr) {
  if (const auto it = from.find(key); it != from.end() && !it->is_null()) {
    to.set(name == nullptr ? key : name, ConfigValue(it->get<T>()));
  }
}

void set_rope(const json& config, ConfigTable& arch) {
  const json& rope = config.at("rope_parameters");
  if (rope.contains("full_attention")) {
    arch.set("rope_theta_full", rope["full_attention"]["rope_theta"].get<double>());
    arch.set("rope_theta_sliding", rope["sliding_attention"]["rope_theta"].get<double>());
    return;
  }
  arch.set("rope_theta", rope["rope_theta"].get<double>());
  const std::string type = rope["rope_type"].get<std::string>();
  if (type == "default") return;
  ConfigTable scaling;
  scaling.set("type", type);
  for (const char* key : {"factor", "low_freq_factor", "high_freq_factor"}) {
    copy_key<double>(rope, scaling, key);
  }
  copy_key<std::int64_t>(rope, scaling, "original_max_position_embeddings");
  arch.set("rope_scaling", std::move(scaling));
}

void set_windows(const json& config, ConfigTable& arch) {
  if (config.contains("use_sliding_window") && !config["use_sliding_window"].get<bool>()) return;
  copy_key<std::int64_t>(config, arch, "sliding_window");
  if (!config.contains("layer_types")) return;
  ConfigArray kinds;
  for (const json& kind : config["layer_types"]) {
    kinds.emplace_back(kind == "full_attention" ? "full" : "sliding");
  }
  arch.set("layer_types", std::move(kinds));
}

ConfigTable tiny_config(const json& config) {
  ConfigTable out;
  out.set("model_type", config["model_type"].get<std::string>());
  ConfigTable& arch = out.table("architecture");
  for (const char* key :
       {"hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim",
        "num_hidden_layers", "intermediate_size", "vocab_size", "max_position_embeddings"}) {
    copy_key<std::int64_t>(config, arch, key);
  }
  set_rope(config, arch);
  copy_key<double>(config, arch, "rms_norm_eps");
  copy_key<bool>(config, arch, "tie_word_embeddings");
  copy_key<std::string>(config, arch, "hidden_act", "hidden_activation");
  copy_key<std::string>(config, arch, "hidden_activation");
  if (config["model_type"] == "gemma3_text") {
    arch.set("norm_unit_offset", true);
    arch.set("embedding_scale", std::sqrt(config["hidden_size"].get<double>()));
    arch.set("attention_scale", 1.0 / std::sqrt(config["query_pre_attn_scalar"].get<double>()));
  }
  set_windows(config, arch);
  ConfigTable& tokenizer = out.table("tokenizer");
  tokenizer.set("type", "none");
  tokenizer.set("eos_token_ids", ConfigArray{config["eos_token_id"].get<std::int64_t>()});
  return out;
}

std::shared_ptr<const Model> build_tiny(const std::string& name) {
  ModelDraft draft;
  draft.name = "tiny-" + name;
  draft.config = tiny_config(json::parse(read_all(golden_path(name, "config.json"))));
  const json tensors = json::parse(read_all(golden_path(name, "tensors.json")));
  for (const auto& [tensor, spec] : tensors.at("model.safetensors").items()) {
    draft.tensors.push_back(
        draft_tensor(tensor, std::vector<std::int64_t>(spec.begin() + 1, spec.end())));
  }
  return write_and_open(draft);
}

/// The character that stands for a byte in byte-level vocabularies.
char32_t byte_character(unsigned byte) {
  const auto plain = [](unsigned b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
  };
  if (plain(byte)) return byte;
  char32_t next = 0x100;
  for (unsigned b = 0; b < byte; ++b) next += plain(b) ? 0 : 1;
  return next;
}

std::string mapped(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) utf8_append(out, byte_character(static_cast<std::uint8_t>(c)));
  return out;
}

}  // namespace

const std::vector<std::string>& tiny_names() {
  static const std::vector<std::string> names = {"llama2", "llama3", "smollm2", "mistral",
                                                 "qwen2",  "qwen3",  "gemma3"};
  return names;
}

std::vector<float> named_weights(const std::string& name, const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1, largest = 1;
  for (const std::int64_t dim : shape) {
    n *= dim;
    largest = std::max(largest, dim);
  }
  std::vector<float> out = uniform(name, static_cast<std::size_t>(n));
  if (shape.size() <= 1 || largest == n) {
    const bool gain = name.find("norm") != std::string::npos && name.ends_with("weight");
    for (float& u : out) u = gain ? 1.0f + 0.25f * u : 0.2f * u;
    return out;
  }
  const bool embed = name.find("embed") != std::string::npos;
  const std::int64_t fan = embed ? shape.back() : n / shape.front();
  const auto scale = static_cast<float>(1.7320508 / std::sqrt(static_cast<double>(fan)));
  for (float& u : out) u *= scale;
  return out;
}

std::shared_ptr<const Model> write_and_open(const ModelDraft& draft) {
  static const TemporaryFolder folder;
  static int n_files = 0;
  const std::string path = folder.file(draft.name + "-" + std::to_string(n_files++) + ".model");
  need(write_model(path, draft));
  return need(Model::open(path));
}

std::shared_ptr<const Model> tiny_model(const std::string& name) {
  static std::map<std::string, std::shared_ptr<const Model>> made;
  std::shared_ptr<const Model>& model = made[name];
  if (model == nullptr) model = build_tiny(name);
  return model;
}

TinyGolden tiny_golden(const std::string& name) {
  const std::string raw = read_all(golden_path(name, "golden.safetensors"));
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, raw.data(), 8);
  const json header = json::parse(raw.substr(8, header_bytes));
  const auto values = [&]<class T>(const char* key, T) {
    const json& entry = header.at(key);
    const auto begin = entry["data_offsets"][0].get<std::size_t>();
    const auto end = entry["data_offsets"][1].get<std::size_t>();
    std::vector<T> out((end - begin) / sizeof(T));
    std::memcpy(out.data(), raw.data() + 8 + header_bytes + begin, end - begin);
    return out;
  };
  TinyGolden out;
  for (const std::int64_t id : values("in.input_ids", std::int64_t{})) {
    out.ids.push_back(static_cast<std::int32_t>(id));
  }
  out.logits = values("out.logits", float{});
  for (const float id : values("out.greedy", float{})) {
    out.greedy.push_back(static_cast<std::int32_t>(id));
  }
  const json& shape = header.at("out.logits").at("shape");
  out.n_rows = shape[0].get<std::uint32_t>();
  out.n_tokens = shape[1].get<std::uint32_t>();
  out.vocab = shape[2].get<std::uint32_t>();
  return out;
}

std::shared_ptr<const Model> text_model(const TextModelOptions& options) {
  const auto vocab = static_cast<std::int64_t>(256 + options.tokens.size());
  ModelDraft draft;
  draft.name = "text";
  draft.config.set("model_type", "llama");
  ConfigTable& arch = draft.config.table("architecture");
  arch.set("hidden_size", 32);
  arch.set("num_attention_heads", 2);
  arch.set("num_key_value_heads", 1);
  arch.set("head_dim", 16);
  arch.set("num_hidden_layers", 1);
  arch.set("intermediate_size", 64);
  arch.set("vocab_size", vocab);
  arch.set("max_position_embeddings", options.max_positions);
  arch.set("rms_norm_eps", 1e-5);
  arch.set("tie_word_embeddings", true);
  ConfigTable& tokenizer = draft.config.table("tokenizer");
  tokenizer.set("type", "bpe");
  tokenizer.set("pre", "gpt2");
  if (options.bos >= 0) tokenizer.set("bos_token_id", std::int64_t{options.bos});
  ConfigArray eos;
  for (const std::int32_t id : options.eos) eos.emplace_back(std::int64_t{id});
  tokenizer.set("eos_token_ids", std::move(eos));
  tokenizer.set("add_bos_token", options.add_bos);
  if (!options.sampling.empty()) draft.config.set("sampling", options.sampling);
  if (!options.chat.empty()) draft.chat = options.chat;
  for (unsigned b = 0; b < 256; ++b) {
    draft.vocab.tokens.push_back(mapped(std::string(1, static_cast<char>(b))));
    draft.vocab.types.push_back(TokenType::kNormal);
  }
  for (const TextToken& token : options.tokens) {
    const bool plain = token.type == TokenType::kNormal;
    draft.vocab.tokens.push_back(plain ? mapped(token.text) : token.text);
    draft.vocab.types.push_back(token.type);
  }
  const std::string layer = "model.layers.0.";
  draft.tensors = {draft_tensor("model.embed_tokens.weight", {vocab, 32}),
                   draft_tensor(layer + "input_layernorm.weight", {32}),
                   draft_tensor(layer + "self_attn.q_proj.weight", {32, 32}),
                   draft_tensor(layer + "self_attn.k_proj.weight", {16, 32}),
                   draft_tensor(layer + "self_attn.v_proj.weight", {16, 32}),
                   draft_tensor(layer + "self_attn.o_proj.weight", {32, 32}),
                   draft_tensor(layer + "post_attention_layernorm.weight", {32}),
                   draft_tensor(layer + "mlp.gate_proj.weight", {64, 32}),
                   draft_tensor(layer + "mlp.up_proj.weight", {64, 32}),
                   draft_tensor(layer + "mlp.down_proj.weight", {32, 64}),
                   draft_tensor("model.norm.weight", {32})};
  return write_and_open(draft);
}

double float_error(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double largest = 1, difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i]))
      return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return difference / largest;
}

}  // namespace cyb::test
