// Values of the template language: Python's, as far as templates see them. A Value is 16 bytes and
// owns nothing; what it points to lives in the Context. Strings carry the origin of their bytes
// (template or content).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/context.hpp"

namespace cyb::tmpl {

/// Bytes up to `end` (from the end of the run before) that the template wrote (control) or that
/// came from outside.
struct Run {
  std::uint32_t end = 0;
  bool control = false;
};

struct Str {
  const char* data = "";
  std::uint32_t size = 0;
  std::uint32_t n_runs = 0;  // 0: all bytes are `control`
  const Run* runs = nullptr;
  bool control = false;
  bool markup = false;  // went through `safe` or `escape`: `+` escapes what is added to it
  std::string_view view() const noexcept { return {data, size}; }
};

enum class Kind : std::uint8_t {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kDict,
  kView,      // dict.items(), keys(), values()
  kIterator,  // what generators give: can be walked once
  kRange,
  kNamespace,
  kMacro,
  kFunction,
  kMethod,
  kLoop,
  kCycler,
  kJoiner,
};

struct List;
struct Dict;
struct Iterator;
struct Range;
struct Macro;
struct Method;
struct Loop;
struct Cycler;
enum class Function : std::uint8_t {
  kRange,
  kDict,
  kNamespace,
  kRaise,
  kStrftime,
  kJoiner,
  kCycler,
  kLipsum  // known by name only
};

struct Value {
  Kind kind = Kind::kUndefined;
  union {
    const Str* text = nullptr;  // kString; kUndefined: why (may be null)
    bool boolean;
    std::int64_t integer;
    double number;
    const List* list;  // kList, kTuple, kView
    Dict* dict;        // kDict (never changed once shared), kNamespace
    Iterator* iterator;
    const Range* range;
    const Macro* macro;
    Function function;
    const Method* method;
    Loop* loop;
    Cycler* cycler;  // kCycler, kJoiner
  };

  bool is(Kind k) const noexcept { return kind == k; }
  bool is_number() const noexcept {
    return kind == Kind::kInt || kind == Kind::kFloat || kind == Kind::kBool;
  }
  bool is_integral() const noexcept { return kind == Kind::kInt || kind == Kind::kBool; }
  std::int64_t as_int() const noexcept { return kind == Kind::kBool ? boolean : integer; }
  double as_double() const noexcept {
    return kind == Kind::kFloat ? number : static_cast<double>(as_int());
  }
};

struct List {
  const Value* items = nullptr;
  std::uint32_t size = 0;
  const char* name = nullptr;  // of a view: "dict_items", ...
  std::span<const Value> span() const noexcept { return {items, size}; }
};

/// What a generator gives before it ends, or before it fails.
struct Iterator {
  const List* list = nullptr;
  std::uint32_t next = 0;
  const Str* failure = nullptr;  // thrown where the items end
  Position failed_at;
};

struct Range {
  std::int64_t start = 0, stop = 0, step = 1, size = 0;
};

struct Method {
  Value self;
  std::string_view name;
};

struct Cycler {
  const List* items = nullptr;  // joiner: its separator
  std::uint32_t next = 0;
};

struct Entry {
  Value key, value;
};

/// Insertion-ordered; an index is kept from a certain size on.
struct Dict {
  Entry* entries = nullptr;
  std::uint32_t size = 0, capacity = 0;
  std::uint32_t* index = nullptr;  // slots of entry + 1, 0 = empty
  std::uint32_t n_slots = 0;

  const Value* find(Context& context, const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(Context& context, const Value& key, const Value& value);
  std::span<const Entry> span() const noexcept { return {entries, size}; }

 private:
  static constexpr std::uint32_t kAbsent = ~0U;
  std::uint32_t locate(Context& context, const Value& key) const;
  void place(Context& context, std::uint32_t entry);
};

// Makers.
inline Value none() noexcept {
  Value v;
  v.kind = Kind::kNone;
  return v;
}
inline Value of(bool b) noexcept {
  Value v;
  v.kind = Kind::kBool;
  v.boolean = b;
  return v;
}
inline Value of(std::int64_t i) noexcept {
  Value v;
  v.kind = Kind::kInt;
  v.integer = i;
  return v;
}
inline Value of(double d) noexcept {
  Value v;
  v.kind = Kind::kFloat;
  v.number = d;
  return v;
}
inline Value of(const Str* s) noexcept {
  Value v;
  v.kind = Kind::kString;
  v.text = s;
  return v;
}
inline Value of(Dict* d, Kind kind = Kind::kDict) noexcept {
  Value v;
  v.kind = kind;
  v.dict = d;
  return v;
}
Value undefined(Context& context, std::string_view why);
/// A string of one origin; `text` is copied.
Value text_of(Context& context, std::string_view text, bool control = false);
/// Without a copy: `text` must outlive the context.
Value text_view(Context& context, std::string_view text, bool control);
Value list_of(Context& context, std::span<const Value> items, Kind kind = Kind::kList);
Value iterator_of(Context& context, std::span<const Value> items);
/// A generator: `make(items)` is run at once, and what it throws is kept until somebody walks that
/// far, as in Python.
template <class Make>
Value generator_of(Context& context, const Make& make) {
  std::vector<Value> items;
  try {
    make(items);
  } catch (const Failure& failure) {
    Value out = iterator_of(context, items);
    out.iterator->failure = text_of(context, failure.message).text;
    out.iterator->failed_at = failure.at;
    return out;
  }
  return iterator_of(context, items);
}
/// Throws what a generator kept.
void check_end(const Iterator& iterator);
/// Bytes [begin, end) of a string, with their origins.
Value slice_text(Context& context, const Str& text, std::size_t begin, std::size_t end);

/// Collects text with its origins.
class Builder {
 public:
  void add(std::string_view text, bool control);
  void add(const Str& text) { add_slice(text, 0, text.size); }
  void add_slice(const Str& text, std::size_t begin, std::size_t end);
  std::size_t size() const noexcept { return text_.size(); }
  Value finish(Context& context) const;
  const std::string& text() const noexcept { return text_; }
  const std::vector<Run>& runs() const noexcept { return runs_; }

 private:
  std::string text_;
  std::vector<Run> runs_;
};

// Python's behaviour.
std::string_view type_name(const Value& value) noexcept;
bool truth(const Value& value) noexcept;
bool equal(Context& context, const Value& a, const Value& b, unsigned depth = 0);
/// <0, 0, >0. Fails where Python has no order.
int order(Context& context, const Value& a, const Value& b, unsigned depth = 0);
std::uint64_t hash(Context& context, const Value& value, unsigned depth = 0);
/// len(); fails where there is none.
std::int64_t length(Context& context, const Value& value);
/// The items that a for loop sees. An iterator is used up.
std::span<const Value> iterate(Context& context, const Value& value);
/// str() of a value, appended with its origins.
void append_text(Context& context, Builder& out, const Value& value);
Value to_text(Context& context, const Value& value);
/// repr().
void append_repr(Context& context, std::string& out, const Value& value, unsigned depth = 0);
/// Python's shortest text of a float.
std::string float_text(double value);
/// Number of code points.
std::size_t char_count(std::string_view text) noexcept;

}  // namespace cyb::tmpl
