// JsonSchemaCompiler: schemas to rules, one rule per distinct schema, from a list of schemas that
// are still to be written. Layout of the text: docs/grammars.md.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/grammar/expression.hpp"
#include "text/grammar/json_schema.hpp"

namespace cyb::text {

/// Blanks that may follow a line break inside JSON; otherwise at most one space.
inline constexpr std::uint64_t kMostIndent = 32;

class JsonSchemaCompiler {
 public:
  JsonSchemaCompiler(const SchemaJson& document, GrammarBudget& budget);
  /// The whole document is the root.
  Result<GrammarRules> run();
  /// The values at `pointers` ("#/$defs/a"), for a grammar around them; without a root.
  Result<GrammarRules> run(std::span<const std::string> pointers, std::vector<ExprId>& values);

 private:
  Result<void> write_all();
  struct Task {
    SchemaPart part;
    RuleId rule;
    std::size_t depth;
  };
  struct Member {
    std::string name;
    ExprId entry = kNoExpr;  // "name": value
    bool required = false;
  };
  // json_schema_compiler.cpp
  Result<ExprId> value_of(const SchemaPart& part);
  Result<void> write(const Task& task);
  Result<ExprId> flat(const FlatSchema& schema);
  Result<ExprId> choices(const FlatSchema& schema);
  Result<void> check_exclusive(const SchemaChoice& choice);
  Result<ExprId> values(const FlatSchema& schema);
  Result<ExprId> typed(const FlatSchema& schema, unsigned type);
  Result<ExprId> text(const FlatSchema& schema);
  Result<ExprId> text_body(const FlatSchema& schema);
  Result<ExprId> number(const FlatSchema& schema, bool whole);
  ExprId written(const SchemaJson& value);
  // json_schema_objects.cpp
  Result<ExprId> array(const FlatSchema& schema);
  Result<ExprId> items_tail(const FlatSchema& schema, const SchemaPart& item);
  Result<ExprId> object(const FlatSchema& schema);
  Result<std::vector<Member>> members_of(const FlatSchema& schema);
  Result<bool> pattern_fits(const std::string& pattern, const SchemaPart& part,
                            const std::string& name);
  Result<SchemaPart> member_schema(const FlatSchema& schema, const std::string& name);
  Result<ExprId> other_entry(const FlatSchema& schema, const std::vector<Member>& members);
  Result<ExprId> pattern_entry(const FlatSchema& schema, const MemberRules& rules);
  Result<ExprId> other_key(const FlatSchema& schema, const std::vector<Member>& members);
  ExprId key_unlike(const std::vector<Member>& members);
  ExprId entries(const std::vector<Member>& members, ExprId other, std::uint64_t most_others,
                 bool one_needed);
  Result<void> check_counts(const FlatSchema& schema, const std::vector<Member>& members,
                            bool others);
  // json_schema_basics.cpp
  void define_basics();
  void define_any();

  GrammarRules rules_;
  GrammarBudget& budget_;
  const SchemaJson& document_;
  SchemaReader reader_;
  std::deque<Task> tasks_;
  std::unordered_map<std::string, RuleId> known_;
  std::size_t depth_ = 0;  // of the task that is being written
  RuleId space_ = 0, char_ = 0, string_ = 0, number_ = 0, integer_ = 0;
  RuleId any_ = 0, any_array_ = 0, any_object_ = 0;
};

/// A schema's text. Errors: InvalidInput with line and column, too many levels.
Result<SchemaJson> parse_schema(std::string_view source);

/// The pattern of a format, as a regular expression; null where it is not known.
const char* format_pattern(std::string_view format);

}  // namespace cyb::text
