#include "cli/commands/replay_saved.hpp"

#include <fmt/format.h>

#include <utility>

namespace cyb::cli {
namespace {

Error bad_saved(std::string_view where, std::string_view what) {
  return {ErrorKind::kInvalidInput, "R01", fmt::format("{}: {}", where, what)};
}

Result<Json> read_answer(Json& root, const SavedAnswer& saved) {
  const auto response = root.find("response"), stream = root.find("stream");
  if (response != root.end() && response->is_object()) return std::move(*response);
  if (stream != root.end() && stream->is_string()) {
    auto joined =
        joined_stream(stream->get_ref<const std::string&>(), saved.path == "/v1/chat/completions");
    if (!joined) return fail(std::move(joined).error().in(saved.where));
    return joined;
  }
  return fail(bad_saved(saved.where,
                        "has no `response`, the answer as one JSON object, and no `stream`, the "
                        "text of a streamed one"));
}

Result<void> read_recipe(SavedAnswer& out) {
  const auto recipe = out.response.find("cyb_llm");
  const auto text = [&](const char* name) -> const std::string* {
    const auto found = recipe->find(name);
    return found != recipe->end() && found->is_string() ? &found->get_ref<const std::string&>()
                                                        : nullptr;
  };
  if (recipe == out.response.end() || !recipe->is_object() || text("model_id") == nullptr ||
      !recipe->contains("seed") || !(*recipe)["seed"].is_number_unsigned()) {
    return fail(bad_saved(
        out.where, "the answer has no recipe (`cyb_llm` with `model_id`, `seed`, `request_hash`)"));
  }
  out.model_id = *text("model_id");
  if (const std::string* hash = text("request_hash")) out.hash = *hash;
  out.request["seed"] = (*recipe)["seed"];
  return {};
}

Result<SavedAnswer> read_saved(Json root, std::string where) {
  SavedAnswer out;
  out.where = std::move(where);
  if (!root.is_object()) {
    return fail(bad_saved(out.where, "is no JSON object with `request` and `response`"));
  }
  if (!root.contains("request") || !root["request"].is_object()) {
    return fail(bad_saved(out.where, "has no `request`, the body that was sent"));
  }
  if (root.contains("path") && root["path"].is_string()) out.path = root["path"];
  if (out.path != "/v1/chat/completions" && out.path != "/v1/completions") {
    return fail(not_built(fmt::format("replay of the route \"{}\"", out.path)));
  }
  out.request = std::move(root["request"]);
  CYB_ASSIGN(out.response, read_answer(root, out));
  CYB_TRY(read_recipe(out));
  out.request["stream"] = false;
  for (const char* name : {"stream_options", "model"}) out.request.erase(name);
  return out;
}

bool is_blank(std::string_view line) noexcept {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

Json parse_flat_json(std::string_view text) {
  constexpr int kMostLevels = 100;
  bool deep = false;
  Json out = Json::parse(
      text,
      [&](int level, Json::parse_event_t, Json&) {
        deep = deep || level > kMostLevels;
        return !deep;
      },
      false);
  return deep ? Json(Json::value_t::discarded) : out;
}

Result<std::vector<SavedAnswer>> read_saved_answers(std::string_view text,
                                                    const std::string& name) {
  std::vector<SavedAnswer> out;
  Json root = parse_flat_json(text);
  if (!root.is_discarded()) {
    CYB_ASSIGN(SavedAnswer saved, read_saved(std::move(root), name));
    out.push_back(std::move(saved));
    return out;
  }
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (is_blank(line)) continue;
    root = parse_flat_json(line);
    if (root.is_discarded()) {
      return fail(bad_saved(name, fmt::format("neither is it JSON, nor is its line {}", number)));
    }
    CYB_ASSIGN(SavedAnswer saved, read_saved(std::move(root), fmt::format("{}:{}", name, number)));
    out.push_back(std::move(saved));
  }
  if (out.empty()) return fail(bad_saved(name, "is empty"));
  return out;
}

}  // namespace cyb::cli
