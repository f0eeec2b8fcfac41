// Parser: tokens to an Ast, as jinja2's parser.py reads them. Unknown filters, tests and tags are
// refused here.
#pragma once

#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "text/template/ast.hpp"
#include "text/template/lexer.hpp"

namespace cyb::tmpl {

/// Throws Failure. `source`: valid UTF-8.
std::unique_ptr<Ast> parse(std::string_view source);

class Parser {
 public:
  Parser(Ast& ast, std::vector<Token> tokens) : ast_(ast), tokens_(std::move(tokens)) {}
  void parse_template();

 private:
  using Words = std::initializer_list<std::string_view>;
  class Nest;  // counts the depth of nesting while it lives

  // tokens
  const Token& current() const { return tokens_[next_]; }
  const Token& following() const { return tokens_[next_ + 1 < tokens_.size() ? next_ + 1 : next_]; }
  const Token& take() { return tokens_[next_ + 1 < tokens_.size() ? next_++ : next_]; }
  bool is_op(std::string_view op) const {
    return current().kind == TokenKind::kOperator && current().text == op;
  }
  bool is_word(std::string_view word) const {
    return current().kind == TokenKind::kName && current().text == word;
  }
  bool is_word_of(Words words) const;
  bool skip_op(std::string_view op);
  bool skip_word(std::string_view word);
  void expect_op(std::string_view op);
  std::string expect_name();
  void expect(TokenKind kind);
  [[noreturn]] void fail(std::string message) const { fail_at(current().at, std::move(message)); }
  [[noreturn]] static void fail_at(Position at, std::string message) {
    throw Failure{at, std::move(message)};
  }
  std::string described() const;
  Node& make(NodeKind kind, Position at);
  void add_literal(std::string_view text);

  // expressions
  const Node* expression(bool with_condition = true);
  const Node* condition();
  const Node* alternatives();
  const Node* conjunction();
  const Node* negation();
  const Node* comparison();
  const Node* sum();
  const Node* concatenation();
  const Node* product();
  const Node* power();
  const Node* unary(bool with_filter = true);
  const Node* primary();
  const Node* string_constant();
  const Node* tuple(bool with_condition, bool parenthesised);
  const Node* list();
  const Node* dict();
  const Node* chain(const Node* base, bool with_filter);
  Step subscript();
  Step attribute();
  Step filter_step();
  Step test_step();
  Arguments call_arguments();
  void one_argument(Arguments& out);
  bool at_tuple_end() const;
  bool begins_test_argument() const;

  // statements
  std::vector<const Node*> statements(Words end_words);
  std::vector<const Node*> block(Words end_words);
  const Node* statement();
  const Node* for_statement(Position at);
  const Node* if_statement(Position at);
  const Node* set_statement(Position at);
  const Node* macro_statement(Position at);
  const Node* call_statement(Position at);
  const Node* filter_statement(Position at);
  const Node* with_statement(Position at);
  const Node* scope_statement(Position at, std::string_view end_word);
  std::vector<Parameter> signature();
  std::vector<Step> filters();
  Target target(Words end_words, bool with_namespace);
  Target one_target(bool with_namespace);

  Ast& ast_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  unsigned depth_ = 0, loops_ = 0;
  bool lenient_ = false;  // inside an if: an unknown filter or test fails only when it is used
  std::vector<Failure> unknown_;  // filters and tests that do not exist and are not excused
  Node* macro_ = nullptr;         // the innermost macro or call block
};

}  // namespace cyb::tmpl
