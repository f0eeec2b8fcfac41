// parse_toml: TOML 1.0 without dates into a ConfigTable, keys in order. Values and nesting are
// bounded while reading, so neither memory nor the stack follows the input. (toml++ 3.3 is not
// used: it sorts keys, and an assertion or, in release builds, an assumption of its parser is
// broken by `[=`.)
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

#include "model/config.hpp"
#include "model/format_error.hpp"
#include "model/toml_cursor.hpp"
#include "model/toml_scalar.hpp"

namespace cyb {
namespace {

// Of tables and arrays in each other: whatever is accepted can be written and read again.
constexpr std::size_t kMaxDepth = 16;
constexpr std::size_t kIndexFrom = 16;  // entries of a table that are searched one by one

using Path = std::vector<std::string>;

/// A table under construction. A key is found by a hash once there are many.
struct Building {
  enum class Origin : std::uint8_t {
    kImplied,  // a step of a header's path
    kHeader,   // closed for a second header
    kDotted,   // a step of a dotted key: open for more of those
  };
  struct Entry {
    std::string key;
    std::optional<ConfigValue> value;                 // or
    std::unique_ptr<Building> table;                  // or
    std::vector<std::unique_ptr<Building>> elements;  // of an array of tables
  };

  explicit Building(Origin from) : origin(from) {}

  Entry* find(std::string_view key) {
    if (entries.size() <= kIndexFrom) {
      const auto it = std::ranges::find(entries, key, &Entry::key);
      return it == entries.end() ? nullptr : &*it;
    }
    for (std::size_t i = index.size(); i < entries.size(); ++i) index.emplace(entries[i].key, i);
    const auto it = index.find(std::string(key));
    return it == index.end() ? nullptr : &entries[it->second];
  }
  Entry& add(std::string key) {
    entries.emplace_back().key = std::move(key);
    return entries.back();
  }

  Origin origin;
  std::vector<Entry> entries;
  std::unordered_map<std::string, std::size_t> index;
};

/// Bounded by kMaxDepth.
ConfigTable finish(Building& table) {  // NOLINT(misc-no-recursion)
  ConfigTable out;
  for (Building::Entry& entry : table.entries) {
    if (entry.value) {
      out.append(std::move(entry.key), *std::move(entry.value));
    } else if (entry.table != nullptr) {
      out.append(std::move(entry.key), finish(*entry.table));
    } else {
      ConfigArray elements;
      for (const auto& element : entry.elements) elements.emplace_back(finish(*element));
      out.append(std::move(entry.key), std::move(elements));
    }
  }
  return out;
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view part) : in_(text, part) {}

  Result<ConfigTable> document() {
    Building root(Building::Origin::kHeader);
    Building* current = &root;
    std::size_t depth = 0;  // of `current`
    in_.skip_blank();
    while (!in_.at_end()) {
      if (in_.peek() == '[') {
        CYB_ASSIGN(current, header(root, depth));
      } else {
        CYB_TRY(key_value(*current, depth));
      }
      CYB_TRY(in_.end_of_line());
      in_.skip_blank();
    }
    return finish(root);
  }

 private:
  Result<void> count() {
    if (++values_ > kMaxTomlValues)
      return fail(in_.error(fmt::format("more than {} values", kMaxTomlValues)));
    return {};
  }
  Result<void> check_depth(std::size_t depth) const {
    if (depth > kMaxDepth) return fail(in_.error("nested more than 16 levels deep"));
    return {};
  }
  static Error duplicate(const Path& path) {
    return duplicate_error("key", fmt::format("{}", fmt::join(path, ".")));
  }

  /// One or more keys with dots between them.
  Result<Path> path(std::size_t depth) {
    Path out;
    do {
      CYB_TRY(check_depth(depth + out.size() + 1));
      CYB_TRY(count());
      in_.skip_spaces();
      CYB_ASSIGN(const std::string_view key, in_.key());
      out.emplace_back(key);
      in_.skip_spaces();
    } while (in_.consume('.'));
    return out;
  }

