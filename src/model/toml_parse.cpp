// parse_toml: the one place that uses toml++. A scan before it bounds what the library would build
// (values, nesting, dotted keys), so that neither its memory nor its recursion follows the input.
#undef TOML_HEADER_ONLY
#undef TOML_SHARED_LIB
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32
#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "base/limits.hpp"
#include "model/config.hpp"
#include "model/format_error.hpp"
#include "model/toml_cursor.hpp"

namespace cyb {
namespace {

constexpr std::size_t kMaxDots = 16;  // in one dotted key or header
// Of tables and arrays in each other: whatever is accepted can be written canonically and read
// again.
constexpr std::size_t kMaxDepth = 16;

/// Walks the text outside strings and comments. Up to the first syntax error its view of what is a
/// string is TOML's; behind it the library has stopped.
class Bounds {
 public:
  Bounds(std::string_view text, std::string_view part) : text_(text), part_(part) {}

  Result<void> check() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        skip_string(c);
        continue;
      }
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      if (c == '\n') ++line_;
      if (c == '=' || c == ',' || c == '[' || c == '{') ++values_;
      dots_ = c == '.' ? dots_ + 1 : std::string_view("=,[]{}\n").contains(c) ? 0 : dots_;
      if (dots_ > kMaxDots) return fail(toml_error(part_, line_, "a key has more than 16 dots"));
      if (values_ > kMaxTomlValues) {
        return fail(toml_error(part_, line_, fmt::format("more than {} values", kMaxTomlValues)));
      }
      ++at_;
    }
    return {};
  }

 private:
  void skip_string(char quote) {
    const std::string three(3, quote);
    const bool multi_line = text_.substr(at_).starts_with(three);
    at_ += multi_line ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') ++line_;
      if (c == '\n' && !multi_line) return;  // not closed: the library reports it
      if (c == '\\' && quote == '"') {
        ++at_;
        if (at_ < text_.size() && text_[at_] == '\n') ++line_;
      } else if (c == quote && (!multi_line || text_.substr(at_).starts_with(three))) {
        at_ += multi_line ? 3 : 1;
        // `""""` closes a multi-line string whose last character is a quote.
        while (multi_line && at_ < text_.size() && text_[at_] == quote) ++at_;
        return;
      }
      ++at_;
    }
  }

  std::string_view text_, part_;
  std::size_t at_ = 0, values_ = 0, dots_ = 0;
  std::uint64_t line_ = 1;
};

struct Converter {
  std::string_view part;

  Result<ConfigValue> value(const toml::node& node, std::size_t depth) const {
    if (depth > kMaxDepth) {
      return fail(toml_error(part, node.source().begin.line, "nested more than 16 levels deep"));
    }
    switch (node.type()) {
      case toml::node_type::boolean:
        return ConfigValue(node.as_boolean()->get());
      case toml::node_type::integer:
        return ConfigValue(node.as_integer()->get());
      case toml::node_type::floating_point:
        return ConfigValue(node.as_floating_point()->get());
      case toml::node_type::string:
        return ConfigValue(node.as_string()->get());
      case toml::node_type::array:
        return array(*node.as_array(), depth);
      case toml::node_type::table: {
        CYB_ASSIGN(ConfigTable inner, table(*node.as_table(), depth));
        return ConfigValue(std::move(inner));
      }
      default:
        return fail(toml_error(part, node.source().begin.line, "dates and times are not allowed"));
    }
  }

  Result<ConfigValue> array(const toml::array& in, std::size_t depth) const {
    ConfigArray out;
    out.reserve(in.size());
    for (const toml::node& element : in) {
      CYB_ASSIGN(ConfigValue item, value(element, depth + 1));
      out.push_back(std::move(item));
    }
    return ConfigValue(std::move(out));
  }

  /// toml++ sorts keys; the position of a key's first appearance restores the order of the text.
  Result<ConfigTable> table(const toml::table& in, std::size_t depth) const {
    struct Item {
      toml::source_position begin;
      std::string_view key;
      const toml::node* node;
    };
    std::vector<Item> items;
    items.reserve(in.size());
    for (auto&& [key, node] : in) items.push_back({key.source().begin, key.str(), &node});
    std::ranges::sort(items, [](const Item& a, const Item& b) {
      return std::pair(a.begin.line, a.begin.column) < std::pair(b.begin.line, b.begin.column);
    });
    ConfigTable out;
    for (const Item& item : items) {
      if (item.key.size() > kMaxKeyBytes) {
        return fail(toml_error(part, item.begin.line, "key is longer than 65536 bytes"));
      }
      CYB_ASSIGN(ConfigValue converted, value(*item.node, depth + 1));
      out.append(std::string(item.key), std::move(converted));
    }
    return out;
  }
};

/// toml++ has no code for a duplicate key: its text is `cannot redefine existing <type> '<key>'`.
Error parse_failure(std::string_view part, const toml::parse_error& error) {
  std::string_view why = error.description();
  const std::size_t redefined = why.find("cannot redefine existing ");
  if (redefined != std::string_view::npos) {
    std::string_view name = why.substr(redefined);
    const std::size_t open = name.find('\'');
    const std::size_t close = name.rfind('\'');
    if (open != std::string_view::npos && close > open) {
      name = name.substr(open + 1, close - open - 1);
      if (name.size() >= 2 && name.front() == '"' && name.back() == '"') {
        name = name.substr(1, name.size() - 2);
      }
      return duplicate_error("key", name).with("part", std::string(part));
    }
  }
  return toml_error(part, error.source().begin.line, printable(why, 300));
}

}  // namespace

Result<ConfigTable> parse_toml(std::string_view text, std::string_view part) {
  CYB_TRY(check_text(text, part));
  CYB_TRY(Bounds(text, part).check());
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) return fail(parse_failure(part, parsed.error()));
  return Converter{part}.table(parsed.table(), 0);
}

}  // namespace cyb
