// Making, comparing and measuring values.
#include "text/template/value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/limits.hpp"
#include "text/pretokenizers/char_class.hpp"

namespace cyb::tmpl {
namespace {

const Str* make_str(Context& context, std::string_view text, bool control) {
  Str str;
  str.data = text.data();
  str.size = static_cast<std::uint32_t>(text.size());
  str.control = control;
  return context.make(str);
}

void check_depth(Context& context, unsigned depth) {
  if (depth > kMaxTemplateDepth) context.fail("values are nested too deeply");
}

}  // namespace

void Context::step(std::uint64_t cost) {
  steps_ += cost;
  if (steps_ > kMaxTemplateSteps) fail(fmt::format("more than {} steps", kMaxTemplateSteps));
}

Value undefined(Context& context, std::string_view why) {
  Value out = text_of(context, why);
  out.kind = Kind::kUndefined;
  return out;
}

Value text_view(Context& context, std::string_view text, bool control) {
  return of(make_str(context, text, control));
}

Value text_of(Context& context, std::string_view text, bool control) {
  char* copy = context.array<char>(text.size());
  std::copy(text.begin(), text.end(), copy);
  return of(make_str(context, {copy, text.size()}, control));
}

Value list_of(Context& context, std::span<const Value> items, Kind kind) {
  Value* copy = context.array<Value>(items.size());
  std::copy(items.begin(), items.end(), copy);
  Value out;
  out.kind = kind;
  out.list = context.make(List{copy, static_cast<std::uint32_t>(items.size()), nullptr});
  return out;
}

Value iterator_of(Context& context, std::span<const Value> items) {
  Value out = list_of(context, items);
  out.iterator = context.make(Iterator{out.list, 0, nullptr, {}});
  out.kind = Kind::kIterator;
  return out;
}

void check_end(const Iterator& iterator) {
  if (iterator.failure != nullptr)
    throw Failure{iterator.failed_at, std::string(iterator.failure->view())};
}

Value slice_text(Context& context, const Str& text, std::size_t begin, std::size_t end) {
  if (begin == 0 && end == text.size) return of(&text);
  Str out = text;
  out.data = text.data + begin;
  out.size = static_cast<std::uint32_t>(end - begin);
  if (text.n_runs == 0) return of(context.make(out));
  Run* runs = context.array<Run>(text.n_runs);
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < text.n_runs; ++i) {
    if (text.runs[i].end <= begin) continue;
    const std::size_t stop = std::min<std::size_t>(text.runs[i].end, end);
    runs[count++] = {static_cast<std::uint32_t>(stop - begin), text.runs[i].control};
    if (stop == end) break;
  }
  out.runs = runs;
  out.n_runs = count > 1 ? count : 0;
  out.control = count == 1 && runs[0].control;
  return of(context.make(out));
}

void Builder::add(std::string_view text, bool control) {
  if (text.empty()) return;
  text_.append(text);
  const std::uint32_t end = static_cast<std::uint32_t>(text_.size());
  if (!runs_.empty() && runs_.back().control == control) {
    runs_.back().end = end;
  } else {
    runs_.push_back({end, control});
  }
}

void Builder::add_slice(const Str& text, std::size_t begin, std::size_t end) {
  if (text.n_runs == 0) return add(text.view().substr(begin, end - begin), text.control);
  std::size_t at = begin;
  for (std::uint32_t i = 0; i < text.n_runs && at < end; ++i) {
    const std::size_t stop = std::min<std::size_t>(text.runs[i].end, end);
    if (stop <= at) continue;
    add(text.view().substr(at, stop - at), text.runs[i].control);
    at = stop;
  }
}

Value Builder::finish(Context& context) const {
  // Later joins may only grow what fits the output limit many times over; 32-bit sizes are safe.
  if (text_.size() > 16 * kMaxTemplateOutput) context.fail("a string is too long");
  const Value out = text_of(context, text_, runs_.size() == 1 && runs_[0].control);
  if (runs_.size() < 2) return out;
  Run* runs = context.array<Run>(runs_.size());
  std::copy(runs_.begin(), runs_.end(), runs);
  Str str = *out.text;
  str.runs = runs;
  str.n_runs = static_cast<std::uint32_t>(runs_.size());
  return of(context.make(str));
}

std::string_view type_name(const Value& value) noexcept {
  switch (value.kind) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kDict:
      return "dict";
    case Kind::kView:
      return value.list->name;
    case Kind::kIterator:
      return "generator";
    case Kind::kRange:
      return "range";
    case Kind::kNamespace:
      return "Namespace";
    case Kind::kMacro:
      return "Macro";
    case Kind::kFunction:
      return "function";
    case Kind::kMethod:
      return "method";
    case Kind::kLoop:
      return "LoopContext";
    case Kind::kCycler:
      return "Cycler";
    case Kind::kJoiner:
      return "Joiner";
  }
  return "object";
}

