// Hugging Face import: names as they are, wrapper prefixes removed; tied and untied heads; biases
// exactly where config.json says so.
#include "import/hf/hf_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "base/json_text.hpp"
#include "import/draft.hpp"
#include "import/hf/folder_tokenizer.hpp"
#include "import/hf/generation_config.hpp"
#include "import/hf/hf_config.hpp"
#include "import/hf/source_names.hpp"
#include "import/json_strict.hpp"
#include "import/names.hpp"
#include "import/safetensors/checkpoint.hpp"
#include "import/safetensors/fp8_scales.hpp"
#include "import/vocabulary_part.hpp"

namespace cyb::hf {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kGeneration = "generation_config.json";
constexpr std::string_view kHead = "lm_head.weight";
constexpr std::array<std::string_view, 2> kEmbeddings = {"model.embed_tokens.weight", "wte.weight"};

bool exists(const std::string& path) {
  std::error_code code;
  return std::filesystem::exists(path, code);
}

/// A tensor of the checkpoint under one of its canonical names.
struct NamedTensor {
  SourceTensor tensor;
  Arrangement how = Arrangement::kAsStored;
};

std::vector<SourceTensor> sources_of(const std::vector<NamedTensor>& tensors) {
  std::vector<SourceTensor> out;
  for (const NamedTensor& named : tensors) out.push_back(named.tensor);
  return out;
}

auto find_tensor(std::vector<NamedTensor>& tensors, std::string_view name) {
  return std::ranges::find_if(tensors,
                              [name](const NamedTensor& t) { return t.tensor.name == name; });
}

auto find_embedding(std::vector<NamedTensor>& tensors) {
  const auto at = find_tensor(tensors, kEmbeddings[0]);
  return at != tensors.end() ? at : find_tensor(tensors, kEmbeddings[1]);
}

bool is_other_tower(std::string_view name) {
  if (name.starts_with("model.")) name.remove_prefix(6);
  return name.starts_with("vision_tower.") || name.starts_with("multi_modal_projector.") ||
         name.starts_with("vision_model.");
}

bool in_table(std::span<const NameRow> table, std::string_view canonical) {
  const auto matches = [canonical](const NameRow& row) {
    return !row.canonical.starts_with("cyb.") && match_name(row.canonical, canonical).has_value();
  };
  return std::ranges::any_of(table, matches);
}

Result<SourceTensor> make_tensor(const safetensors::TensorInfo& tensor, std::string canonical,
                                 const safetensors::Shard& shard) {
  const auto dtype = safetensors::dtype_of(tensor.dtype);
  if (!dtype) return fail(source_encoding(tensor.name, tensor.dtype));
  return SourceTensor{std::move(canonical), tensor.name,   *dtype,           tensor.shape,
                      shard.file,           tensor.offset, tensor.size_bytes};
}

Result<void> name_tensor(const safetensors::TensorInfo& tensor, const safetensors::Shard& shard,
                         const HfConfig& config, std::set<std::string>& seen,
                         std::vector<NamedTensor>& out) {
  for (TensorUse& use : tensor_uses(tensor.name, config)) {
    if (!in_table(gguf_names(config.table), use.canonical)) {
      return fail(Error(
          ErrorKind::kFormat, "IMPORT",
          fmt::format("tensor {} is not known for model_type {}: it cannot be left out silently",
                      json_quote(tensor.name), config.architecture.model_type)));
    }
    if (!seen.insert(use.canonical).second) {
      return fail(Error(ErrorKind::kFormat, "IMPORT",
                        fmt::format("tensor {} is there twice", json_quote(use.canonical))));
    }
    CYB_ASSIGN(SourceTensor named, make_tensor(tensor, std::move(use.canonical), shard));
    out.push_back({std::move(named), use.how});
  }
  return {};
}

Result<std::vector<NamedTensor>> name_tensors(const std::vector<safetensors::Shard>& shards,
                                              const HfConfig& config,
                                              safetensors::Fp8Scales& scales,
                                              ImportReport& report) {
  std::vector<NamedTensor> out;
  std::set<std::string> seen;
  for (const safetensors::Shard& shard : shards) {
    for (const safetensors::TensorInfo& tensor : shard.header.tensors) {
      if (is_other_tower(tensor.name))
        return fail(not_built(fmt::format("a vision tower (tensor {})", json_quote(tensor.name))));
      if (carries_no_information(tensor.name) || is_left_out(tensor.name, config)) {
        report.skipped.push_back(tensor.name);
        continue;
      }
      std::string canonical = tensor_uses(tensor.name, config).front().canonical;
      if (safetensors::Fp8Scales::is_scale_name(canonical)) {
        CYB_ASSIGN(SourceTensor scale, make_tensor(tensor, std::move(canonical), shard));
        CYB_TRY(scales.take(scale, report));
        continue;
      }
      CYB_TRY(name_tensor(tensor, shard, config, seen, out));
    }
  }
  return out;
}

/// A tied head that is stored too: equal to the embedding it carries nothing; else it is not tied,
/// as transformers 5 decides.
Result<void> settle_head(std::vector<NamedTensor>& tensors, LlamaStyleConfig& config,
                         ImportReport& report) {
  const auto head = find_tensor(tensors, kHead);
  if (head == tensors.end()) {
    if (config.tied) return {};
    return fail(
        Error(ErrorKind::kMissingTensor, "F32",
              fmt::format("model_type {}: missing tensor \"{}\": tie_word_embeddings is false",
                          config.model_type, kHead)));
  }
  if (!config.tied) return {};
  const auto embedding = find_embedding(tensors);
  if (embedding == tensors.end() || same_content(head->tensor, embedding->tensor)) {
    report.skipped.push_back(fmt::format("{} (tied, stored twice)", head->tensor.source_name));
    tensors.erase(head);
    return {};
  }
  config.tied = false;
  report.warnings.push_back(fmt::format(
      "tie_word_embeddings is true, but {} differs from the embedding: it is used, not tied",
      kHead));
  return {};
}

using NameSet = std::set<std::string, std::less<>>;

/// Biases are where the class has them, and nowhere else (transformers would ignore others).
Result<void> check_biases(const NameSet& present, const HfConfig& config) {
  struct Row {
    std::string_view pattern;
    bool wanted;
  };
  const std::array rows = {Row{"model.layers.{i}.self_attn.q_proj.bias", config.qkv_bias},
                           Row{"model.layers.{i}.self_attn.k_proj.bias", config.qkv_bias},
                           Row{"model.layers.{i}.self_attn.v_proj.bias", config.qkv_bias},
                           Row{"model.layers.{i}.self_attn.o_proj.bias", config.o_bias},
                           Row{"model.layers.{i}.mlp.gate_proj.bias", config.mlp_bias},
                           Row{"model.layers.{i}.mlp.up_proj.bias", config.mlp_bias},
                           Row{"model.layers.{i}.mlp.down_proj.bias", config.mlp_bias}};
  const std::array starcoder2 = {Row{"model.layers.{i}.mlp.c_fc.bias", config.mlp_bias},
                                 Row{"model.layers.{i}.mlp.c_proj.bias", config.mlp_bias}};
  std::vector<Row> wanted(rows.begin(), rows.end());
  if (config.architecture.plain_mlp) {
    wanted.resize(4);  // no gate, and an up of another name
    if (config.table == "starcoder2")
      wanted.insert(wanted.end(), starcoder2.begin(), starcoder2.end());
  }
  if (config.table == "gpt2" || config.table == "starcoder")
    wanted.clear();  // required by the table
  if (config.table == "phi2") wanted.resize(3);
  for (const Row& row : wanted) {
    for (std::uint32_t layer = 0; layer < config.architecture.n_layers; ++layer) {
      const std::string name = fill_name(row.pattern, layer);
      if (present.contains(name) == row.wanted) continue;
      if (row.wanted) {
        return fail(Error(ErrorKind::kMissingTensor, "F32",
                          fmt::format("model_type {}: missing tensor {}",
                                      config.architecture.model_type, json_quote(name))));
      }
      return fail(Error(
          ErrorKind::kFormat, "IMPORT",
          fmt::format("tensor {}: config.json says that there is no such bias", json_quote(name))));
    }
  }
  return {};
}

Result<void> check_tensors(std::vector<NamedTensor>& tensors, const HfConfig& config) {
  NameSet present;
  for (const NamedTensor& named : tensors) present.insert(named.tensor.name);
  const LlamaStyleConfig& c = config.architecture;
  CYB_TRY(check_biases(present, config));
  CYB_TRY(check_presence(gguf_names(config.table), c.n_layers, present, c.model_type, false));
  const SourceTensor& embedding = find_embedding(tensors)->tensor;
  if (embedding.shape.rank() == 2 && embedding.shape[0] == c.vocab_size) return {};
  return fail(Error(ErrorKind::kFormat, "F33",
                    fmt::format("tensor \"{}\": shape {}, config implies [{}, {}]", embedding.name,
                                embedding.shape.text(), c.vocab_size, c.hidden_size)));
}

Result<GenerationConfig> read_generation(const std::string& folder, ImportReport& report) {
  const std::string path = folder + "/" + kGeneration;
  if (!exists(path)) return read_generation_config(nullptr, report);
  CYB_ASSIGN(const nlohmann::json json, read_json_file(path));
  return read_generation_config(&json, report);
}

/// The class's own ids, stated or not, mean nothing where the vocabulary does not have them: they
/// are left out, and said. Other ids outside it are refused later.
StatedIds stated_ids(const HfConfig& config, const GenerationConfig& generation,
                     ImportReport& report) {
  StatedIds ids;
  ids.eos = generation.eos_ids.empty() ? config.eos_ids : generation.eos_ids;
  ids.bos = generation.bos_id ? generation.bos_id : config.bos_id;
  ids.pad = generation.pad_id ? generation.pad_id : config.pad_id;
  const auto is_outside = [&](std::int64_t id) {
    if (id < config.architecture.vocab_size || std::ranges::count(config.class_ids, id) == 0)
      return false;
    report.warnings.push_back(fmt::format("token id {} is not in the vocabulary of {}: left out",
                                          id, config.architecture.vocab_size));
    return true;
  };
  std::erase_if(ids.eos, is_outside);
  if (ids.bos && is_outside(*ids.bos)) ids.bos.reset();
  if (ids.pad && is_outside(*ids.pad)) ids.pad.reset();
  return ids;
}

Result<void> add_text_parts(const std::string& folder, const HfConfig& config, ModelDraft& draft,
                            ImportReport& report) {
  CYB_ASSIGN(GenerationConfig generation, read_generation(folder, report));
  CYB_ASSIGN(FolderTokenizer tokenizer,
             read_folder_tokenizer(folder, stated_ids(config, generation, report), report));
  CYB_TRY(
      place_vocabulary(std::move(tokenizer.parts), config.architecture.vocab_size, draft, report));
  draft.config.set("sampling", std::move(generation.sampling));
  place_template(tokenizer.chat_template, draft, report);
  return {};
}

void describe(const std::string& folder, std::size_t n_shards, ModelDraft& draft,
              ImportReport& report) {
  std::string base = folder;
  while (base.size() > 1 && base.back() == '/') base.pop_back();
  base = shown_text("the folder's name", base.substr(base.rfind('/') + 1), report);
  draft.lineage.set("source", base);
  draft.lineage.set("method", "safetensors-import");
  draft.card = fmt::format("# {}\n\nImported from the checkpoint `{}`.\n", draft.name, base);
  report.source_format =
      n_shards == 1 ? "safetensors" : fmt::format("safetensors, {} shards", n_shards);
}

Result<ModelDraft> build(const std::string& folder, const std::string& file, ImportReport& report,
                         const ImportOptions& options) {
  CYB_ASSIGN(const nlohmann::json json, read_json_file(folder + "/" + kConfig));
  CYB_ASSIGN(HfConfig config, read_config(json, report));
  CYB_ASSIGN(const std::vector<safetensors::Shard> shards,
             safetensors::open_checkpoint(folder, file));
  safetensors::Fp8Scales scales;
  CYB_ASSIGN(std::vector<NamedTensor> tensors, name_tensors(shards, config, scales, report));
  CYB_TRY(settle_head(tensors, config.architecture, report));
  CYB_TRY(check_tensors(tensors, config));
  ModelDraft draft;
  CYB_ASSIGN(draft.name, draft_name(options.name, folder, report));
  draft.config = architecture_config(config.architecture);
  report_architecture(config.architecture, report);
  CYB_TRY(add_text_parts(folder, config, draft, report));
  describe(folder, shards.size(), draft, report);
  SourceNames names;
  CYB_ASSIGN(draft.tensors, scales.siblings(sources_of(tensors), config.fp8));
  for (NamedTensor& named : tensors) {
    names.present.push_back({named.tensor.name, named.tensor.source_name});
    CYB_ASSIGN(DraftTensor tensor,
               arranged(std::move(named.tensor), named.how, config.architecture));
    draft.tensors.push_back(std::move(tensor));
  }
  CYB_TRY(complete_draft(draft, names, report));
  return draft;
}

}  // namespace

