// Tiny checkpoints go through the importer; the text model is put together here.
#include "support/tiny_models.hpp"

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/utf8.hpp"
#include "import/import.hpp"
#include "support/golden_file.hpp"
#include "support/process.hpp"
#include "support/tiny_checkpoint.hpp"

namespace cyb::test {
namespace {

using nlohmann::json;

std::string golden_path(const std::string& name, const std::string& file) {
  return std::string(CYB_TESTS_DIR) + "/golden/tiny/" + name + "/" + file;
}

template <class T>
T need(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return *std::move(result);
}

DraftTensor draft_tensor(const std::string& name, const std::vector<std::int64_t>& shape) {
  return {name, DType::kF32, Shape(std::span<const std::int64_t>(shape)),
          [values = recipe_weights(name, shape)](const ByteSink& sink) {
            return sink(std::as_bytes(std::span(values)));
          }};
}

std::shared_ptr<const Model> import_tiny(const std::string& name) {
  const TemporaryFolder folder;
  write_tiny_checkpoint(name, folder.path());
  static const TemporaryFolder models;
  const std::string path = models.file(name + ".model");
  ImportReport report;
  ImportOptions options;
  options.name = "tiny-" + name;
  need(import_model(folder.path(), path, options, report));
  return need(Model::open(path));
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
  static const std::vector<std::string> names = {
      "llama2",     "llama3",     "llama_biases",   "llama_yarn",     "llama_dynamic",
      "smollm2",    "smollm3",    "smollm3_window", "deepseek_dense", "mistral",
      "qwen2",      "qwen2_yarn", "qwen3",          "mimo",           "phi2",
      "phi2_gqa",   "phi3",       "phi3_longrope",  "phi4",           "phi4_mini",
      "gemma1",     "gemma2",     "gemma3",         "starcoder1",     "starcoder1_mha",
      "starcoder2", "gpt2",       "olmo2",          "granite",        "yi",
      "internlm2"};
  return names;
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
  if (model == nullptr) model = import_tiny(name);
  return model;
}

TinyGolden tiny_golden(const std::string& name) {
  const GoldenFile file(golden_path(name, "golden.safetensors"));
  TinyGolden out;
  out.ids = file.ids<std::int64_t>("in.input_ids");
  out.logits = file.values<float>("out.logits");
  out.greedy = file.ids<float>("out.greedy");
  const std::vector<std::uint32_t> shape = file.shape("out.logits");
  out.n_rows = shape[0];
  out.n_tokens = shape[1];
  out.vocab = shape[2];
  return out;
}

const std::vector<std::string>& long_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const std::string& name : tiny_names()) {
      if (std::ifstream(golden_path(name, "golden_long.safetensors"))) found.push_back(name);
    }
    return found;
  }();
  return names;
}

LongGolden long_golden(const std::string& name) {
  const GoldenFile file(golden_path(name, "golden_long.safetensors"));
  LongGolden out;
  out.ids = file.ids<std::int64_t>("in.input_ids");
  out.lengths = file.ids<std::int64_t>("in.lengths");
  out.n_prompt = static_cast<std::uint32_t>(file.values<std::int64_t>("in.n_prompt")[0]);
  out.logits = file.values<float>("out.logits");
  out.greedy = file.ids<float>("out.greedy");
  out.cached = file.values<float>("out.cached");
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

}  // namespace cyb::test
