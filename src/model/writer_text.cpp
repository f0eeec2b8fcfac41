// Checks and rendering of a draft's text parts. Parts come in canonical order, the padding puts the
// first weight byte on a page.
#include "model/writer_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/checked.hpp"
#include "base/limits.hpp"
#include "base/utf8.hpp"
#include "model/config_check.hpp"
#include "model/format_error.hpp"
#include "model/identity.hpp"
#include "model/parts.hpp"
#include "model/tensor_index.hpp"
#include "model/toml_cursor.hpp"
#include "model/vocab_text.hpp"

namespace cyb {
namespace {

/// `config` with `parameters` right after `model_type`, where readers of the file expect it.
ConfigTable with_parameters(const ConfigTable& config, std::uint64_t parameters) {
  ConfigTable out;
  const auto value = static_cast<std::int64_t>(parameters);
  const bool stated = config.find("parameters") != nullptr;
  for (const auto& [key, old_value] : config.items()) {
    if (key == "parameters") {
      out.append(key, value);
    } else {
      out.append(key, old_value);
      if (key == "model_type" && !stated) out.append("parameters", value);
    }
  }
  return out;
}

/// F06: a body line that would read as a delimiter.
Result<void> check_body_lines(std::string_view name, std::string_view body) {
  std::size_t at = body.starts_with("~~~") ? 0 : body.find("\n~~~");
  if (at == std::string_view::npos) return {};
  if (at != 0 || !body.starts_with("~~~")) ++at;
  const auto line = std::ranges::count(body.substr(0, at), '\n') + 1;
  return fail(format_error("F06", fmt::format("{}: body line {} starts with \"~~~\"", name, line)));
}

Result<void> check_tensor_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxKeyBytes) {
    return fail(invalid_input(
        fmt::format("a tensor name has {} bytes, want 1 to {}", name.size(), kMaxKeyBytes)));
  }
  const std::size_t bad = utf8_find_invalid(name);
  if (bad == std::string_view::npos) return {};
  return fail(format_error(
      "F05",
      fmt::format("tensors: invalid UTF-8 at byte {} of the name \"{}\"", bad, printable(name))));
}

}  // namespace

Result<WriterText> WriterText::make(const ModelDraft& draft) {
  if (!is_model_name(draft.name)) {
    return fail(invalid_input(fmt::format("model name \"{}\": want 1 to 128 of A-Z a-z 0-9 . _ -",
                                          printable(draft.name))));
  }
  WriterText out(draft);
  CYB_TRY(out.lay_out());
  CYB_TRY(out.make_config());
  CYB_TRY(out.make_parts());
  return out;
}

Result<void> WriterText::lay_out() {
  if (draft_->tensors.size() > kMaxTensors) {
    return fail(invalid_input(
        fmt::format("{} tensors, the limit is {}", draft_->tensors.size(), kMaxTensors)));
  }
  std::uint64_t end = 0;
  for (const DraftTensor& tensor : draft_->tensors) {
    CYB_TRY(check_tensor_name(tensor.name));
    CYB_ASSIGN(const std::uint64_t bytes,
               stored_tensor_bytes(tensor.name, tensor.dtype, tensor.shape));
    const auto offset = checked_round_up(end, kWeightsAlignment);
    const auto next = offset ? checked_add(*offset, bytes) : std::nullopt;
    if (!next || *next > static_cast<std::uint64_t>(INT64_MAX)) {
      return fail(format_error("F20", fmt::format("tensor \"{}\": shape {}: overflow",
                                                  printable(tensor.name), tensor.shape.text())));
    }
    entries_.push_back({tensor.name, tensor.dtype, tensor.shape, *offset, bytes, std::nullopt});
    if (draft_->tensor_hashes) entries_.back().hash = Digest{};
    end = *next;
  }
  weights_bytes_ = end;
  return {};
}

Result<void> WriterText::make_config() {
  std::map<std::string_view, const TensorEntry*> by_name;
  for (const TensorEntry& entry : entries_) {
    if (!by_name.emplace(entry.name, &entry).second)
      return fail(duplicate_error("key", entry.name));
  }
  const TensorFinder find = [&](std::string_view name) -> const TensorEntry* {
    const auto it = by_name.find(name);
    return it == by_name.end() ? nullptr : it->second;
  };
  CYB_TRY(check_scale_siblings(entries_, find));
  const auto parameters = count_parameters(entries_, find);
  if (!parameters || *parameters > static_cast<std::uint64_t>(INT64_MAX)) {
    return fail(config_out_of_range("parameters", "more than 2^63 weight elements"));
  }
  config_ = with_parameters(draft_->config, *parameters);
  CYB_TRY(check_config(config_));
  return check_config_against_tensors(config_, entries_, find);
}

