// A stack of our own: how deep a file nests must not decide how deep we call.
#include "cli/config_json.hpp"

#include <cstddef>
#include <vector>

namespace cyb::cli {
namespace {

/// A table or array that is being written to `out`; one of the two is set.
struct Open {
  const ConfigTable* table = nullptr;
  const ConfigArray* array = nullptr;
  Json* out = nullptr;
  std::size_t next = 0;

  std::size_t size() const { return table != nullptr ? table->items().size() : array->size(); }
};

/// A table or array as an empty one of its kind.
Json shallow(const ConfigValue& value) {
  if (value.boolean() != nullptr) return *value.boolean();
  if (value.integer() != nullptr) return *value.integer();
  if (value.real() != nullptr) return *value.real();
  if (value.string() != nullptr) return json_text(*value.string());
  return value.table() != nullptr ? Json::object() : Json::array();
}

bool is_nested(const ConfigValue& value) {
  return value.table() != nullptr || value.array() != nullptr;
}

/// Fills `out`, the empty copy of `root`. A container is filled from its first to its last item,
/// nested ones in between, so that a pointer into it stays valid while it is on the stack: the
/// elements after it are added only when it is done.
void fill(Open root) {
  std::vector<Open> stack{root};
  while (!stack.empty()) {
    Open& top = stack.back();
    if (top.next == top.size()) {
      stack.pop_back();
      continue;
    }
    const std::size_t i = top.next++;
    const ConfigValue& value =
        top.table != nullptr ? top.table->items()[i].second : (*top.array)[i];
    Json* child = nullptr;
    if (top.table != nullptr) {
      // Keys of a table are unique: no search for an equal one.
      auto& object = top.out->get_ref<Json::object_t&>();
      object.emplace_back(json_text(top.table->items()[i].first), shallow(value));
      child = &object.back().second;
    } else {
      top.out->push_back(shallow(value));
      child = &top.out->back();
    }
    if (is_nested(value)) stack.push_back({value.table(), value.array(), child});
  }
}

}  // namespace

Json config_json(const ConfigTable& table) {
  Json out = Json::object();
  fill({.table = &table, .out = &out});
  return out;
}

Json config_json(const ConfigValue& value) {
  Json out = shallow(value);
  if (is_nested(value)) fill({.table = value.table(), .array = value.array(), .out = &out});
  return out;
}

}  // namespace cyb::cli
