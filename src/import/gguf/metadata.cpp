// Typed access to GGUF values.
#include "import/gguf/metadata.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/limits.hpp"

namespace cyb::gguf {
namespace {

template <class T>
T load(const std::byte* at) noexcept {
  T out;
  std::memcpy(&out, at, sizeof out);
  return out;
}

/// An integer item as i64; nullopt for other types and for u64 above its range.
std::optional<std::int64_t> as_integer(ValueType type, const std::byte* at) noexcept {
  switch (type) {
    case ValueType::kU8:
      return load<std::uint8_t>(at);
    case ValueType::kI8:
      return load<std::int8_t>(at);
    case ValueType::kU16:
      return load<std::uint16_t>(at);
    case ValueType::kI16:
      return load<std::int16_t>(at);
    case ValueType::kU32:
      return load<std::uint32_t>(at);
    case ValueType::kI32:
      return load<std::int32_t>(at);
    case ValueType::kI64:
      return load<std::int64_t>(at);
    case ValueType::kU64: {
      const auto value = load<std::uint64_t>(at);
      return value > INT64_MAX ? std::nullopt : std::optional(static_cast<std::int64_t>(value));
    }
    default:
      return std::nullopt;
  }
}

bool is_integer_type(ValueType type) noexcept {
  return type != ValueType::kF32 && type != ValueType::kF64 && type != ValueType::kBool &&
         type != ValueType::kString && type != ValueType::kArray;
}

std::string described(const Value& value) {
  if (value.type != ValueType::kArray) return std::string(type_name(value.type));
  return fmt::format("array of {} {}", value.count, type_name(value.item_type));
}

std::unexpected<Error> wrong_type(const Value& value, std::string_view want) {
  return fail(
      invalid_config(value.key, fmt::format("is of type {}, want {}", described(value), want)));
}

Result<std::int64_t> checked_integer(const Value& value, const std::byte* at, IntegerRange range) {
  if (!is_integer_type(value.item_type)) return wrong_type(value, "an integer");
  const auto number = as_integer(value.item_type, at);
  if (!number || *number < range.min || *number > range.max) {
    const std::string shown = number ? std::to_string(*number) : std::string("above 2^63");
    return fail(invalid_config(
        value.key, fmt::format("{} is out of range: {}..{}", shown, range.min, range.max)));
  }
  return *number;
}

/// Every item of an array of type `want` copied into a vector (items are not aligned in the file).
template <class T>
Result<std::vector<T>> copy_array(const Value& value, ValueType want) {
  if (value.type != ValueType::kArray || value.item_type != want) {
    return wrong_type(value, fmt::format("an array of {}", type_name(want)));
  }
  std::vector<T> out(value.count);
  if (!out.empty()) std::memcpy(out.data(), value.bytes.data(), value.bytes.size());
  return out;
}

}  // namespace

Metadata::Metadata(const std::vector<Value>& values) {
  entries_.reserve(values.size());
  for (const Value& value : values) entries_.push_back({&value, false});
  std::ranges::sort(entries_, {}, [](const Entry& e) { return e.value->key; });
}

const Metadata::Entry* Metadata::lookup(std::string_view key) const noexcept {
  const auto at =
      std::ranges::lower_bound(entries_, key, {}, [](const Entry& e) { return e.value->key; });
  return at != entries_.end() && at->value->key == key ? &*at : nullptr;
}

const Value* Metadata::find(std::string_view key) {
  const Entry* entry = lookup(key);
  if (entry == nullptr) return nullptr;
  entries_[static_cast<std::size_t>(entry - entries_.data())].read = true;
  return entry->value;
}

Result<std::int64_t> Metadata::integer(std::string_view key, IntegerRange range) {
  const Value* value = find(key);
  if (value == nullptr) return fail(invalid_config(key, "is missing"));
  if (value->type == ValueType::kArray) return wrong_type(*value, "an integer");
  return checked_integer(*value, value->bytes.data(), range);
}

Result<std::int64_t> Metadata::integer_or(std::string_view key, std::int64_t fallback,
                                          IntegerRange range) {
  if (!has(key)) return fallback;
  return integer(key, range);
}

Result<double> Metadata::number(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr) return fail(invalid_config(key, "is missing"));
  double out = 0;
  if (value->type == ValueType::kF32) {
    out = load<float>(value->bytes.data());
  } else if (value->type == ValueType::kF64) {
    out = load<double>(value->bytes.data());
  } else if (is_integer_type(value->type)) {
    out = static_cast<double>(as_integer(value->type, value->bytes.data()).value_or(INT64_MAX));
  } else {
    return wrong_type(*value, "a number");
  }
  if (!std::isfinite(out)) return fail(invalid_config(key, "is not finite"));
  return out;
}

