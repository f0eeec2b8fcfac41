// Dicts: hashing of keys, and the index that larger ones keep.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/limits.hpp"
#include "text/template/value.hpp"
#include "text/tokenizers/hashing.hpp"

namespace cyb::tmpl {
namespace {

constexpr std::uint32_t kIndexFrom = 12;

}  // namespace

std::uint64_t hash(Context& context, const Value& value, unsigned depth) {
  if (depth > kMaxTemplateDepth) context.fail("values are nested too deeply");
  switch (value.kind) {
    case Kind::kString:
      return text::hash_bytes(value.text->view());
    case Kind::kBool:
    case Kind::kInt:
      return text::mix(static_cast<std::uint64_t>(value.as_int()) ^ 0x9E3779B97F4A7C15ULL,
                       0xD1B54A32D192ED03ULL);
    case Kind::kFloat: {
      // Equal numbers must have equal hashes, whatever their type.
      const double d = value.number;
      if (std::abs(d) < 9.0e18 && d == std::floor(d))
        return hash(context, of(static_cast<std::int64_t>(d)));
      return std::bit_cast<std::uint64_t>(d);
    }
    case Kind::kTuple: {
      std::uint64_t out = 0x7475706CULL;
      for (const Value& item : value.list->span())
        out = text::mix(out ^ hash(context, item, depth + 1), 0x9E3779B97F4A7C15ULL);
      return out;
    }
    case Kind::kNone:
    case Kind::kUndefined:
      return static_cast<std::uint64_t>(value.kind);
    case Kind::kFunction:
      return static_cast<std::uint64_t>(value.function);
    case Kind::kMethod:
      return text::hash_bytes(value.method->name);
    case Kind::kRange: {
      const Range& range = *value.range;
      return text::mix(static_cast<std::uint64_t>(range.size == 0 ? 0 : range.start),
                       static_cast<std::uint64_t>(range.size));
    }
    case Kind::kView:
      if (std::string_view(value.list->name) == "dict_values")
        return std::bit_cast<std::uintptr_t>(value.list);
      [[fallthrough]];
    case Kind::kList:
    case Kind::kDict:
      context.fail(fmt::format("unhashable type: '{}'", type_name(value)));
    default:  // what Python compares by its place in memory
      return std::bit_cast<std::uintptr_t>(value.dict);
  }
}

std::uint32_t Dict::locate(Context& context, const Value& key) const {
  const std::uint64_t h = hash(context, key);  // also fails for what cannot be a key
  if (index == nullptr) {
    for (std::uint32_t i = 0; i < size; ++i) {
      if (equal(context, entries[i].key, key)) return i;
    }
    return kAbsent;
  }
  for (std::uint32_t at = static_cast<std::uint32_t>(h) & (n_slots - 1); index[at] != 0;
       at = (at + 1) & (n_slots - 1)) {
    if (equal(context, entries[index[at] - 1].key, key)) return index[at] - 1;
  }
  return kAbsent;
}

const Value* Dict::find(Context& context, const Value& key) const {
  const std::uint32_t at = locate(context, key);
  return at == kAbsent ? nullptr : &entries[at].value;
}

const Value* Dict::find(std::string_view key) const {
  const auto same = [&](const Entry& entry) {
    return entry.key.is(Kind::kString) && entry.key.text->view() == key;
  };
  if (index == nullptr) {
    for (const Entry& entry : span()) {
      if (same(entry)) return &entry.value;
    }
    return nullptr;
  }
  const std::uint64_t h = text::hash_bytes(key);
  for (std::uint32_t at = static_cast<std::uint32_t>(h) & (n_slots - 1); index[at] != 0;
       at = (at + 1) & (n_slots - 1)) {
    const Entry& entry = entries[index[at] - 1];
    if (same(entry)) return &entry.value;
  }
  return nullptr;
}

void Dict::place(Context& context, std::uint32_t entry) {
  std::uint32_t at = static_cast<std::uint32_t>(hash(context, entries[entry].key)) & (n_slots - 1);
  while (index[at] != 0) at = (at + 1) & (n_slots - 1);
  index[at] = entry + 1;
}

void Dict::set(Context& context, const Value& key, const Value& value) {
  const std::uint32_t found = locate(context, key);
  if (found != kAbsent) {
    entries[found].value = value;
    return;
  }
  if (size == capacity) {
    capacity = capacity == 0 ? 4 : capacity * 2;
    Entry* grown = context.array<Entry>(capacity);
    std::copy(entries, entries + size, grown);
    entries = grown;
  }
  entries[size++] = {key, value};
  if (size <= kIndexFrom) return;
  if (index != nullptr && size * 2 <= n_slots) return place(context, size - 1);
  n_slots = std::bit_ceil(size * 4);
  index = context.array<std::uint32_t>(n_slots);
  std::fill(index, index + n_slots, 0U);
  for (std::uint32_t i = 0; i < size; ++i) place(context, i);
}

}  // namespace cyb::tmpl
