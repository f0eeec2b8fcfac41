// GGUF import: metadata to config, tensors to canonical names, q and k rows of `llama` files back
// to half-split order.
#include "import/gguf/gguf_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/json_text.hpp"
#include "import/architecture.hpp"
#include "import/draft.hpp"
#include "import/gguf/gguf_config.hpp"
#include "import/gguf/gguf_source.hpp"
#include "import/gguf/gguf_vocab.hpp"
#include "import/gguf/metadata.hpp"
#include "import/lora/lora_import.hpp"
#include "import/names.hpp"
#include "import/vocabulary_part.hpp"

namespace cyb::gguf {
namespace {

struct Tensors {
  std::vector<SourceTensor> all;
  std::vector<SourceName> names;

  const SourceTensor* find(std::string_view canonical) const {
    const auto at = std::ranges::find(all, canonical, &SourceTensor::name);
    return at == all.end() ? nullptr : &*at;
  }
};

std::set<std::string, std::less<>> canonical_set(const Tensors& tensors) {
  std::set<std::string, std::less<>> out;
  for (const SourceTensor& tensor : tensors.all) out.insert(tensor.name);
  return out;
}

Result<Tensors> name_tensors(const GgufSource& source, const ArchitectureRow& row,
                             ImportReport& report) {
  Tensors out;
  const std::span<const NameRow> table = gguf_names(row.name);
  for (const Part& part : source.parts) {
    for (const TensorInfo& tensor : part.header.tensors) {
      if (carries_no_information(tensor.name)) {
        report.skipped.emplace_back(tensor.name);
        continue;
      }
      auto canonical = canonical_name(table, tensor.name);
      if (!canonical) {
        return fail(
            Error(ErrorKind::kFormat, "IMPORT",
                  fmt::format(
                      "tensor {} is not known for architecture {}: it cannot be left out silently",
                      json_quote(tensor.name), row.name)));
      }
      out.names.push_back({*canonical, std::string(tensor.name)});
      out.all.push_back({std::move(*canonical), std::string(tensor.name), tensor.dtype,
                         tensor.shape, part.file, tensor.offset, tensor.size_bytes});
    }
  }
  return out;
}

/// Values of a rope factor tensor, which moves to the config; empty: there is none.
Result<std::vector<float>> take_factors(Tensors& tensors, std::string_view canonical) {
  std::vector<float> values;
  const auto at = std::ranges::find(tensors.all, canonical, &SourceTensor::name);
  if (at == tensors.all.end()) return values;
  if (at->dtype != DType::kF32 || at->shape.rank() != 1 || at->shape[0] > 4096) {
    return fail(gguf_error(fmt::format("tensor {}: {} {}, want f32 of one dimension",
                                       json_quote(at->source_name), dtype_name(at->dtype),
                                       at->shape.text())));
  }
  values.resize(static_cast<std::size_t>(at->shape[0]));
  std::memcpy(values.data(), at->bytes().data(), values.size() * sizeof(float));
  tensors.all.erase(at);
  std::erase_if(tensors.names, [&](const SourceName& n) { return n.canonical == canonical; });
  return values;
}

Result<TensorFacts> tensor_facts(Tensors& tensors) {
  TensorFacts facts;
  CYB_ASSIGN(facts.short_factors, take_factors(tensors, "cyb.pos.rope_factors_short"));
  CYB_ASSIGN(facts.long_factors, take_factors(tensors, "cyb.pos.rope_factors_long"));
  facts.n_tensors = tensors.all.size();
  const SourceTensor* embedding = tensors.find("model.embed_tokens.weight");
  if (embedding == nullptr) embedding = tensors.find("wte.weight");
  if (embedding == nullptr) return fail(missing_tensor("token_embd.weight", "the import"));
  if (embedding->shape.rank() != 2) {
    return fail(gguf_error(fmt::format(
        "tensor \"token_embd.weight\": shape {}, want two dimensions", embedding->shape.text())));
  }
  facts.embedding_rows = embedding->shape[0];
  facts.has_head = tensors.find("lm_head.weight") != nullptr;
  const SourceTensor* factors = tensors.find("cyb.pos.rope_factors");
  facts.has_rope_factors = factors != nullptr;
  if (factors != nullptr && (factors->dtype != DType::kF32 || factors->shape.rank() != 1)) {
    return fail(
        gguf_error(fmt::format("tensor \"rope_freqs.weight\": {} {}, want f32 of one dimension",
                               dtype_name(factors->dtype), factors->shape.text())));
  }
  return facts;
}

Result<void> draft_tensors(Tensors& tensors, const ArchitectureRow& row,
                           const LlamaStyleConfig& config, ModelDraft& draft) {
  for (SourceTensor& tensor : tensors.all) {
    const bool is_q = tensor.name.find(".self_attn.q_proj.") != std::string::npos;
    const bool is_k = tensor.name.find(".self_attn.k_proj.") != std::string::npos;
    if (row.permuted && (is_q || is_k)) {
      CYB_ASSIGN(DraftTensor moved,
                 unpermuted(std::move(tensor), is_q ? config.n_heads : config.n_kv_heads));
      draft.tensors.push_back(std::move(moved));
    } else {
      draft.tensors.push_back(copied(std::move(tensor)));
    }
  }
  return {};
}

Result<void> read_template(Metadata& metadata, ModelDraft& draft, ImportReport& report) {
  CYB_ASSIGN(const std::string_view text, metadata.text_or("tokenizer.chat_template", ""));
  place_template(text, draft, report);
  for (const std::string_view key : metadata.unread("tokenizer.chat_template.")) {
    report.warnings.push_back(
        fmt::format("{} was not imported: one template per model for now", key));
  }
  return {};
}

Result<void> describe(Metadata& metadata, const GgufSource& source, const std::string& path,
                      ModelDraft& draft, ImportReport& report) {
  const std::string file = shown_text("the file name", path.substr(path.rfind('/') + 1), report);
  CYB_ASSIGN(const std::string_view title, metadata.text_or("general.name", ""));
  CYB_ASSIGN(const std::string_view license, metadata.text_or("general.license", ""));
  draft.lineage.set("source", file);
  draft.lineage.set("method", "gguf-import");
  draft.card =
      fmt::format("# {}\n\nImported from `{}`.\n",
                  title.empty() ? draft.name : shown_text("general.name", title, report), file);
  if (!license.empty()) draft.card += fmt::format("License: {}\n", one_line(license));
  for (const Part& part : source.parts) {
    if (part.header.unclaimed_bytes == 0) continue;
    report.warnings.push_back(
        fmt::format("{}: {} bytes between or after the tensors belong to none and were not read",
                    one_line(part.file->path()), part.header.unclaimed_bytes));
  }
  report.source_format = fmt::format("GGUF version {}", source.parts[0].header.version);
  if (source.parts.size() > 1)
    report.source_format += fmt::format(", {} parts", source.parts.size());
  return {};
}

Result<ModelDraft> build(const std::string& path, const GgufSource& source, ImportReport& report,
                         const ImportOptions& options) {
  Metadata metadata(source.parts[0].header.values);
  CYB_ASSIGN(const std::string_view type, metadata.text_or("general.type", "model"));
  if (type == "adapter") return fail(adapter_is_no_model("it"));
  CYB_ASSIGN(const std::string_view architecture, metadata.text("general.architecture"));
  CYB_ASSIGN(const ArchitectureRow row, find_architecture(architecture));
  CYB_ASSIGN(Tensors tensors, name_tensors(source, row, report));
  CYB_ASSIGN(const TensorFacts facts, tensor_facts(tensors));
  CYB_ASSIGN(const LlamaStyleConfig config, read_config(metadata, row, facts, report));
  CYB_TRY(check_presence(gguf_names(row.name), config.n_layers, canonical_set(tensors),
                         row.model_type, true));
  ModelDraft draft;
  CYB_ASSIGN(draft.name, draft_name(options.name, without_part(path), report));
  draft.config = architecture_config(config);
  report_architecture(config, report);
  CYB_ASSIGN(TokenizerParts parts, read_vocabulary(metadata));
  CYB_TRY(place_vocabulary(std::move(parts), config.vocab_size, draft, report));
  CYB_ASSIGN(ConfigTable sampling, read_sampling(metadata, report));
  draft.config.set("sampling", std::move(sampling));
  CYB_TRY(read_template(metadata, draft, report));
  CYB_TRY(describe(metadata, source, path, draft, report));
  CYB_TRY(draft_tensors(tensors, row, config, draft));
  const SourceNames names{std::move(tensors.names), gguf_names(row.name)};
  CYB_TRY(complete_draft(draft, names, report));
  return draft;
}

Result<ModelDraft> build_tokenizer(const std::string& path, const GgufSource& source,
                                   ImportReport& report, const ImportOptions& options) {
  Metadata metadata(source.parts[0].header.values);
  ModelDraft draft;
  CYB_ASSIGN(draft.name, draft_name(options.name, without_part(path), report));
  CYB_ASSIGN(TokenizerParts parts, read_vocabulary(metadata));
  CYB_TRY(place_tokenizer_alone(std::move(parts), draft, report));
  CYB_TRY(read_template(metadata, draft, report));
  CYB_TRY(describe(metadata, source, path, draft, report));
  return draft;
}

}  // namespace

Result<ModelDraft> read_gguf(const std::string& path, ImportReport& report,
                             const ImportOptions& options) {
  CYB_ASSIGN(const GgufSource source, open_gguf(path));
  auto draft = options.tokenizer_only ? build_tokenizer(path, source, report, options)
                                      : build(path, source, report, options);
  if (!draft) return fail(std::move(draft).error().in(path));
  return draft;
}

}  // namespace cyb::gguf