Result<double> Metadata::number_or(std::string_view key, double fallback) {
  if (!has(key)) return fallback;
  return number(key);
}

Result<bool> Metadata::boolean_or(std::string_view key, bool fallback) {
  const Value* value = find(key);
  if (value == nullptr) return fallback;
  if (value->type != ValueType::kBool) return wrong_type(*value, "a bool");
  return value->bytes[0] != std::byte{0};
}

Result<std::string_view> Metadata::text(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr) return fail(invalid_config(key, "is missing"));
  if (value->type != ValueType::kString) return wrong_type(*value, "a string");
  return std::string_view(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
}

Result<std::string_view> Metadata::text_or(std::string_view key, std::string_view fallback) {
  if (!has(key)) return fallback;
  return text(key);
}

Result<std::vector<std::int64_t>> Metadata::integers(std::string_view key, std::size_t n,
                                                     IntegerRange range) {
  const Value* value = find(key);
  if (value == nullptr) return fail(invalid_config(key, "is missing"));
  if (value->type != ValueType::kArray) {
    CYB_ASSIGN(const std::int64_t one, checked_integer(*value, value->bytes.data(), range));
    return std::vector<std::int64_t>(n, one);
  }
  if (value->count != n) {
    return fail(invalid_config(key, fmt::format("has {} entries for {} layers", value->count, n)));
  }
  if (!is_integer_type(value->item_type)) return wrong_type(*value, "integers");
  std::vector<std::int64_t> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    CYB_ASSIGN(out[i], checked_integer(
                           *value, value->bytes.data() + i * fixed_size(value->item_type), range));
  }
  return out;
}

Result<std::vector<bool>> Metadata::booleans_or_empty(std::string_view key, std::size_t n) {
  const Value* value = find(key);
  std::vector<bool> out;
  if (value == nullptr) return out;
  if (value->type != ValueType::kArray || value->item_type != ValueType::kBool)
    return wrong_type(*value, "an array of bool");
  if (value->count != n) {
    return fail(invalid_config(key, fmt::format("has {} entries for {} layers", value->count, n)));
  }
  for (const std::byte b : value->bytes) out.push_back(b != std::byte{0});
  return out;
}

Result<std::vector<std::string_view>> Metadata::texts_or_empty(std::string_view key) {
  const Value* value = find(key);
  std::vector<std::string_view> out;
  if (value == nullptr) return out;
  if (value->type != ValueType::kArray || value->item_type != ValueType::kString) {
    return wrong_type(*value, "an array of string");
  }
  out.reserve(value->count);
  StringWalk walk(*value);
  while (const auto text = walk.next()) out.push_back(*text);
  return out;
}

Result<std::vector<float>> Metadata::floats_or_empty(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr) return std::vector<float>{};
  return copy_array<float>(*value, ValueType::kF32);
}

Result<std::vector<std::int32_t>> Metadata::ints_or_empty(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr) return std::vector<std::int32_t>{};
  if (value->type == ValueType::kArray && value->item_type == ValueType::kU32) {
    return copy_array<std::int32_t>(*value, ValueType::kU32);
  }
  return copy_array<std::int32_t>(*value, ValueType::kI32);
}

Result<std::string_view> Metadata::bytes_or_empty(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr) return std::string_view();
  if (value->type != ValueType::kArray ||
      (value->item_type != ValueType::kU8 && value->item_type != ValueType::kI8)) {
    return wrong_type(*value, "an array of u8");
  }
  return std::string_view(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
}

std::vector<std::string_view> Metadata::unread(std::string_view prefix) const {
  std::vector<const Value*> left;
  for (const Entry& entry : entries_) {
    if (!entry.read && entry.value->key.starts_with(prefix)) left.push_back(entry.value);
  }
  std::ranges::sort(left, {}, [](const Value* v) { return v->bytes.data(); });
  std::vector<std::string_view> keys;
  for (const Value* value : left) keys.push_back(value->key);
  return keys;
}

}  // namespace cyb::gguf
