// Attributes, items and slices. What Python would find and this engine does not have is refused by
// name.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/pretokenizers/char_class.hpp"
#include "text/template/interpreter.hpp"
#include "text/template/library.hpp"

namespace cyb::tmpl {
namespace {

using Names = std::initializer_list<std::string_view>;

bool among(std::string_view name, Names names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Value method(Context& context, const Value& self, std::string_view name) {
  Value out;
  out.kind = Kind::kMethod;
  out.method = context.make(Method{self, name});
  return out;
}

Value missing(Context& context, const Value& value, std::string_view name) {
  return undefined(context,
                   fmt::format("'{} object' has no attribute '{}'", type_name(value), name));
}

Value unsafe(Context& context, const Value& value, std::string_view name) {
  return undefined(context, fmt::format("access to attribute '{}' of '{}' object is unsafe.", name,
                                        type_name(value)));
}

[[noreturn]] void refuse(Context& context, const Value& value, std::string_view name) {
  context.fail(fmt::format("the attribute '{}' of {} is not supported", name, type_name(value)));
}

/// The part of get_attribute that Python's getattr() decides; false if there is no such attribute.
bool builtin_attribute(Context& context, const Value& value, std::string_view name, Value& out) {
  switch (value.kind) {
    case Kind::kString:
      if (is_string_method(name)) {
        out = method(context, value, name);
        return true;
      }
      if (among(name,
                {"encode", "expandtabs", "format_map", "isidentifier", "maketrans", "translate"}))
        refuse(context, value, name);
      return false;
    case Kind::kDict:
      if (among(name, {"get", "items", "keys", "values", "copy"})) {
        out = method(context, value, name);
        return true;
      }
      if (among(name, {"pop", "update", "clear", "setdefault", "popitem"})) {
        out = unsafe(context, value, name);
        return true;
      }
      if (name == "fromkeys") refuse(context, value, name);
      return false;
    case Kind::kList:
    case Kind::kTuple:
      if (among(name, {"index", "count"}) || (value.is(Kind::kList) && name == "copy")) {
        out = method(context, value, name);
        return true;
      }
      if (value.is(Kind::kList) && among(name, {"append", "extend", "insert", "pop", "remove",
                                                "reverse", "sort", "clear"})) {
        out = unsafe(context, value, name);
        return true;
      }
      return false;
    case Kind::kNamespace:
      if (const Value* found = value.dict->find(name)) {
        out = *found;
        return true;
      }
      return false;
    case Kind::kLoop:
      out = loop_attribute(context, value, name);
      return !out.is(Kind::kUndefined) || out.text != nullptr;
    case Kind::kCycler:
      if (among(name, {"next", "reset"})) {
        out = method(context, value, name);
        return true;
      }
      if (name == "current") {
        out = value.cycler->items->items[value.cycler->next];
        return true;
      }
      return false;
    default:
      return false;
  }
}

bool may_have_more(const Value& value, std::string_view name) {
  switch (value.kind) {
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return among(
          name, {"real", "imag", "numerator", "denominator", "conjugate", "bit_length", "bit_count",
                 "to_bytes", "from_bytes", "as_integer_ratio", "is_integer", "hex", "fromhex"});
    case Kind::kTuple:
      return among(name, {"grouper", "list"});  // of groupby's pairs
    case Kind::kMacro:
      return among(name, {"name", "arguments", "catch_kwargs", "catch_varargs", "caller"});
    case Kind::kRange:
      return among(name, {"start", "stop", "step", "index", "count"});
    case Kind::kView:
      return among(name, {"mapping", "isdisjoint"});
    case Kind::kIterator:
      return among(name,
                   {"send", "throw", "close", "gi_frame", "gi_code", "gi_running", "gi_yieldfrom"});
    case Kind::kJoiner:
      return among(name, {"sep", "used"});
    case Kind::kCycler:
      return among(name, {"items", "pos"});
    default:
      return false;
  }
}

std::int64_t clamped(Context& context, const Value& bound, std::int64_t fallback, std::int64_t size,
                     bool forward) {
  if (bound.is(Kind::kNone)) return fallback;
  if (!bound.is_integral())
    context.fail("slice indices must be integers or None or have an __index__ method");
  const std::int64_t i = bound.as_int();
  const std::int64_t low = forward ? 0 : -1, high = forward ? size : size - 1;
  if (i < 0) return i < -size ? low : std::max(i + size, low);
  return std::min(i, high);
}

struct Slice {
  std::int64_t start = 0, stop = 0, step = 1;
  std::int64_t count() const {
    if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
    return start > stop ? (start - stop - 1) / -step + 1 : 0;
  }
};

Slice resolve(Context& context, std::int64_t size, const Value& start, const Value& stop,
              const Value& step) {
  Slice out;
  if (!step.is(Kind::kNone)) {
    if (!step.is_integral())
      context.fail("slice indices must be integers or None or have an __index__ method");
    out.step = std::clamp<std::int64_t>(step.as_int(), -INT32_MAX, INT32_MAX);
  }
  if (out.step == 0) context.fail("slice step cannot be zero");
  const bool forward = out.step > 0;
  out.start = clamped(context, start, forward ? 0 : size - 1, size, forward);
  out.stop = clamped(context, stop, forward ? size : -1, size, forward);
  return out;
}

/// Offsets of the characters of a text, and its end.
std::vector<std::uint32_t> offsets_of(std::string_view text) {
  std::vector<std::uint32_t> out;
  for (std::size_t at = 0; at < text.size();
       at += text::valid_size(static_cast<unsigned char>(text[at]))) {
    out.push_back(static_cast<std::uint32_t>(at));
  }
  out.push_back(static_cast<std::uint32_t>(text.size()));
  return out;
}

Value text_slice(Context& context, const Str& text, const Value& start, const Value& stop,
                 const Value& step) {
  const std::vector<std::uint32_t> offsets = offsets_of(text.view());
  const Slice slice =
      resolve(context, static_cast<std::int64_t>(offsets.size()) - 1, start, stop, step);
  const auto offset = [&](std::int64_t i) { return offsets[static_cast<std::size_t>(i)]; };
  if (slice.count() == 0) return slice_text(context, text, 0, 0);
  if (slice.step == 1) return slice_text(context, text, offset(slice.start), offset(slice.stop));
  Builder out;
  for (std::int64_t i = slice.start, n = slice.count(); n > 0; --n, i += slice.step) {
    out.add_slice(text, offset(i), offset(i + 1));
  }
  return out.finish(context);
}

/// Character `index` of a text, from the end if negative; false if there is none.
bool text_item(Context& context, const Str& text, std::int64_t index, Value& out) {
  const std::int64_t size = static_cast<std::int64_t>(char_count(text.view()));
  if (index < 0) index += size;
  if (index < 0 || index >= size) return false;
  std::size_t at = 0;
  for (; index > 0; --index) at += text::valid_size(static_cast<unsigned char>(text.data[at]));
  out = slice_text(context, text, at,
                   at + text::valid_size(static_cast<unsigned char>(text.data[at])));
  return true;
}

}  // namespace

Value get_attribute(Context& context, const Value& value, std::string_view name) {
  // What every Python object has is unsafe, also of an undefined one.
  const bool of_all =
      among(name, {"__class__", "__doc__", "__init__", "__module__", "__new__", "__repr__",
                   "__str__", "__eq__", "__ne__", "__hash__", "__dir__", "__len__", "__iter__"});
  if (value.is(Kind::kUndefined) && !of_all) context.fail(std::string(value.text->view()));
  if (name.starts_with("__") && name.ends_with("__")) return unsafe(context, value, name);
  Value out;
  if (builtin_attribute(context, value, name, out)) return out;
  if (value.is(Kind::kDict)) {
    if (const Value* found = value.dict->find(name)) return *found;
  }
  if (may_have_more(value, name)) refuse(context, value, name);
  return missing(context, value, name);
}

Value get_item(Context& context, const Value& value, const Value& key) {
  if (value.is(Kind::kUndefined)) context.fail(std::string(value.text->view()));
  Value out;
  const bool indexed = value.is(Kind::kList) || value.is(Kind::kTuple) || value.is(Kind::kRange) ||
                       value.is(Kind::kString);
  if (value.is(Kind::kDict)) {
    const bool usable = !key.is(Kind::kList) && !key.is(Kind::kDict);
    if (const Value* found = usable ? value.dict->find(context, key) : nullptr) return *found;
  } else if (indexed && key.is_integral()) {
    std::int64_t index = key.as_int();
    if (value.is(Kind::kString) && text_item(context, *value.text, index, out)) return out;
    if (!value.is(Kind::kString)) {
      const std::int64_t size = length(context, value);
      if (index < 0) index += size;
      if (index >= 0 && index < size) {
        return value.is(Kind::kRange) ? of(value.range->start + index * value.range->step)
                                      : value.list->items[index];
      }
    }
  }
  if (key.is(Kind::kString)) {
    const std::string_view name = key.text->view();
    if (name.starts_with("__") && name.ends_with("__")) return unsafe(context, value, name);
    if (builtin_attribute(context, value, name, out)) return out;
    if (may_have_more(value, name)) refuse(context, value, name);
    return missing(context, value, name);
  }
  std::string text;
  append_repr(context, text, key);
  return undefined(context, fmt::format("'{} object' has no element {}", type_name(value), text));
}

Value get_slice(Context& context, const Value& value, const Value& start, const Value& stop,
                const Value& step) {
  if (value.is(Kind::kUndefined)) context.fail(std::string(value.text->view()));
  if (value.is(Kind::kString)) return text_slice(context, *value.text, start, stop, step);
  if (value.is(Kind::kRange)) context.fail("slices of a range are not supported");
  if (!value.is(Kind::kList) && !value.is(Kind::kTuple)) {
    context.fail(fmt::format("'{}' object is not subscriptable", type_name(value)));
  }
  const Slice slice = resolve(context, value.list->size, start, stop, step);
  const std::int64_t count = slice.count();
  if (slice.step == 1) {
    return list_of(
        context,
        value.list->span().subspan(static_cast<std::size_t>(count == 0 ? 0 : slice.start),
                                   static_cast<std::size_t>(count)),
        value.kind);
  }
  std::vector<Value> items;
  for (std::int64_t i = slice.start, n = count; n > 0; --n, i += slice.step)
    items.push_back(value.list->items[i]);
  return list_of(context, items, value.kind);
}

Value loop_attribute(Context& context, const Value& handle, std::string_view name) {
  const Loop& loop = *handle.loop;
  const std::int64_t size = static_cast<std::int64_t>(loop.items.size());
  const std::int64_t index = loop.index;
  if (name == "index") return of(index + 1);
  if (name == "index0") return of(index);
  if (name == "revindex") return of(size - index);
  if (name == "revindex0") return of(size - index - 1);
  if (name == "first") return of(index == 0);
  if (name == "last") return of(index + 1 == size);
  if (name == "length") return of(size);
  if (name == "depth") return of(std::int64_t{loop.depth} + 1);
  if (name == "depth0") return of(std::int64_t{loop.depth});
  if (name == "previtem") {
    return index == 0 ? undefined(context, "there is no previous item")
                      : loop.items[static_cast<std::size_t>(index - 1)];
  }
  if (name == "nextitem") {
    return index + 1 == size ? undefined(context, "there is no next item")
                             : loop.items[static_cast<std::size_t>(index + 1)];
  }
  if (name == "cycle" || name == "changed") {
    Value out;
    out.kind = Kind::kMethod;
    out.method = context.make(Method{handle, name});
    return out;
  }
  return {};
}

}  // namespace cyb::tmpl
