// GGUF adapters (general.type = adapter): <weight>.lora_a [r, K], <weight>.lora_b [N, r]; of the
// embedding lora_a [V, r], as a table. Rows of q and k of `llama` files come back as those of a
// model do.
#include <fmt/format.h>

#include <algorithm>

#include "base/json_text.hpp"
#include "import/gguf/gguf_config.hpp"
#include "import/gguf/gguf_file.hpp"
#include "import/gguf/metadata.hpp"
#include "import/hf/model_types.hpp"
#include "import/lora/lora_import.hpp"
#include "import/lora/lora_pairs.hpp"
#include "import/names.hpp"

namespace cyb {
namespace {

using lora::Facts;
using lora::Half;
using lora::Modules;

constexpr std::string_view kEmbedding = "token_embd.weight";

/// One name of GGUF stands for several model types of checkpoints.
bool same_architecture(const gguf::ArchitectureRow& row, const std::string& model_type) {
  if (row.model_type == model_type) return true;
  const auto type = hf::find_model_type(model_type);
  return type && type->table == row.name;
}

struct Header {
  gguf::ArchitectureRow row;
  double alpha = 0;
};

Result<Header> read_header(gguf::Metadata& metadata, const Model& model) {
  CYB_ASSIGN(const std::string_view type, metadata.text_or("general.type", "model"));
  if (type != "adapter") {
    return fail(lora_error("L01", fmt::format("general.type is {}: it is no adapter; a model is "
                                              "given as MODEL",
                                              json_quote(type))));
  }
  CYB_ASSIGN(const std::string_view kind, metadata.text("adapter.type"));
  if (kind != "lora") {
    return fail(lora_error(
        "L04", fmt::format("adapter.type {} is not supported: only lora is", json_quote(kind))));
  }
  CYB_ASSIGN(const std::string_view architecture, metadata.text("general.architecture"));
  const auto row = gguf::find_architecture(architecture);
  if (!row || !same_architecture(*row, model.model_type())) {
    return fail(lora_error("L03", fmt::format("it is for the architecture {}, the model is {}",
                                              json_quote(architecture), model.model_type())));
  }
  Header out{.row = *row};
  CYB_ASSIGN(out.alpha, metadata.number_or("adapter.lora.alpha", 0));
  metadata.ignore("adapter.lora.task_name");
  metadata.ignore("adapter.lora.prompt_prefix");
  for (const char* prefix : {"adapter.", "split."}) {
    const auto unread = metadata.unread(prefix);
    if (unread.empty()) continue;
    return fail(lora_error(
        "L05", fmt::format("{}: what it asks for is not supported", json_quote(unread[0]))));
  }
  return out;
}

Result<Modules> read_modules(const gguf::GgufFile& file, std::span<const std::byte> bytes) {
  Modules modules;
  for (const gguf::TensorInfo& tensor : file.tensors) {
    const bool is_a = tensor.name.ends_with(".lora_a"), is_b = tensor.name.ends_with(".lora_b");
    if (!is_a && !is_b) {
      return fail(lora_error("L06", fmt::format("tensor {}: a whole weight in an adapter is not "
                                                "supported",
                                                json_quote(tensor.name))));
    }
    const std::string module(tensor.name.substr(0, tensor.name.size() - 7));
    Half half{std::string(tensor.name), tensor.dtype, tensor.shape,
              bytes.subspan(tensor.offset, tensor.size_bytes)};
    CYB_TRY(add_half(modules, module, is_b, module == kEmbedding, std::move(half)));
  }
  if (modules.empty()) return fail(lora_error("L01", "there is no A and no B in it"));
  return modules;
}

/// Row h*D + r*D/2 + j of the result is row h*D + 2j + r of the file (model-format 6.3).
Result<std::vector<RowRun>> half_split_rows(std::int64_t n_rows, std::int64_t n_heads,
                                            std::string_view module) {
  const std::int64_t d = n_rows / n_heads;
  if (d * n_heads != n_rows || d % 2 != 0) {
    return fail(lora_error(
        "L09", fmt::format("{}: B has {} rows for {} heads", json_quote(module), n_rows, n_heads)));
  }
  std::vector<RowRun> runs;
  for (std::int64_t h = 0; h < n_heads; ++h) {
    for (std::int64_t r = 0; r < 2; ++r) {
      for (std::int64_t j = 0; j < d / 2; ++j) runs.push_back({h * d + 2 * j + r, 1});
    }
  }
  return runs;
}

Result<void> place_module(LoraPair pair, const gguf::ArchitectureRow& row, const Model& model,
                          const Facts& facts, LoraAdapter& adapter) {
  const auto canonical = canonical_name(gguf_names(row.name), pair.source);
  if (!canonical) {
    return fail(lora_error("L07", fmt::format("{} is no weight of architecture {}",
                                              json_quote(pair.source), row.name)));
  }
  CYB_ASSIGN(pair.tensor, weight_of(model, facts, *canonical, pair.source));
  const bool is_q = pair.tensor.find(".self_attn.q_proj.") != std::string::npos;
  const bool is_k = pair.tensor.find(".self_attn.k_proj.") != std::string::npos;
  if (row.permuted && (is_q || is_k)) {
    const LlamaStyleConfig& config = facts.config.architecture;
    CYB_ASSIGN(const std::vector<RowRun> runs,
               half_split_rows(pair.n_out, is_q ? config.n_heads : config.n_kv_heads, pair.source));
    pair.b = lora::rows_of(pair.b, pair.rank, runs);
  }
  return lora::place_pair(std::move(pair), model, adapter);
}

/// The embedding's A is a table: its transpose is what a pair holds.
Result<LoraPair> read_module(const std::string& module, lora::Halves halves) {
  if (!halves.embedding || !halves.has_a || halves.a.shape.rank() != 2)
    return lora::read_pair(module, halves);
  const std::int64_t rows = halves.a.shape[0], columns = halves.a.shape[1];
  // The shapes alone are turned: the values follow, as they may be in blocks.
  halves.a.shape = Shape{columns, rows};
  CYB_ASSIGN(LoraPair pair, lora::read_pair(module, halves));
  pair.a = lora::transposed(pair.a, rows, columns);
  return pair;
}

/// llama.cpp's converter turns A and B of GPT-2's matrices, which are stored turned, though PEFT
/// does not store them so: the shapes of a file say it, but not those of square matrices.
Result<void> check_not_turned(const gguf::ArchitectureRow& row, const LoraAdapter& adapter) {
  const auto is_square = [](const LoraPair& pair) { return pair.n_in == pair.n_out; };
  if (row.name != "gpt2" || !std::ranges::all_of(adapter.pairs, is_square)) return {};
  return fail(lora_error("L09",
                         "all its matrices are square, so nothing says whether A and B are turned, "
                         "as llama.cpp's converter turns those of GPT-2: give the PEFT folder"));
}

}  // namespace

Result<LoraAdapter> parse_gguf_adapter(std::span<const std::byte> bytes, const Model& model) {
  CYB_ASSIGN(const gguf::GgufFile file, gguf::GgufFile::parse(bytes));
  gguf::Metadata metadata(file.values);
  CYB_ASSIGN(const Header header, read_header(metadata, model));
  CYB_ASSIGN(const Modules modules, read_modules(file, bytes));
  CYB_ASSIGN(const Facts facts, lora::facts_of(model));
  LoraAdapter adapter;
  adapter.format = "GGUF";
  for (const auto& [module, halves] : modules) {
    CYB_ASSIGN(LoraPair pair, read_module(module, halves));
    // Without an alpha the scale is 1, as llama.cpp has it.
    pair.scale = header.alpha != 0 ? header.alpha / static_cast<double>(pair.rank) : 1.0;
    CYB_TRY(place_module(std::move(pair), header.row, model, facts, adapter));
  }
  CYB_TRY(check_not_turned(header.row, adapter));
  adapter.content = blake3(bytes);
  return adapter;
}

}  // namespace cyb
