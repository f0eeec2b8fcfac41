// Reading of a pipeline. Its text is JSON with the keys normalizer, pre_tokenizer, decoder (lists
// of steps), frame, added and model; anything else is refused.
#include "text/pipeline/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "text/pipeline/fields.hpp"

namespace cyb::text {
namespace {

using nlohmann::json;

Error bad(std::string_view what) {
  return invalid_config("tokenizer.pipeline", what);
}

Result<std::vector<std::int32_t>> ids_of(const json& value, std::string_view what) {
  std::vector<std::int32_t> out;
  if (value.is_null()) return out;
  if (!value.is_array()) return fail(bad(fmt::format("{} is not a list of ids", what)));
  for (const json& id : value) {
    if (!id.is_number_integer() || id < 0 || id > INT32_MAX) {
      return fail(bad(fmt::format("{} is not a list of ids", what)));
    }
    out.push_back(id.get<std::int32_t>());
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<Pipeline>> Pipeline::make(std::string_view text,
                                                 const TokenizerConfig& config) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) return fail(bad("is not a table"));
  auto out = std::make_unique<Pipeline>();
  Fields fields("pipeline", document);
  CYB_ASSIGN(const std::vector<json> normal, flat_steps("normalizer", fields.raw("normalizer")));
  CYB_ASSIGN(const std::vector<json> pre, flat_steps("pre_tokenizer", fields.raw("pre_tokenizer")));
  const json& decoder = fields.raw("decoder");
  const json& model = fields.raw("model");
  const json& added = fields.raw("added");
  const json& frame = fields.raw("frame");
  CYB_TRY(fields.done());

  Fields shape("model", model);
  CYB_ASSIGN(out->word_prefix_, shape.text("continuing_subword_prefix", ""));
  CYB_ASSIGN(out->word_suffix_, shape.text("end_of_word_suffix", ""));
  CYB_ASSIGN(const std::int64_t chars, shape.integer("max_input_chars_per_word", 0, 512, 100));
  out->max_word_chars_ = static_cast<std::size_t>(chars);
  CYB_ASSIGN(const std::string ranks, shape.text("ranks", "merges"));
  if (ranks != "merges" && ranks != "ids") return fail(shape.refused("ranks"));
  out->ranks_are_ids_ = ranks == "ids";
  CYB_TRY(shape.done());

  for (const json& step : normal) CYB_TRY(out->add_normalizer(step));
  if (!decoder.is_null()) {
    CYB_ASSIGN(const std::vector<json> steps, flat_steps("decoder", decoder));
    CYB_ASSIGN(out->decoding_, Decoding::make(steps));
    // The type's own decoder does the same, and leaves the text of added tokens alone.
    const bool plain = steps.size() == 1 && Fields("", steps[0]).type() == "ByteLevel";
    if (config.type == TokenizerKind::kBpe && plain) out->decoding_.reset();
  }
  out->takes_bytes_ = !out->decoding_ && config.type == TokenizerKind::kBpe &&
                      !config.byte_fallback && out->word_suffix_.empty() &&
                      out->word_prefix_.empty() && !pre.empty() &&
                      Fields("", pre.back()).type() == "ByteLevel";
  for (std::size_t i = 0; i < pre.size(); ++i) {
    CYB_ASSIGN(std::unique_ptr<PreTokenizerStep> made,
               make_pre_tokenizer(pre[i], out->takes_bytes_ && i + 1 == pre.size()));
    out->pre_tokenizers_.push_back(std::move(made));
  }
  Fields flags("added", added);
  const std::pair<const char*, std::vector<std::int32_t>*> lists[] = {
      {"lstrip", &out->flags_.lstrip},
      {"rstrip", &out->flags_.rstrip},
      {"single_word", &out->flags_.single_word},
      {"normalized", &out->flags_.normalized}};
  for (const auto& [key, list] : lists) {
    CYB_ASSIGN(*list, ids_of(flags.raw(key), key));
    std::ranges::sort(*list);
  }
  CYB_TRY(flags.done());
  Fields around("frame", frame);
  CYB_ASSIGN(out->before_, ids_of(around.raw("before"), "frame.before"));
  CYB_ASSIGN(out->after_, ids_of(around.raw("after"), "frame.after"));
  CYB_TRY(around.done());
  out->has_frame_ = !frame.is_null();
  return out;
}

Result<void> Pipeline::add_normalizer(const json& step) {
  Fields fields("normalizer", step);
  if (fields.type() != "SentencePiece") {
    CYB_ASSIGN(std::unique_ptr<NormalizerStep> made, make_normalizer(step));
    normalizers_.push_back(std::move(made));
    return {};
  }
  if (symbols_) return fail(fields.refused("there are two"));
  symbols_ = std::make_shared<SpecialMatcher>();
  CYB_ASSIGN(const std::int64_t n_pieces, fields.integer("pieces", 0, INT32_MAX));
  n_pieces_ = static_cast<std::int32_t>(n_pieces);
  CYB_ASSIGN(auto made, SentencePieceNormalizer::make(fields, symbols_));
  CYB_TRY(fields.done());
  strips_all_spaces_ = made->options().remove_extra_whitespaces;
  strips_prefix_ = made->options().add_dummy_prefix || strips_all_spaces_;
  normalizers_.push_back(std::move(made));
  return {};
}

Result<void> Pipeline::normalize(std::string& text) const {
  for (const auto& step : normalizers_) CYB_TRY(step->apply(text));
  return {};
}

Result<void> Pipeline::cut(Pieces& pieces) const {
  for (const auto& step : pre_tokenizers_) CYB_TRY(step->apply(pieces));
  return {};
}

}  // namespace cyb::text
