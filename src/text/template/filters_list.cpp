// Filters on lists and dicts.
#include <fmt/format.h>

#include <algorithm>

#include "text/template/filters.hpp"
#include "text/template/text_case.hpp"
#include "text/template/text_methods.hpp"

namespace cyb::tmpl {
namespace {

using Keyed = std::pair<Value, Value>;  // key, item

std::vector<Keyed> keyed(Context& context, std::span<const Value> items, const Getter& getter,
                         bool case_sensitive) {
  std::vector<Keyed> out;
  out.reserve(items.size());
  for (const Value& item : items) {
    context.step();
    const Value key = getter(item);
    out.emplace_back(case_sensitive ? key : ignoring_case(context, key), item);
  }
  return out;
}

void sort_keyed(Context& context, std::vector<Keyed>& items, bool reverse) {
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return reverse ? order(context, b.first, a.first) < 0 : order(context, a.first, b.first) < 0;
  });
}

/// sorted()'s `reverse`, which is a number.
bool reversed(Context& context, const Value* given) {
  if (given == nullptr) return false;
  if (!given->is_integral())
    context.fail(fmt::format("'{}' object cannot be interpreted as an integer", type_name(*given)));
  return given->as_int() != 0;
}

Value items_of(Context& context, const std::vector<Keyed>& items) {
  std::vector<Value> out;
  out.reserve(items.size());
  for (const Keyed& item : items) out.push_back(item.second);
  return list_of(context, out);
}

std::vector<Value> entries_of(Context& context, const Value& value) {
  if (!value.is(Kind::kDict)) context.fail("Can only get item pairs from a mapping.");
  std::vector<Value> out;
  for (const Entry& entry : value.dict->span()) {
    const Value pair[2] = {entry.key, entry.value};
    out.push_back(list_of(context, pair, Kind::kTuple));
  }
  return out;
}

}  // namespace

Value ignoring_case(Context& context, const Value& value) {
  if (!value.is(Kind::kString)) return value;
  return remade(context, *value.text, lower(value.text->view()));
}

Getter::Getter(Context& context, const Value* attribute, const Value* fallback)
    : context_(context), fallback_(fallback) {
  if (attribute == nullptr || attribute->is(Kind::kNone)) return;
  if (attribute->is_integral()) {
    parts_.push_back(*attribute);
    return;
  }
  const std::string_view path = text_argument(context, *attribute).view();
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    const bool number = !part.empty() && part.size() < 10 &&
                        part.find_first_not_of("0123456789") == std::string_view::npos;
    if (number) {
      std::int64_t index = 0;
      for (const char c : part) index = index * 10 + (c - '0');
      parts_.push_back(of(index));
    } else {
      parts_.push_back(text_of(context, part));
    }
    begin = end + 1;
  }
}

Value Getter::operator()(const Value& item) const {
  Value out = item;
  for (const Value& part : parts_) {
    out = get_item(context_, out, part);
    const bool replaced =
        out.is(Kind::kUndefined) && fallback_ != nullptr && !fallback_->is(Kind::kNone);
    if (replaced) out = *fallback_;
  }
  return out;
}

Value filter_default(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"default_value", "boolean"});
  const bool missing =
      call.value.is(Kind::kUndefined) || (bool_argument(given[1], false) && !truth(call.value));
  if (!missing) return call.value;
  return given[0] != nullptr ? *given[0] : text_of(call.context, "", true);
}

Value filter_length(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"obj"});
  return of(length(call.context, call.value));
}

Value filter_first(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"seq"});
  if (call.value.is(Kind::kIterator)) {
    Iterator& it = *call.value.iterator;
    if (it.next < it.list->size) return it.list->items[it.next++];
    check_end(it);
    return undefined(call.context, "No first item, sequence was empty.");
  }
  const auto items = iterate(call.context, call.value);
  return items.empty() ? undefined(call.context, "No first item, sequence was empty.")
                       : items.front();
}

Value filter_last(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"seq"});
  if (call.value.is(Kind::kIterator)) call.context.fail("'generator' object is not reversible");
  const auto items = iterate(call.context, call.value);
  return items.empty() ? undefined(call.context, "No last item, sequence was empty.")
                       : items.back();
}