Result<void> WriterText::add_part(std::string_view name, std::string_view format,
                                  std::string body) {
  if (!body.empty() && body.back() != '\n') body += '\n';
  CYB_TRY(check_text(body, name, format != "toml"));
  CYB_TRY(check_body_lines(name, body));
  parts_.push_back({name, format, std::move(body)});
  return {};
}

Result<void> WriterText::check_graph() const {
  CYB_ASSIGN(const std::vector<std::byte> bytes, graph_from_hex(*draft_->graph_hex));
  CYB_ASSIGN(const Graph graph, decode_graph(bytes));
  std::map<std::string_view, const TensorEntry*> by_name;
  for (const TensorEntry& entry : entries_) by_name.emplace(entry.name, &entry);
  const WeightLookup weights = [&](std::string_view name) -> std::optional<TensorSpec> {
    const auto it = by_name.find(name);
    if (it == by_name.end()) return std::nullopt;
    return TensorSpec::of(it->second->dtype, it->second->shape);
  };
  CYB_TRY(validate_graph(graph, weights));
  return {};
}

Result<void> WriterText::make_parts() {
  const std::size_t n_tokens = draft_->vocab.tokens.size();
  const auto expected = expected_tokens(config_);
  if (expected && *expected != n_tokens) {
    return fail(
        format_error("F34", fmt::format("vocab: {} tokens, config says {}", n_tokens, *expected)));
  }
  CYB_ASSIGN(std::string vocab, write_vocab(draft_->vocab));
  CYB_TRY(add_part("card", "md", draft_->card));
  CYB_TRY(add_part("config", "toml", write_toml(config_)));
  CYB_TRY(add_part("program", "tri", draft_->program));
  if (draft_->graph_hex) {
    CYB_TRY(check_graph());
    CYB_TRY(add_part("graph", "hex", *draft_->graph_hex));
  }
  CYB_TRY(add_part("tensors", "toml", ""));
  CYB_TRY(add_part("vocab", "toml", std::move(vocab)));
  if (draft_->chat) CYB_TRY(add_part("chat", "toml", write_toml(*draft_->chat)));
  return add_part("eval", "toml", draft_->eval);
}

std::string WriterText::tensors_body() const {
  return write_tensor_index(entries_);
}

Digest WriterText::model_id(const Digest& weights_hash) const {
  const std::string tensors = tensors_body();
  std::vector<IdentityPart> parts;
  for (const std::string_view name : kIdentityParts) {
    const auto part = std::ranges::find(parts_, name, &Part::name);
    if (part == parts_.end()) continue;
    parts.push_back({name, name == "tensors" ? std::string_view(tensors) : part->body});
  }
  return model_id_of(parts, weights_bytes_, weights_hash);
}

std::string WriterText::frontmatter(const Digest& model_id, const Digest& weights_hash) const {
  ConfigTable out;
  ConfigTable& cyb = out.table("cyb");
  cyb.set("types", ConfigArray{"model"});
  cyb.set("name", draft_->name);
  cyb.set("format_version", kFormatVersion);
  if (draft_->state_id) {
    ConfigTable& id = cyb.table("id");
    id.set("model", digest_text(model_id));
    if (draft_->state_weights_hash) id.set("weights", digest_text(weights_hash));
  }
  if (!draft_->lineage.empty()) cyb.set("lineage", draft_->lineage);
  ConfigArray files;
  const auto add = [&](std::string_view name, std::string_view format) -> ConfigTable& {
    ConfigTable entry;
    entry.set("name", std::string(name));
    entry.set("format", std::string(format));
    files.emplace_back(std::move(entry));
    return *files.back().table();
  };
  for (const Part& part : parts_) add(part.name, part.format);
  add("pad", "pad");
  ConfigTable& weights = add("weights", "tensors");
  weights.set("size", static_cast<std::int64_t>(weights_bytes_));
  weights.set("align", static_cast<std::int64_t>(kWeightsAlignment));
  out.set("files", std::move(files));
  return write_toml(out) + '\n';
}

std::string WriterText::render(const Digest& model_id, const Digest& weights_hash) const {
  constexpr std::string_view kEnd = "\n~~~weights\n";
  std::string out = frontmatter(model_id, weights_hash);
  for (const Part& part : parts_) {
    out.append("~~~").append(part.name).append("\n");
    out += part.name == "tensors" ? tensors_body() : part.body;
  }
  out += "~~~pad\n";
  const std::size_t rest = (out.size() + kEnd.size()) % kWeightsAlignment;
  out.append(rest == 0 ? 0 : kWeightsAlignment - rest, ' ');
  return out.append(kEnd);
}

}  // namespace cyb
