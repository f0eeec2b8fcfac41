// Chat template and what ends an answer.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "api/check/rows.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "import/gguf/gguf_file.hpp"

namespace cyb::api {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kAnswer = "CYBANSWER";

std::string rendered(const ChatTemplate& chat, const ChatInput& input) {
  const auto text = chat.render(input);
  return text ? joined_text(*text) : "error: " + text.error().message();
}

void compare_renderings(const TextSide& model, const TextSide* source, Rows& rows) {
  std::size_t n = 0, n_errors = 0;
  for (const ChatInput& input : check_conversations()) {
    const auto got = model.chat->render(input);
    ++n;
    n_errors += !got;
    if (source != nullptr && source->chat != nullptr) {
      const std::string problem =
          text_difference(fmt::format("conversation {}", n), rendered(*model.chat, input),
                          rendered(*source->chat, input));
      if (!problem.empty()) return rows.fail(problem);
    }
    const auto ids = model.chat->encode(input, *model.tokenizer);
    if (!got || !ids) continue;
    const auto bos = model.parts.config.bos_token_id;
    const auto n_bos = bos ? std::ranges::count(*ids, *bos) : 0;
    const bool is_stop_too = bos && std::ranges::count(model.parts.config.eos_token_ids, *bos) != 0;
    if (model.parts.config.add_bos_token && n_bos != 1 && !is_stop_too)
      return rows.fail(fmt::format("conversation {} has BOS {} times, not once", n, n_bos));
  }
  if (n_errors == n) return rows.fail(fmt::format("the template refuses all {} conversations", n));
  std::string good = fmt::format("{} conversations", n);
  if (n_errors > 0) good += fmt::format(", {} of them refused by the template itself", n_errors);
  good += source != nullptr && source->chat != nullptr ? ", equal to the source's" : "";
  rows.pass(std::move(good));
}

/// Ids that the source's own files say end an answer.
std::vector<std::int64_t> raw_stop_ids(const Source& from) {
  std::vector<std::int64_t> out;
  std::error_code code;
  if (std::filesystem::is_directory(from.path, code)) {
    const auto file = MappedFile::open(from.path + "/generation_config.json");
    if (!file) return out;
    const Json json = Json::parse((*file)->text(), nullptr, false);
    if (!json.is_object() || !json.contains("eos_token_id")) return out;
    const Json& eos = json["eos_token_id"];
    if (eos.is_number_integer()) out.push_back(eos.get<std::int64_t>());
    for (const Json& id : eos.is_array() ? eos : Json::array()) {
      if (id.is_number_integer()) out.push_back(id.get<std::int64_t>());
    }
    return out;
  }
  const auto file = MappedFile::open(from.path);
  if (!file || !(*file)->text().starts_with("GGUF")) return out;
  const auto parsed = gguf::GgufFile::parse((*file)->bytes());
  if (!parsed) return out;
  for (const gguf::Value& value : parsed->values) {
    const bool eos =
        value.key == "tokenizer.ggml.eos_token_id" || value.key == "tokenizer.ggml.eot_token_id";
    if (!eos || value.bytes.size() != 4) continue;
    std::uint32_t id = 0;
    std::memcpy(&id, value.bytes.data(), sizeof id);
    out.push_back(id);
  }
  return out;
}

/// The token behind an answer in a rendered conversation; nullopt: the template writes none.
std::optional<std::int32_t> end_of_turn(const TextSide& side) {
  ChatInput input = check_conversations().front();
  input.add_generation_prompt = false;
  input.messages.push_back(ChatValue::object(
      {{"role", ChatValue::of("assistant")}, {"content", ChatValue::of(kAnswer)}}));
  const auto segments = side.chat->render(input);
  if (!segments) return std::nullopt;
  const std::string text = joined_text(*segments);
  const std::size_t at = text.rfind(kAnswer);
  if (at == std::string::npos) return std::nullopt;
  std::string_view rest = std::string_view(text).substr(at + kAnswer.size());
  while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\n')) rest.remove_prefix(1);
  if (rest.empty()) return std::nullopt;
  const auto ids = side.tokenizer->encode(rest, {.parse_special = true, .add_special = false});
  if (!ids || ids->empty() || !side.tokenizer->is_control(ids->front())) return std::nullopt;
  return ids->front();
}

void compare_stops(const TextSide& model, const TextSide* source, const Source& from, Rows& rows) {
  const std::vector<std::int32_t> ids = stop_ids_of(model);
  const auto has = [&](std::int64_t id) { return std::ranges::count(ids, id) != 0; };
  const auto name = [&](std::int64_t id) {
    const bool known = id >= 0 && id < model.tokenizer->vocab_size();
    return known ? json_quote(model.tokenizer->vocabulary().text(static_cast<std::int32_t>(id)))
                 : std::string("not in the vocabulary");
  };
  if (source != nullptr && source->tokenizer != nullptr) {
    const std::vector<std::int32_t> want = stop_ids_of(*source);
    for (const std::int32_t id : want) {
      if (!has(id))
        return rows.fail(fmt::format("{} ({}) is a stop of the source, not here", id, name(id)));
    }
    for (const std::int32_t id : ids) {
      if (std::ranges::count(want, id) == 0)
        return rows.fail(fmt::format("{} ({}) is a stop here, not of the source", id, name(id)));
    }
    for (const std::int64_t id : raw_stop_ids(from)) {
      if (id < model.tokenizer->vocab_size() && !has(id))
        return rows.fail(
            fmt::format("{} ({}) ends an answer by the source's file, not here", id, name(id)));
    }
  }
  if (ids.empty()) return rows.fail("no token ends an answer");
  std::string good;
  for (const std::int32_t id : ids)
    good += fmt::format("{}{} {}", good.empty() ? "" : ", ", id, name(id));
  const auto end = model.chat != nullptr ? end_of_turn(model) : std::nullopt;
  if (end && !has(*end)) {
    return rows.fail(fmt::format("the template ends an answer with {} ({}), which is no stop token",
                                 name(*end), *end));
  }
  if (end) good += fmt::format("; the template ends an answer with {}", name(*end));
  rows.pass(std::move(good));
}

}  // namespace

