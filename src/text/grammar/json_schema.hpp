// Json schemas in one piece: what a schema, its $ref and its allOf say together, keyword by
// keyword. Everything that is not understood is refused here, with the path of the schema and the
// keyword.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/grammar/budget.hpp"
#include "text/grammar/json_numbers.hpp"

namespace cyb::text {

using SchemaJson = nlohmann::ordered_json;

enum SchemaType : std::uint8_t {
  kNull = 1,
  kBoolean = 2,
  kString = 4,
  kNumber = 8,
  kInteger = 16,
  kArray = 32,
  kObject = 64,
  kAnyType = kNull | kBoolean | kString | kNumber | kArray | kObject
};

/// A schema that is still to be read, and where it stands.
struct SchemaPart {
  SchemaJson schema;
  std::string path;
};

/// What one schema object says of an object's members.
struct MemberRules {
  std::vector<std::pair<std::string, SchemaPart>> properties{}, patterns{};
  std::optional<SchemaPart> additional{};  // of all other names
};

struct SchemaChoice {
  bool exactly_one = false;
  std::vector<SchemaPart> parts;
  std::string path;
};

struct FlatSchema {
  std::string path;
  bool never = false;
  std::optional<unsigned> types{};  // bits of SchemaType
  std::optional<std::vector<SchemaJson>> values{};
  std::string values_path{};
  NumberRange range{};
  std::optional<std::uint64_t> multiple_of{};
  std::uint64_t min_length = 0, max_length = kUnbounded;
  std::optional<std::string> pattern{}, format{};
  std::string text_path{};  // of the pattern or format
  std::vector<SchemaPart> items{};
  std::optional<std::vector<SchemaPart>> prefix_items{};
  std::uint64_t min_items = 0, max_items = kUnbounded;
  std::vector<MemberRules> members{};
  std::vector<std::string> required{};
  std::vector<SchemaPart> property_names{};
  std::uint64_t min_properties = 0, max_properties = kUnbounded;
  std::string count_path{};  // of min_properties, max_properties
  std::vector<SchemaChoice> choices{};
  unsigned implied_types = 0;              // of the keywords for one type only
  std::vector<std::string> restricting{};  // paths of keywords that hold for one type only
  std::vector<SchemaPart> sources{};       // the schema objects that this was read from

  bool requires_name(std::string_view name) const;
  /// Types of values that may fit.
  unsigned possible_types() const;
};

class SchemaReader {
 public:
  SchemaReader(const SchemaJson& document, GrammarBudget& budget)
      : document_(document), budget_(budget) {}

  /// Errors: InvalidInput naming the path.
  Result<FlatSchema> flatten(const SchemaPart& part);
  /// Where a schema is nothing but a $ref: what it refers to in the end. Errors: a cycle, a $ref
  /// that is not understood or refers to nothing.
  Result<SchemaPart> follow(SchemaPart part);
  /// No value fits both. False where that is not certain.
  Result<bool> disjoint(const SchemaPart& a, const SchemaPart& b);

 private:
  friend struct SchemaKeywords;
  Result<SchemaPart> target(const SchemaPart& part);
  Result<void> add(FlatSchema& out, const SchemaPart& part, std::vector<SchemaPart>& todo);
  Result<void> add_members(FlatSchema& out, const SchemaPart& part);
  Result<bool> members_disjoint(const FlatSchema& a, const FlatSchema& b);

  const SchemaJson& document_;
  GrammarBudget& budget_;
};

/// Keyword of our own: a list of [path, schema], all of which must fit.
inline constexpr std::string_view kTogether = "\x01";
/// The schema that says what all parts say.
SchemaPart together(std::vector<SchemaPart> parts, const std::string& path);

/// Reads one keyword into a FlatSchema: json_schema_keywords.cpp. `known`: false where it is not in
/// the table.
Result<void> read_schema_keyword(FlatSchema& out, const std::string& key, const SchemaPart& part,
                                 bool& known);
/// A keyword that says nothing about which values fit.
bool is_schema_annotation(std::string_view keyword);
/// `path` with one more step, escaped as in a JSON pointer.
std::string schema_path(const std::string& path, std::string_view step);
inline std::unexpected<Error> schema_error(std::string_view path, std::string_view what) {
  return fail(grammar_error(path, what));
}

/// The same, of an error in a pattern.
inline std::unexpected<Error> schema_error(std::string_view path, const Error& pattern) {
  std::string_view text = pattern.message();
  if (text.starts_with("grammar: ")) text.remove_prefix(9);
  return fail(grammar_error(path, text));
}

}  // namespace cyb::text