Value filter_list(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"value"});
  return list_of(call.context, iterate(call.context, call.value));
}

Value filter_join(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"d", "attribute"});
  const Value separator =
      given[0] != nullptr ? to_text(call.context, *given[0]) : text_of(call.context, "", true);
  const Getter getter(call.context, given[1]);
  std::vector<Value> items;
  for (const Value& item : iterate(call.context, call.value)) items.push_back(getter(item));
  call.context.step(items.size() / 4);
  return join(call.context, *separator.text, items);
}

Value filter_reverse(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"value"});
  if (call.value.is(Kind::kString)) {
    return get_slice(call.context, call.value, none(), none(), of(std::int64_t{-1}));
  }
  const bool generator = call.value.is(Kind::kIterator);
  const auto items = iterate(call.context, call.value);
  std::vector<Value> out(items.rbegin(), items.rend());
  return generator ? list_of(call.context, out) : iterator_of(call.context, out);
}

Value filter_sort(const FilterCall& call) {
  const auto given =
      bind(call.context, call.name, call.args, {"reverse", "case_sensitive", "attribute"});
  std::vector<Getter> getters;
  if (given[2] != nullptr && given[2]->is(Kind::kString)) {
    const std::string_view names = given[2]->text->view();
    for (std::size_t begin = 0; begin <= names.size();) {
      const std::size_t end = std::min(names.find(',', begin), names.size());
      const Value name = text_of(call.context, names.substr(begin, end - begin));
      getters.emplace_back(call.context, &name);
      begin = end + 1;
    }
  } else {
    getters.emplace_back(call.context, given[2]);
  }
  // The keys are lists, as jinja2's are: values that are equal need no order.
  std::vector<Keyed> items;
  std::vector<Value> key(getters.size());
  for (const Value& item : iterate(call.context, call.value)) {
    call.context.step();
    for (std::size_t k = 0; k < key.size(); ++k) {
      key[k] = getters[k](item);
      if (!bool_argument(given[1], false)) key[k] = ignoring_case(call.context, key[k]);
    }
    items.emplace_back(list_of(call.context, key), item);
  }
  sort_keyed(call.context, items, reversed(call.context, given[0]));
  return items_of(call.context, items);
}

Value filter_unique(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"case_sensitive", "attribute"});
  return generator_of(call.context, [&](std::vector<Value>& out) {
    const Getter getter(call.context, given[1]);
    const bool case_sensitive = bool_argument(given[0], false);
    Dict seen;
    for (const Value& item : iterate(call.context, call.value)) {
      call.context.step();
      const Value key = getter(item);
      const Value seen_as = case_sensitive ? key : ignoring_case(call.context, key);
      if (seen.find(call.context, seen_as) != nullptr) continue;
      seen.set(call.context, seen_as, none());
      out.push_back(item);
    }
  });
}

Value filter_extreme(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"case_sensitive", "attribute"});
  const Getter getter(call.context, given[1]);
  const auto items = keyed(call.context, iterate(call.context, call.value), getter,
                           bool_argument(given[0], false));
  if (items.empty()) return undefined(call.context, "No aggregated item, sequence was empty.");
  const Keyed* best = &items[0];
  for (const Keyed& item : std::span(items).subspan(1)) {
    const int less = call.name == "min" ? order(call.context, item.first, best->first)
                                        : order(call.context, best->first, item.first);
    if (less < 0) best = &item;
  }
  return best->second;
}

Value filter_sum(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"attribute", "start"});
  const Getter getter(call.context, given[0]);
  Value total = given[1] != nullptr ? *given[1] : of(std::int64_t{0});
  if (total.is(Kind::kString))
    call.context.fail("sum() can't sum strings [use ''.join(seq) instead]");
  for (const Value& item : iterate(call.context, call.value)) {
    call.context.step();
    total = add(call.context, total, getter(item));
  }
  return total;
}