std::string text_difference(std::string_view name, std::string_view got, std::string_view want) {
  if (got == want) return {};
  const std::size_t at =
      static_cast<std::size_t>(std::ranges::mismatch(got, want).in1 - got.begin());
  const std::size_t from = at < 20 ? 0 : at - 20;
  return fmt::format("{}: differs from byte {} on: {} instead of {}", name, at,
                     json_quote(got.substr(from, 50)), json_quote(want.substr(from, 50)));
}

std::vector<std::int32_t> stop_ids_of(const TextSide& side) {
  std::set<std::int32_t> ids(side.parts.config.eos_token_ids.begin(),
                             side.parts.config.eos_token_ids.end());
  if (side.chat != nullptr) {
    for (const std::string& text : side.chat->stop_strings()) {
      const std::int32_t id = side.tokenizer->vocabulary().find(text);
      if (id >= 0) ids.insert(id);
    }
  }
  return {ids.begin(), ids.end()};
}

Result<void> check_chat(const Model& model, const TextSide& side, const TextSide* source,
                        const Source& from, Rows& rows) {
  CYB_TRY(rows.begin("template"));
  const bool source_has = source != nullptr && !source->template_source.empty();
  if (side.tokenizer == nullptr) {
    for (const char* name : {"template", "renderings", "stop tokens"})
      rows.skip(name, "the model has no tokenizer");
    return {};
  }
  if (!side.chat_problem.empty()) {
    rows.fail("it cannot be used: " + side.chat_problem);
  } else if (model.chat() == nullptr && !source_has) {
    rows.not_run("the model has no chat template");
  } else if (source != nullptr && side.template_source != source->template_source) {
    rows.fail(text_difference("template", side.template_source, source->template_source));
  } else {
    rows.pass(fmt::format("{} bytes, {}", side.template_source.size(),
                          source != nullptr ? "the source's own" : "it can be used"));
  }
  CYB_TRY(rows.begin("renderings"));
  if (side.chat == nullptr) {
    rows.not_run("there is no template that can be used");
  } else {
    compare_renderings(side, source, rows);
  }
  CYB_TRY(rows.begin("stop tokens"));
  compare_stops(side, source, from, rows);
  return {};
}

}  // namespace cyb::api
