// One layer, hidden 32; the weights are a fixed pseudo-random sequence.
#include "support/text_checkpoint.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

namespace cyb::test {
namespace {

struct Item {
  std::string name;
  unsigned rows, columns;  // columns 0: a vector
};

std::vector<Item> items(unsigned ffn) {
  return {
      {"model.embed_tokens.weight", 1200, 32},
      {"model.layers.0.input_layernorm.weight", 32, 0},
      {"model.layers.0.self_attn.q_proj.weight", 32, 32},
      {"model.layers.0.self_attn.k_proj.weight", 16, 32},
      {"model.layers.0.self_attn.v_proj.weight", 16, 32},
      {"model.layers.0.self_attn.o_proj.weight", 32, 32},
      {"model.layers.0.post_attention_layernorm.weight", 32, 0},
      {"model.layers.0.mlp.gate_proj.weight", ffn, 32},
      {"model.layers.0.mlp.up_proj.weight", ffn, 32},
      {"model.layers.0.mlp.down_proj.weight", 32, ffn},
      {"model.norm.weight", 32, 0},
  };
}

std::string config_json(const TextCheckpointOptions& options) {
  return R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":32,"num_attention_heads":4,
"num_key_value_heads":2,"num_hidden_layers":1,"intermediate_size":)" +
         std::to_string(options.ffn) + R"(,"vocab_size":1200,"hidden_act":"silu",
"rms_norm_eps":1e-5,"rope_theta":10000.0,"tie_word_embeddings":true,"bos_token_id":1,"eos_token_id":2,
"max_position_embeddings":)" +
         std::to_string(options.context_tokens) + "}";
}

constexpr const char* kTokenizerConfig =
    R"({"tokenizer_class":"GPT2Tokenizer","bos_token":"<|im_start|>","eos_token":"<|im_end|>","add_bos_token":false%TEMPLATE%})";
constexpr const char* kTemplate =
    R"(,"chat_template":"{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")";

bool write(const std::string& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  return stream.good();
}

/// Norm gains near 1, the rest within 0.4 of 0.
std::vector<float> values(const Item& item, std::uint32_t& state) {
  std::vector<float> out(item.rows * (item.columns == 0 ? 1u : item.columns));
  for (float& value : out) {
    state = state * 1664525u + 1013904223u;
    const float unit = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
    value = item.columns == 0 ? 1.0f + 0.1f * unit : 0.4f * unit;
  }
  return out;
}

std::string safetensors(unsigned ffn) {
  std::string header = "{", data;
  std::uint32_t state = 42;
  for (const Item& item : items(ffn)) {
    const std::vector<float> floats = values(item, state);
    const std::size_t begin = data.size();
    data.append(reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float));
    std::string shape = std::to_string(item.rows);
    if (item.columns != 0) shape += "," + std::to_string(item.columns);
    header += (header.size() > 1 ? ",\"" : "\"") + item.name + R"(":{"dtype":"F32","shape":[)" +
              shape + R"(],"data_offsets":[)" + std::to_string(begin) + "," +
              std::to_string(data.size()) + "]}";
  }
  header += "}";
  while (header.size() % 8 != 0) header += ' ';
  std::string out;
  for (unsigned i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return out + header + data;
}

}  // namespace

bool write_text_checkpoint(const std::string& folder, const TextCheckpointOptions& options) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  std::filesystem::copy_file(std::string(CYB_TESTS_DIR) + "/golden/tokenizer/smollm.json",
                             folder + "/tokenizer.json", code);
  if (code) return false;
  std::string tokenizer_config = kTokenizerConfig;
  const std::string mark = "%TEMPLATE%";
  tokenizer_config.replace(tokenizer_config.find(mark), mark.size(),
                           options.chat_template ? kTemplate : "");
  return write(folder + "/config.json", config_json(options)) &&
         write(folder + "/tokenizer_config.json", tokenizer_config) &&
         write(folder + "/model.safetensors", safetensors(options.ffn));
}

}  // namespace cyb::test
