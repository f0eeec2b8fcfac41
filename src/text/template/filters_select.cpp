// Filters that apply another filter or test to each item. Their results can be walked once, as
// jinja2's generators.
#include <fmt/format.h>

#include "text/template/filters.hpp"

namespace cyb::tmpl {

namespace {

void map_items(const FilterCall& call, std::vector<Value>& out) {
  Context& context = call.context;
  if (!truth(call.value)) return;  // as jinja2: whatever is false has no items
  const auto named = [&](std::string_view key) -> const Value* {
    for (const auto& [name, value] : call.args.named) {
      if (name == key) return &value;
    }
    return nullptr;
  };
  if (call.args.positional.empty() && named("attribute") != nullptr) {
    const auto given = bind(context, call.name, call.args, {"attribute", "default"});
    const Getter getter(context, given[0], given[1]);
    for (const Value& item : iterate(context, call.value)) {
      context.step();
      out.push_back(getter(item));
    }
    return;
  }
  if (call.args.positional.empty()) context.fail("map requires a filter argument");
  const std::string_view name = text_argument(context, call.args.positional[0]).view();
  const Args rest{call.args.positional.subspan(1), call.args.named};
  for (const Value& item : iterate(context, call.value)) {
    context.step();
    out.push_back(call.host.filter(name, item, rest));
  }
}

void select_items(const FilterCall& call, std::vector<Value>& out) {
  Context& context = call.context;
  if (!truth(call.value)) return;
  const bool by_attribute = call.name.ends_with("attr");
  const bool wanted = call.name.starts_with("select");
  std::span<const Value> args = call.args.positional;
  const Value* attribute = nullptr;
  if (by_attribute) {
    if (args.empty()) context.fail("Missing parameter for attribute name");
    attribute = &args[0];
    args = args.subspan(1);
  }
  const Getter getter(context, attribute);
  for (const Value& item : iterate(context, call.value)) {
    context.step();
    const Value value = getter(item);
    const bool holds = args.empty() ? truth(value)
                                    : call.host.test(text_argument(context, args[0]).view(), value,
                                                     {args.subspan(1), call.args.named});
    if (holds == wanted) out.push_back(item);
  }
}

}  // namespace

Value filter_map(const FilterCall& call) {
  return generator_of(call.context, [&](std::vector<Value>& out) { map_items(call, out); });
}

Value filter_select(const FilterCall& call) {
  return generator_of(call.context, [&](std::vector<Value>& out) { select_items(call, out); });
}

// Attributes only, never items.
Value filter_attr(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"name"}, 1);
  const std::string_view name = text_argument(call.context, *given[0]).view();
  if (call.value.is(Kind::kDict) && call.value.dict->find(name) != nullptr) {
    static constexpr std::string_view kMethods[] = {"get",        "items",   "keys",    "values",
                                                    "copy",       "pop",     "update",  "clear",
                                                    "setdefault", "popitem", "fromkeys"};
    for (const std::string_view method : kMethods) {
      if (method == name) return get_attribute(call.context, call.value, name);
    }
    return undefined(call.context, fmt::format("'dict object' has no attribute '{}'", name));
  }
  return get_attribute(call.context, call.value, name);
}

}  // namespace cyb::tmpl
