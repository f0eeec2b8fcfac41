// Metadata: typed access to the values of a GGUF file. Every error names its key; what was read is
// remembered, so that the importer can refuse keys that nobody looked at.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "import/gguf/gguf_file.hpp"

namespace cyb::gguf {

struct IntegerRange {
  std::int64_t min, max;
};

class Metadata {
 public:
  /// Borrows `values` (those of the first shard).
  explicit Metadata(const std::vector<Value>& values);

  bool has(std::string_view key) const noexcept { return lookup(key) != nullptr; }
  /// Marks `key` as read without looking at its value.
  void ignore(std::string_view key) { find(key); }

  // Missing keys, other types and values out of range: InvalidConfig naming the key.
  Result<std::int64_t> integer(std::string_view key, IntegerRange range);
  Result<std::int64_t> integer_or(std::string_view key, std::int64_t fallback, IntegerRange range);
  /// Finite.
  Result<double> number(std::string_view key);
  Result<double> number_or(std::string_view key, double fallback);
  Result<bool> boolean_or(std::string_view key, bool fallback);
  Result<std::string_view> text(std::string_view key);
  Result<std::string_view> text_or(std::string_view key, std::string_view fallback);
  /// One integer per layer: an array of exactly `n`, or one number for all.
  Result<std::vector<std::int64_t>> integers(std::string_view key, std::size_t n,
                                             IntegerRange range);
  /// One bool per layer, an array of exactly `n` bools; empty when absent.
  Result<std::vector<bool>> booleans_or_empty(std::string_view key, std::size_t n);
  // Whole arrays; empty when absent. Texts are views into the file.
  Result<std::vector<std::string_view>> texts_or_empty(std::string_view key);
  Result<std::vector<float>> floats_or_empty(std::string_view key);
  Result<std::vector<std::int32_t>> ints_or_empty(std::string_view key);
  /// An array of 8-bit integers, as a view into the file.
  Result<std::string_view> bytes_or_empty(std::string_view key);

  /// Keys with this prefix that nobody asked for, in file order.
  std::vector<std::string_view> unread(std::string_view prefix) const;

 private:
  struct Entry {
    const Value* value;
    bool read;
  };
  const Entry* lookup(std::string_view key) const noexcept;
  const Value* find(std::string_view key);  // marks as read

  std::vector<Entry> entries_;  // sorted by key
};

}  // namespace cyb::gguf
