// parse_chat_json: the JSON library's tree, bounded in depth, as ChatValue.
#include "text/template/chat_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/json_text.hpp"

namespace cyb {
namespace {

using Json = nlohmann::ordered_json;

Error refused(std::string_view what, std::string_view why) {
  return Error(ErrorKind::kInvalidInput, "InvalidInput", fmt::format("{} {}", what, why));
}

/// Depth is bounded by the parser's callback.
ChatValue value_of(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return ChatValue::of(json.get<bool>());
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return ChatValue::of(json.get<std::int64_t>());
    case Json::value_t::number_float:
      return ChatValue::of(json.get<double>());
    case Json::value_t::string:
      return ChatValue::of(std::string_view(json.get_ref<const std::string&>()));
    case Json::value_t::array: {
      std::vector<ChatValue> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(value_of(item));
      return ChatValue::list(std::move(items));
    }
    case Json::value_t::object: {
      std::vector<std::pair<std::string, ChatValue>> members;
      members.reserve(json.size());
      for (const auto& [key, member] : json.items()) members.emplace_back(key, value_of(member));
      return ChatValue::object(std::move(members));
    }
    default:
      return ChatValue::null();
  }
}

Json json_of(const ChatValue& value) {
  using Kind = ChatValue::Kind;
  switch (value.kind) {
    case Kind::kBool:
      return value.boolean;
    case Kind::kInt:
      return value.integer;
    case Kind::kFloat:
      return value.number;
    case Kind::kString:
      return value.text;
    case Kind::kList: {
      Json out = Json::array();
      for (const ChatValue& item : value.items) out.push_back(json_of(item));
      return out;
    }
    case Kind::kObject: {
      Json out = Json::object();
      for (const auto& [key, member] : value.members) out[key] = json_of(member);
      return out;
    }
    default:
      return nullptr;
  }
}

/// What the tree cannot carry on to a template, or would change in silence.
struct Watch {
  bool too_deep = false, too_large = false;
  std::string repeated{};                               // the first key that an object has twice
  std::vector<std::unordered_set<std::string>> keys{};  // of the objects that are open

  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    const bool begins =
        event == Json::parse_event_t::array_start || event == Json::parse_event_t::object_start;
    too_deep |= begins && depth >= kMaxChatJsonDepth;
    if (event == Json::parse_event_t::value && parsed.is_number_unsigned())
      too_large |= parsed.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
    // The library reads an integer of more than 64 bits as a number with a fraction.
    if (event == Json::parse_event_t::value && parsed.is_number_float())
      too_large |= !std::isfinite(parsed.get<double>());
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && repeated.empty()) watch_key(parsed);
    return !too_deep;  // what is deeper is not kept
  }

  void watch_key(const Json& key) {
    const auto& text = key.get_ref<const std::string&>();
    if (!keys.back().insert(text).second) repeated = "\"" + text + "\"";
  }
};

}  // namespace

Result<ChatValue> parse_chat_json(std::string_view text, std::string_view what) {
  Watch watch;
  Json json;
  try {
    json = Json::parse(text, std::ref(watch));
  } catch (const Json::exception& error) {
    std::string_view why = error.what();
    if (const auto end = why.find("] "); end != std::string_view::npos) why.remove_prefix(end + 2);
    return fail(refused(what, fmt::format("is not JSON: {}", why)));
  }
  if (watch.too_deep)
    return fail(
        refused(what, fmt::format("is nested more than {} levels deep", kMaxChatJsonDepth)));
  watch.too_large |= find_wide_integer(text) != std::string_view::npos;
  if (!watch.repeated.empty())
    return fail(
        refused(what, fmt::format("has the key {} twice in one object",
                                  watch.repeated.size() < 64 ? watch.repeated : "of a member")));
  if (watch.too_large) return fail(refused(what, "has a number that does not fit 64 bits"));
  return value_of(json);
}

std::string chat_json_text(const ChatValue& value) {
  return json_of(value).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace cyb