bool truth(const Value& value) noexcept {
  switch (value.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return value.boolean;
    case Kind::kInt:
      return value.integer != 0;
    case Kind::kFloat:
      return value.number != 0.0;
    case Kind::kString:
      return value.text->size != 0;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return value.list->size != 0;
    case Kind::kDict:
      return value.dict->size != 0;
    case Kind::kRange:
      return value.range->size != 0;
    default:
      return true;
  }
}

bool equal(Context& context, const Value& a, const Value& b, unsigned depth) {
  check_depth(context, depth);
  context.step();
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.as_int() == b.as_int();
    return a.as_double() == b.as_double();
  }
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kString:
      return a.text->view() == b.text->view();
    case Kind::kList:
    case Kind::kTuple:
      return a.list->size == b.list->size &&
             std::equal(
                 a.list->items, a.list->items + a.list->size, b.list->items,
                 [&](const Value& x, const Value& y) { return equal(context, x, y, depth + 1); });
    case Kind::kDict:
      if (a.dict->size != b.dict->size) return false;
      for (const Entry& entry : a.dict->span()) {
        const Value* other = b.dict->find(context, entry.key);
        if (other == nullptr || !equal(context, entry.value, *other, depth + 1)) return false;
      }
      return true;
    case Kind::kFunction:
      return a.function == b.function;
    case Kind::kMethod:
      return a.method->name == b.method->name &&
             equal(context, a.method->self, b.method->self, depth + 1);
    case Kind::kRange:
      return a.range->size == b.range->size &&
             (a.range->size == 0 || (a.range->start == b.range->start &&
                                     (a.range->size == 1 || a.range->step == b.range->step)));
    case Kind::kView:
      context.fail("comparing views of a dict is not supported");
    default:
      return a.dict == b.dict;
  }
}

int order(Context& context, const Value& a, const Value& b, unsigned depth) {
  check_depth(context, depth);
  context.step();
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral())
      return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int();
    const double x = a.as_double(), y = b.as_double();
    if (std::isnan(x) || std::isnan(y)) context.fail("comparing nan is not supported");
    return x < y ? -1 : x > y;
  }
  if (a.is(Kind::kString) && b.is(Kind::kString)) {
    // UTF-8 keeps the order of code points.
    const int result = a.text->view().compare(b.text->view());
    return result < 0 ? -1 : result > 0;
  }
  const bool lists = a.kind == b.kind && (a.is(Kind::kList) || a.is(Kind::kTuple));
  if (!lists) {
    for (const Value* v : {&a, &b}) {
      if (v->is(Kind::kUndefined)) context.fail(std::string(v->text->view()));
    }
    context.fail(fmt::format("'<' not supported between instances of '{}' and '{}'", type_name(a),
                             type_name(b)));
  }
  const std::uint32_t common = std::min(a.list->size, b.list->size);
  for (std::uint32_t i = 0; i < common; ++i) {
    if (equal(context, a.list->items[i], b.list->items[i], depth + 1)) continue;
    return order(context, a.list->items[i], b.list->items[i], depth + 1);
  }
  return a.list->size < b.list->size ? -1 : a.list->size > b.list->size;
}

std::size_t char_count(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

std::int64_t length(Context& context, const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return 0;
    case Kind::kString:
      return static_cast<std::int64_t>(char_count(value.text->view()));
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return value.list->size;
    case Kind::kDict:
      return value.dict->size;
    case Kind::kRange:
      return value.range->size;
    default:
      context.fail(fmt::format("object of type '{}' has no len()", type_name(value)));
  }
}

std::span<const Value> iterate(Context& context, const Value& value) {
  const auto made = [&](std::size_t count, auto&& item) -> std::span<const Value> {
    Value* items = context.array<Value>(count);
    for (std::size_t i = 0; i < count; ++i) items[i] = item(i);
    return {items, count};
  };
  switch (value.kind) {
    case Kind::kUndefined:
      return {};
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return value.list->span();
    case Kind::kDict:
      return made(value.dict->size, [&](std::size_t i) { return value.dict->entries[i].key; });
    case Kind::kRange:
      return made(static_cast<std::size_t>(value.range->size), [&](std::size_t i) {
        return of(value.range->start + static_cast<std::int64_t>(i) * value.range->step);
      });
    case Kind::kIterator: {
      const auto rest = value.iterator->list->span().subspan(value.iterator->next);
      value.iterator->next = value.iterator->list->size;
      check_end(*value.iterator);
      return rest;
    }
    case Kind::kString: {
      const Str& s = *value.text;
      std::size_t at = 0;
      return made(char_count(s.view()), [&](std::size_t) {
        const std::size_t begin = at;
        at += text::valid_size(static_cast<unsigned char>(s.data[at]));
        return slice_text(context, s, begin, at);
      });
    }
    default:
      context.fail(fmt::format("'{}' object is not iterable", type_name(value)));
  }
}

}  // namespace cyb::tmpl