  Result<Building*> header(Building& root, std::size_t& depth) {
    in_.consume('[');
    const bool array = in_.consume('[');
    CYB_ASSIGN(const Path steps, path(0));
    CYB_TRY(in_.expect(']'));
    if (array && !in_.consume(']')) return fail(in_.error("expected ']]'"));
    depth = steps.size();
    Building* table = &root;
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      Building::Entry* entry = table->find(steps[i]);
      if (entry == nullptr) {
        entry = &table->add(steps[i]);
        entry->table = std::make_unique<Building>(Building::Origin::kImplied);
      }
      if (entry->value) return fail(duplicate(steps));
      table = entry->table != nullptr ? entry->table.get() : entry->elements.back().get();
    }
    return array ? new_element(*table, steps) : new_table(*table, steps);
  }

  static Result<Building*> new_table(Building& parent, const Path& steps) {
    Building::Entry* entry = parent.find(steps.back());
    if (entry == nullptr) {
      entry = &parent.add(steps.back());
      entry->table = std::make_unique<Building>(Building::Origin::kHeader);
    } else if (entry->table == nullptr || entry->table->origin != Building::Origin::kImplied) {
      return fail(duplicate(steps));
    }
    entry->table->origin = Building::Origin::kHeader;
    return entry->table.get();
  }

  static Result<Building*> new_element(Building& parent, const Path& steps) {
    Building::Entry* entry = parent.find(steps.back());
    if (entry == nullptr) {
      entry = &parent.add(steps.back());
    } else if (entry->elements.empty()) {
      return fail(duplicate(steps));
    }
    entry->elements.push_back(std::make_unique<Building>(Building::Origin::kHeader));
    return entry->elements.back().get();
  }

  // NOLINTBEGIN(misc-no-recursion): check_depth bounds it.
  Result<void> key_value(Building& start, std::size_t depth) {
    CYB_ASSIGN(Path steps, path(depth));
    Building* table = &start;
    for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
      Building::Entry* entry = table->find(steps[i]);
      if (entry == nullptr) {
        entry = &table->add(steps[i]);
        entry->table = std::make_unique<Building>(Building::Origin::kDotted);
      } else if (entry->table == nullptr || entry->table->origin != Building::Origin::kDotted) {
        return fail(duplicate(steps));
      }
      table = entry->table.get();
    }
    if (table->find(steps.back()) != nullptr) return fail(duplicate(steps));
    CYB_TRY(in_.expect('='));
    in_.skip_spaces();
    CYB_ASSIGN(ConfigValue read, value(depth + steps.size()));
    table->add(std::move(steps.back())).value = std::move(read);
    return {};
  }

  Result<ConfigValue> value(std::size_t depth) {
    CYB_TRY(count());
    const char c = in_.peek();
    if (c == '[') return array(depth + 1);
    if (c == '{') return inline_table(depth + 1);
    if (c == '"' || c == '\'') {
      const bool multi_line = in_.rest().starts_with("\"\"\"") || in_.rest().starts_with("'''");
      CYB_ASSIGN(const std::string_view text, multi_line ? in_.multi_line_string() : in_.string());
      return ConfigValue(std::string(text));
    }
    auto scalar = parse_toml_scalar(in_.scalar_text());
    if (!scalar) return fail(in_.error(scalar.error()));
    return *std::move(scalar);
  }

  Result<ConfigValue> array(std::size_t depth) {
    CYB_TRY(check_depth(depth));
    in_.consume('[');
    ConfigArray out;
    bool first = true;
    while (true) {
      CYB_ASSIGN(const bool more, in_.next_element(first));
      if (!more) return ConfigValue(std::move(out));
      CYB_ASSIGN(ConfigValue element, value(depth));
      out.push_back(std::move(element));
    }
  }

  Result<ConfigValue> inline_table(std::size_t depth) {
    CYB_TRY(check_depth(depth));
    in_.consume('{');
    Building table(Building::Origin::kHeader);
    in_.skip_spaces();
    if (in_.consume('}')) return ConfigValue(ConfigTable());
    while (true) {
      CYB_TRY(key_value(table, depth));
      in_.skip_spaces();
      if (in_.consume('}')) return ConfigValue(finish(table));
      if (!in_.consume(',')) return fail(in_.error("expected ',' or '}'"));
    }
  }
  // NOLINTEND(misc-no-recursion)

  TomlCursor in_;
  std::size_t values_ = 0;
};

}  // namespace

Result<ConfigTable> parse_toml(std::string_view text, std::string_view part) {
  CYB_TRY(check_text(text, part));
  return Parser(text, part).document();
}

}  // namespace cyb
