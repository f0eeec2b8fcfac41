// Checked access to a component's fields, and the flattening of sequences.
#include "text/pipeline/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cyb::text {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxSteps = 64;

std::string shortened(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > 160) text = text.substr(0, 160) + "...";
  return text;
}

}  // namespace

Fields::Fields(std::string_view where, const json& object) : where_(where), object_(object) {
  const auto found = object.is_object() ? object.find("type") : object.end();
  if (found != object.end() && found->is_string()) type_ = found->get<std::string>();
}

const json& Fields::raw(const char* key) {
  static const json kNull;
  known_.emplace_back(key);
  if (!object_.is_object()) return kNull;
  const auto found = object_.find(key);
  return found == object_.end() ? kNull : *found;
}

Error Fields::refused(std::string_view what) const {
  return not_built(fmt::format("tokenizer.json: {} {}: {}", where_, type_, what));
}

Result<bool> Fields::flag(const char* key, bool fallback) {
  const json& value = raw(key);
  if (value.is_null()) return fallback;
  if (!value.is_boolean()) return fail(refused(fmt::format("{} {}", key, shortened(value))));
  return value.get<bool>();
}

Result<std::string> Fields::text(const char* key, std::optional<std::string> fallback) {
  const json& value = raw(key);
  if (value.is_null() && fallback) return std::move(*fallback);
  if (!value.is_string()) return fail(refused(fmt::format("{} {}", key, shortened(value))));
  return value.get<std::string>();
}

Result<std::int64_t> Fields::integer(const char* key, std::int64_t min, std::int64_t max,
                                     std::optional<std::int64_t> fallback) {
  const json& value = raw(key);
  if (value.is_null() && fallback) return *fallback;
  const bool good = value.is_number_integer() && value >= min && value <= max;
  if (!good) return fail(refused(fmt::format("{} {}", key, shortened(value))));
  return value.get<std::int64_t>();
}

Result<void> Fields::done() const {
  if (!object_.is_object()) return {};
  for (const auto& [key, value] : object_.items()) {
    if (std::ranges::find(known_, std::string_view(key)) != known_.end()) continue;
    return fail(refused(fmt::format("{} {}", key, shortened(value))));
  }
  return {};
}

Result<std::vector<json>> flat_steps(std::string_view where, const json& component) {
  std::vector<json> out;
  std::vector<json> left{component};  // last first
  std::size_t seen = 0;
  while (!left.empty()) {
    const json step = std::move(left.back());
    left.pop_back();
    if (step.is_null()) continue;
    if (++seen > kMaxSteps) {
      return fail(not_built(fmt::format("tokenizer.json: {}: over {} steps", where, kMaxSteps)));
    }
    if (step.is_array()) {
      left.insert(left.end(), step.rbegin(), step.rend());
      continue;
    }
    Fields fields(where, step);
    if (fields.type().empty()) {
      return fail(not_built(fmt::format("tokenizer.json: {}: {}", where, shortened(step))));
    }
    if (fields.type() != "Sequence") {
      out.push_back(step);
      continue;
    }
    const json* list = nullptr;
    for (const char* key : {"normalizers", "pretokenizers", "processors", "decoders"}) {
      const json& value = fields.raw(key);
      if (!value.is_null()) list = &value;
    }
    CYB_TRY(fields.done());
    if (list == nullptr || !list->is_array()) return fail(fields.refused("no steps"));
    left.insert(left.end(), list->rbegin(), list->rend());
  }
  return out;
}

}  // namespace cyb::text