Result<ModelDraft> read_folder(const std::string& folder, const std::string& file,
                               ImportReport& report, const ImportOptions& options) {
  auto draft = build(folder, file, report, options);
  if (!draft) return fail(std::move(draft).error().in(folder));
  return draft;
}

Result<ModelDraft> read_folder_tokenizer_alone(const std::string& folder, ImportReport& report,
                                               const ImportOptions& options) {
  const auto make = [&]() -> Result<ModelDraft> {
    CYB_ASSIGN(const GenerationConfig generation, read_generation(folder, report));
    const StatedIds ids{generation.eos_ids, generation.bos_id, generation.pad_id};
    CYB_ASSIGN(FolderTokenizer tokenizer, read_folder_tokenizer(folder, ids, report));
    ModelDraft draft;
    CYB_ASSIGN(draft.name, draft_name(options.name, folder, report));
    CYB_TRY(place_tokenizer_alone(std::move(tokenizer.parts), draft, report));
    place_template(tokenizer.chat_template, draft, report);
    describe(folder, 0, draft, report);
    report.source_format = "tokenizer.json";
    return draft;
  };
  auto draft = make();
  if (!draft) return fail(std::move(draft).error().in(folder));
  return draft;
}

Result<std::vector<std::string>> folder_files(const std::string& folder, const std::string& file) {
  CYB_ASSIGN(std::vector<std::string> out, safetensors::weight_files(folder, file));
  out.push_back(folder + "/" + kConfig);
  if (exists(folder + "/" + kGeneration)) out.push_back(folder + "/" + kGeneration);
  std::ranges::move(tokenizer_files(folder), std::back_inserter(out));
  return out;
}

}  // namespace cyb::hf