Value filter_items(const FilterCall& call) {
  bind(call.context, call.name, call.args, {"value"});
  return generator_of(call.context, [&](std::vector<Value>& out) {
    if (!call.value.is(Kind::kUndefined)) out = entries_of(call.context, call.value);
  });
}

Value filter_dictsort(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"case_sensitive", "by", "reverse"});
  const std::string_view by =
      given[1] == nullptr ? std::string_view("key") : text_argument(call.context, *given[1]).view();
  if (by != "key" && by != "value")
    call.context.fail("You can only sort by either \"key\" or \"value\"");
  const Value position = of(std::int64_t{by == "key" ? 0 : 1});
  const Getter getter(call.context, &position);
  if (!call.value.is(Kind::kDict)) {
    if (call.value.is(Kind::kUndefined)) call.context.fail(std::string(call.value.text->view()));
    call.context.fail(fmt::format("'{}' object has no attribute 'items'", type_name(call.value)));
  }
  auto items = keyed(call.context, entries_of(call.context, call.value), getter,
                     bool_argument(given[0], false));
  sort_keyed(call.context, items, reversed(call.context, given[2]));
  return items_of(call.context, items);
}

Value filter_batch(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"linecount", "fill_with"}, 1);
  return generator_of(call.context, [&](std::vector<Value>& rows) {
    std::vector<Value> row;
    const std::int64_t size = int_argument(call.context, given[0], 1);
    if (size < 1 || size > 100000) call.context.fail("batch: the number of items is out of range");
    for (const Value& item : iterate(call.context, call.value)) {
      if (static_cast<std::int64_t>(row.size()) == size) {
        rows.push_back(list_of(call.context, row));
        row.clear();
      }
      row.push_back(item);
    }
    const bool fills = given[1] != nullptr && !given[1]->is(Kind::kNone);
    while (!row.empty() && fills && static_cast<std::int64_t>(row.size()) < size)
      row.push_back(*given[1]);
    if (!row.empty()) rows.push_back(list_of(call.context, row));
  });
}

Value filter_slice(const FilterCall& call) {
  const auto given = bind(call.context, call.name, call.args, {"slices", "fill_with"}, 1);
  return generator_of(call.context, [&](std::vector<Value>& rows) {
    const auto items = iterate(call.context, call.value);
    const std::int64_t n = int_argument(call.context, given[0], 1);
    if (n < 1 || n > 100000) call.context.fail("slice: the number of slices is out of range");
    const std::size_t slices = static_cast<std::size_t>(n);
    const std::size_t per = items.size() / slices, extra = items.size() % slices;
    const bool fills = given[1] != nullptr && !given[1]->is(Kind::kNone);
    std::size_t at = 0;
    for (std::size_t i = 0; i < slices; ++i) {
      const std::size_t size = per + (i < extra ? 1 : 0);
      std::vector<Value> row(items.begin() + static_cast<std::ptrdiff_t>(at),
                             items.begin() + static_cast<std::ptrdiff_t>(at + size));
      at += size;
      if (fills && i >= extra) row.push_back(*given[1]);
      rows.push_back(list_of(call.context, row));
    }
  });
}

Value filter_groupby(const FilterCall& call) {
  const auto given =
      bind(call.context, call.name, call.args, {"attribute", "default", "case_sensitive"}, 1);
  const Getter getter(call.context, given[0], given[1]);
  const bool case_sensitive = bool_argument(given[2], false);
  auto items = keyed(call.context, iterate(call.context, call.value), getter, case_sensitive);
  sort_keyed(call.context, items, false);
  std::vector<Value> groups;
  for (std::size_t begin = 0; begin < items.size();) {
    std::size_t end = begin;
    std::vector<Value> members;
    while (end < items.size() && equal(call.context, items[end].first, items[begin].first))
      members.push_back(items[end++].second);
    const Value pair[2] = {case_sensitive ? items[begin].first : getter(items[begin].second),
                           list_of(call.context, members)};
    groups.push_back(list_of(call.context, pair, Kind::kTuple));
    begin = end;
  }
  return list_of(call.context, groups);
}

}  // namespace cyb::tmpl
