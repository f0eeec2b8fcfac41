// The general reading. Components stay as the file has them, sequences flattened.
#include "text/tokenizer_json_general.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "text/pipeline/fields.hpp"
#include "text/pipeline/pipeline.hpp"

namespace cyb::text {
namespace {

using nlohmann::json;

const json& at(const json& object, const char* key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

Result<json> steps_at(const json& document, const char* key) {
  CYB_ASSIGN(std::vector<json> steps, flat_steps(key, at(document, key)));
  json out = json::array();
  for (json& step : steps) out.push_back(std::move(step));
  return out;
}

/// The ids of added tokens by flag.
json added_flags(const json& document) {
  json out = json::object();
  const json& tokens = at(document, "added_tokens");
  for (const json& token : tokens.is_array() ? tokens : json::array()) {
    for (const char* flag : {"lstrip", "rstrip", "single_word", "normalized"}) {
      if (at(token, flag) == true && at(token, "id").is_number_integer()) {
        out[flag].push_back(at(token, "id"));
      }
    }
  }
  return out;
}

Result<void> read_bpe(Fields& model, TokenizerConfig& config, json& shape) {
  config.type = TokenizerKind::kBpe;
  const json& dropout = model.raw("dropout");
  if (!dropout.is_null() && dropout != 0.0) return fail(model.refused("dropout"));
  CYB_ASSIGN(config.fuse_unk, model.flag("fuse_unk", false));
  CYB_ASSIGN(config.byte_fallback, model.flag("byte_fallback", false));
  CYB_ASSIGN(config.ignore_merges, model.flag("ignore_merges", false));
  CYB_ASSIGN(const std::string prefix, model.text("continuing_subword_prefix", ""));
  if (!prefix.empty()) shape["continuing_subword_prefix"] = prefix;
  CYB_ASSIGN(const std::string suffix, model.text("end_of_word_suffix", ""));
  if (!suffix.empty()) shape["end_of_word_suffix"] = suffix;
  return {};
}

Result<void> read_model(const json& document, TokenizerConfig& config, json& shape) {
  const json& given = at(document, "model");
  Fields model("model", given);
  (void)model.raw("unk_token");
  const std::string type = model.type().empty() ? "BPE" : model.type();
  if (type == "BPE") {
    CYB_TRY(read_bpe(model, config, shape));
  } else if (type == "Unigram") {
    config.type = TokenizerKind::kUnigram;
    CYB_ASSIGN(config.byte_fallback, model.flag("byte_fallback", false));
    const json& unk = model.raw("unk_id");
    if (!unk.is_null()) {
      CYB_ASSIGN(const std::int64_t id, model.integer("unk_id", 0, INT32_MAX));
      config.unk_token_id = static_cast<std::int32_t>(id);
    }
  } else if (type == "WordPiece") {
    config.type = TokenizerKind::kWordPiece;
    CYB_ASSIGN(const std::string prefix, model.text("continuing_subword_prefix", "##"));
    CYB_ASSIGN(const std::int64_t chars, model.integer("max_input_chars_per_word", 0, 512, 100));
    shape["continuing_subword_prefix"] = prefix;
    shape["max_input_chars_per_word"] = chars;
  } else if (type == "WordLevel") {
    config.type = TokenizerKind::kWordLevel;
  } else {
    return fail(model.refused("the model"));
  }
  return model.done();
}

Result<void> append_ids(const json& value, std::vector<std::int32_t>& out, const Fields& fields) {
  if (!value.is_array()) return fail(fields.refused("the ids of a special token"));
  for (const json& id : value) {
    if (!id.is_number_integer() || id < 0 || id > INT32_MAX) {
      return fail(fields.refused("the ids of a special token"));
    }
    out.push_back(id.get<std::int32_t>());
  }
  return {};
}

Result<void> read_template(Fields& fields, Frame& out) {
  const json& single = fields.raw("single");
  const json& tokens = fields.raw("special_tokens");
  (void)fields.raw("pair");  // of two texts: not used here
  bool seen = false;
  for (const json& part : single.is_array() ? single : json::array()) {
    const json& text = at(at(part, "Sequence"), "id");
    if (!text.is_null()) {
      if (seen || text != "A") return fail(fields.refused("a template of more than one text"));
      seen = true;
      continue;
    }
    const json& name = at(at(part, "SpecialToken"), "id");
    if (!name.is_string()) return fail(fields.refused("a part of the template"));
    const json& entry = at(tokens, name.get_ref<const std::string&>().c_str());
    CYB_TRY(append_ids(at(entry, "ids"), seen ? out.after : out.before, fields));
  }
  return seen ? Result<void>() : fail(fields.refused("a template without a text"));
}

Result<void> read_pair(Fields& fields, const char* key, std::vector<std::int32_t>& out) {
  const json& pair = fields.raw(key);
  if (!pair.is_array() || pair.size() != 2) return fail(fields.refused(key));
  return append_ids(json::array({pair[1]}), out, fields);
}

}  // namespace

Result<TokenizerConfig> general_pipeline(const json& document) {
  TokenizerConfig config;
  json shape = json::object();
  CYB_TRY(read_model(document, config, shape));
  json pipeline = json::object();
  CYB_ASSIGN(pipeline["normalizer"], steps_at(document, "normalizer"));
  CYB_ASSIGN(pipeline["pre_tokenizer"], steps_at(document, "pre_tokenizer"));
  CYB_ASSIGN(pipeline["decoder"], steps_at(document, "decoder"));
  if (!shape.empty()) pipeline["model"] = std::move(shape);
  json added = added_flags(document);
  if (!added.empty()) pipeline["added"] = std::move(added);
  config.pipeline = pipeline.dump(-1, ' ', false, json::error_handler_t::replace);
  CYB_TRY(Pipeline::make(config.pipeline, config));
  return config;
}

Result<Frame> read_frame(const json& document) {
  Frame out;
  CYB_ASSIGN(const std::vector<json> steps,
             flat_steps("post_processor", at(document, "post_processor")));
  bool seen = false;
  for (const json& step : steps) {
    Fields fields("post_processor", step);
    if (fields.type() == "ByteLevel") continue;  // offsets only
    if (seen) return fail(fields.refused("a second template"));
    seen = true;
    if (fields.type() == "TemplateProcessing") {
      CYB_TRY(read_template(fields, out));
    } else if (fields.type() == "BertProcessing" || fields.type() == "RobertaProcessing") {
      CYB_TRY(read_pair(fields, "cls", out.before));
      CYB_TRY(read_pair(fields, "sep", out.after));
      CYB_TRY(fields.flag("trim_offsets", true));
      CYB_TRY(fields.flag("add_prefix_space", true));
    } else {
      return fail(fields.refused("the component"));
    }
    CYB_TRY(fields.done());
  }
  return out;
}

void set_frame(const Frame& frame, TokenizerConfig& config) {
  json pipeline = json::parse(config.pipeline, nullptr, false);
  if (!pipeline.is_object()) return;
  pipeline["frame"] = {{"before", frame.before}, {"after", frame.after}};
  config.pipeline = pipeline.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace cyb::text
