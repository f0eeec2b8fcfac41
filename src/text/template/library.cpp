// Arguments of built-ins, and the built-in functions.
#include "text/template/library.hpp"

#include <fmt/format.h>

#include <array>

#include "base/limits.hpp"

namespace cyb::tmpl {

void bind_into(Context& context, std::string_view what, const Args& args,
               std::span<const std::string_view> names, std::size_t n_required, const Value** out) {
  if (args.positional.size() > names.size()) {
    context.fail(fmt::format("{}() takes at most {} arguments, {} were given", what, names.size(),
                             args.positional.size()));
  }
  for (std::size_t i = 0; i < args.positional.size(); ++i) out[i] = &args.positional[i];
  for (const auto& [key, value] : args.named) {
    std::size_t i = 0;
    while (i < names.size() && names[i] != key) ++i;
    if (i == names.size())
      context.fail(fmt::format("{}() got an unexpected keyword argument '{}'", what, key));
    if (out[i] != nullptr)
      context.fail(fmt::format("{}() got multiple values for argument '{}'", what, key));
    out[i] = &value;
  }
  for (std::size_t i = 0; i < n_required; ++i) {
    if (out[i] == nullptr)
      context.fail(fmt::format("{}() is missing its argument '{}'", what, names[i]));
  }
}

std::int64_t int_argument(Context& context, const Value* value, std::int64_t fallback) {
  if (value == nullptr) return fallback;
  if (!value->is_integral())
    context.fail(fmt::format("'{}' object cannot be interpreted as an integer", type_name(*value)));
  return value->as_int();
}

bool bool_argument(const Value* value, bool fallback) {
  return value == nullptr ? fallback : truth(*value);
}

const Str& text_argument(Context& context, const Value& value) {
  if (!value.is(Kind::kString)) context.fail(fmt::format("expected str, got {}", type_name(value)));
  return *value.text;
}

Value remade(Context& context, const Str& source, std::string_view text) {
  return text_of(context, text, source.n_runs == 0 && source.control);
}

namespace {

Value make_range(Context& context, const Args& args) {
  const auto given = bind(context, "range", args, {"start", "stop", "step"}, 1);
  Range range;
  if (given[1] == nullptr) {
    range.stop = int_argument(context, given[0], 0);
  } else {
    range.start = int_argument(context, given[0], 0);
    range.stop = int_argument(context, given[1], 0);
  }
  range.step = int_argument(context, given[2], 1);
  if (range.step == 0) context.fail("range() arg 3 must not be zero");
  const bool up = range.step > 0;
  if (up ? range.start < range.stop : range.start > range.stop) {
    const std::uint64_t span =
        up ? static_cast<std::uint64_t>(range.stop) - static_cast<std::uint64_t>(range.start)
           : static_cast<std::uint64_t>(range.start) - static_cast<std::uint64_t>(range.stop);
    const std::uint64_t step =
        up ? static_cast<std::uint64_t>(range.step) : ~static_cast<std::uint64_t>(range.step) + 1;
    const std::uint64_t size = (span - 1) / step + 1;
    if (size > kMaxTemplateLoop) {
      context.fail(
          fmt::format("Range too big. The sandbox blocks ranges larger than MAX_RANGE ({}).",
                      kMaxTemplateLoop));
    }
    range.size = static_cast<std::int64_t>(size);
  }
  Value out;
  out.kind = Kind::kRange;
  out.range = context.make(range);
  return out;
}

// dict(mapping or pairs, key=value...); a namespace is made the same way.
Value make_dict(Context& context, const Args& args, Kind kind) {
  Dict* dict = context.make(Dict{});
  if (args.positional.size() > 1)
    context.fail(fmt::format("dict expected at most 1 argument, got {}", args.positional.size()));
  if (args.positional.size() == 1 && args.positional[0].is(Kind::kDict)) {
    for (const Entry& entry : args.positional[0].dict->span())
      dict->set(context, entry.key, entry.value);
  } else if (args.positional.size() == 1) {
    for (const Value& pair : iterate(context, args.positional[0])) {
      const auto items = iterate(context, pair);
      if (items.size() != 2) context.fail("dictionary update sequence element has not length 2");
      dict->set(context, items[0], items[1]);
    }
  }
  for (const auto& [key, value] : args.named)
    dict->set(context, text_of(context, key, true), value);
  for (const Entry& entry : dict->span()) {
    if (kind != Kind::kNamespace || !entry.key.is(Kind::kString) ||
        !entry.key.text->view().starts_with('_'))
      continue;
    context.fail(fmt::format(
        "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '{}'. "
        "Please rename the attribute.",
        entry.key.text->view()));
  }
  return of(dict, kind);
}

Value strftime_now(Context& context, const Args& args, const std::tm& now) {
  const auto given = bind(context, "strftime_now", args, {"format"}, 1);
  const std::string format(text_argument(context, *given[0]).view());
  static constexpr std::string_view kKnown = "aAbBdHIjmMpSUwWxXyYcDeFhnrRtTuVGgCs%";
  for (std::size_t i = format.find('%'); i < format.size(); i = format.find('%', i + 2)) {
    const std::size_t letter = i + 1 < format.size() && format[i + 1] == '-' ? i + 2 : i + 1;
    if (letter >= format.size() || kKnown.find(format[letter]) == std::string_view::npos) {
      context.fail(fmt::format("strftime_now: the format '{}' is not supported", format));
    }
  }
  if (format.size() > 1000) context.fail("strftime_now: the format is too long");
  std::array<char, 16384> buffer;
  const std::size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &now);
  return text_of(context, {buffer.data(), size});
}

Value make_cycler(Context& context, std::span<const Value> items, Kind kind) {
  Value out;
  out.kind = kind;
  out.cycler = context.make(Cycler{list_of(context, items).list, 0});
  return out;
}

}  // namespace

Value call_function(Context& context, Function function, const Args& args, const std::tm& now) {
  switch (function) {
    case Function::kRange:
      return make_range(context, args);
    case Function::kDict:
      return make_dict(context, args, Kind::kDict);
    case Function::kNamespace:
      return make_dict(context, args, Kind::kNamespace);
    case Function::kStrftime:
      return strftime_now(context, args, now);
    case Function::kRaise: {
      const auto given = bind(context, "raise_exception", args, {"message"}, 1);
      context.fail(std::string(to_text(context, *given[0]).text->view()));
    }
    case Function::kJoiner: {
      const auto given = bind(context, "joiner", args, {"sep"});
      const Value separator = given[0] != nullptr ? *given[0] : text_of(context, ", ", true);
      return make_cycler(context, {&separator, 1}, Kind::kJoiner);
    }
    case Function::kCycler:
      if (args.positional.empty() || !args.named.empty())
        context.fail("at least one item has to be provided");
      return make_cycler(context, args.positional, Kind::kCycler);
    case Function::kLipsum:
      context.fail("lipsum() is not supported");
  }
  context.fail("not a function");
}

// A joiner gives nothing at its first call, and its separator from then on.
Value call_cycler(Context& context, Cycler& cycler) {
  if (cycler.next == 0) {
    cycler.next = 1;
    return text_of(context, "", true);
  }
  return cycler.items->items[0];
}

}  // namespace cyb::tmpl
