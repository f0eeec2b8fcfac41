// Methods of strings, dicts, lists and tuples.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/limits.hpp"
#include "text/pretokenizers/char_class.hpp"
#include "text/template/lexer.hpp"
#include "text/template/text_methods.hpp"

namespace cyb::tmpl {
namespace {

Value view(Context& context, const Dict& dict, const char* name,
           Value (*item)(Context&, const Entry&)) {
  Value* items = context.array<Value>(dict.size);
  for (std::uint32_t i = 0; i < dict.size; ++i) items[i] = item(context, dict.entries[i]);
  Value out;
  out.kind = Kind::kView;
  out.list = context.make(List{items, dict.size, name});
  return out;
}

Value dict_method(Context& context, const Dict& dict, std::string_view name, const Args& args) {
  if (name == "get") {
    const auto given = bind(context, "get", args, {"key", "default"}, 1);
    if (const Value* found = dict.find(context, *given[0])) return *found;
    return given[1] != nullptr ? *given[1] : none();
  }
  if (!args.positional.empty() || !args.named.empty())
    context.fail(fmt::format("dict.{}() takes no arguments", name));
  if (name == "keys")
    return view(context, dict, "dict_keys", [](Context&, const Entry& e) { return e.key; });
  if (name == "values")
    return view(context, dict, "dict_values", [](Context&, const Entry& e) { return e.value; });
  if (name == "items") {
    return view(context, dict, "dict_items", [](Context& c, const Entry& e) {
      const Value pair[2] = {e.key, e.value};
      return list_of(c, pair, Kind::kTuple);
    });
  }
  Dict* copy = context.make(Dict{});
  for (const Entry& entry : dict.span()) copy->set(context, entry.key, entry.value);
  return of(copy);
}

Value list_method(Context& context, const Value& self, std::string_view name, const Args& args) {
  if (name == "copy") return list_of(context, self.list->span());
  const auto given = bind(context, name, args, {"value", "start", "stop"}, 1);
  std::int64_t count = 0;
  const std::int64_t size = self.list->size;
  const auto bound = [&](const Value* value, std::int64_t fallback) {
    const std::int64_t i = int_argument(context, value, fallback);
    return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size);
  };
  const std::int64_t begin = name == "index" ? bound(given[1], 0) : 0;
  const std::int64_t end = name == "index" ? bound(given[2], size) : size;
  for (std::int64_t i = begin; i < end; ++i) {
    if (!equal(context, self.list->items[i], *given[0])) continue;
    if (name == "index") return of(i);
    ++count;
  }
  if (name == "index") context.fail("the value is not in the list");
  return of(count);
}

Value cycler_method(const Value& self, std::string_view name) {
  Cycler& cycler = *self.cycler;
  if (name == "reset") {
    cycler.next = 0;
    return none();
  }
  const Value out = cycler.items->items[cycler.next];
  cycler.next = (cycler.next + 1) % cycler.items->size;
  return out;
}

}  // namespace

Value call_method(Context& context, const Method& method, const Args& args) {
  switch (method.self.kind) {
    case Kind::kString:
      if (method.self.text->markup)
        context.fail(fmt::format("{}() of a safe string is not supported", method.name));
      return string_method(context, *method.self.text, method.name, args);
    case Kind::kDict:
      return dict_method(context, *method.self.dict, method.name, args);
    case Kind::kCycler:
      return cycler_method(method.self, method.name);
    default:
      return list_method(context, method.self, method.name, args);
  }
}

}  // namespace cyb::tmpl
