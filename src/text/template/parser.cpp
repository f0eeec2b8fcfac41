// Tokens and statements.
#include "text/template/parser.hpp"

#include <algorithm>

#include "text/template/folding.hpp"
#include "text/template/parser_common.hpp"
#include "text/template/scopes.hpp"

namespace cyb::tmpl {

bool Parser::is_word_of(Words words) const {
  return current().kind == TokenKind::kName &&
         std::find(words.begin(), words.end(), current().text) != words.end();
}

bool Parser::skip_op(std::string_view op) {
  if (!is_op(op)) return false;
  take();
  return true;
}

bool Parser::skip_word(std::string_view word) {
  if (!is_word(word)) return false;
  take();
  return true;
}

std::string Parser::described() const {
  switch (current().kind) {
    case TokenKind::kData:
      return "'template data'";
    case TokenKind::kVariableBegin:
      return "'begin of print statement'";
    case TokenKind::kVariableEnd:
      return "'end of print statement'";
    case TokenKind::kBlockBegin:
      return "'begin of statement block'";
    case TokenKind::kBlockEnd:
      return "'end of statement block'";
    case TokenKind::kEnd:
      return "end of template";
    case TokenKind::kInteger:
      return fmt::format("'{}'", current().integer);
    case TokenKind::kFloat:
      return fmt::format("'{}'", current().number);
    default:
      return fmt::format("'{}'", current().text);
  }
}

void Parser::expect_op(std::string_view op) {
  if (!skip_op(op)) fail(fmt::format("expected token '{}', got {}", op, described()));
}

std::string Parser::expect_name() {
  if (current().kind != TokenKind::kName)
    fail(fmt::format("expected token 'name', got {}", described()));
  return take().text;
}

void Parser::expect(TokenKind kind) {
  if (current().kind == kind) {
    take();
    return;
  }
  const char* name =
      kind == TokenKind::kVariableEnd ? "end of print statement" : "end of statement block";
  if (current().kind == TokenKind::kEnd)
    fail(fmt::format("unexpected end of template, expected '{}'.", name));
  fail(fmt::format("expected token '{}', got {}", name, described()));
}

Node& Parser::make(NodeKind kind, Position at) {
  Node& node = ast_.nodes.emplace_back();
  node.kind = kind;
  node.at = at;
  return node;
}

void Parser::add_literal(std::string_view text) {
  if (!text.empty()) ast_.literals.emplace_back(text);
}

void Parser::parse_template() {
  ast_.body = statements({});
  if (current().kind != TokenKind::kEnd) fail(fmt::format("unexpected {}", described()));
  if (!unknown_.empty()) throw unknown_.front();
  mark_folding(ast_);
}

// Reads up to one of the end words (left as the current token) or, if there are none, to the end.
std::vector<const Node*> Parser::statements(Words end_words) {
  const Nest nest(*this);
  std::vector<const Node*> out;
  while (current().kind != TokenKind::kEnd) {
    const Position at = current().at;
    if (current().kind == TokenKind::kData) {
      Node& node = make(NodeKind::kData, at);
      node.text = take().text;
      add_literal(node.text);
      out.push_back(&node);
    } else if (current().kind == TokenKind::kVariableBegin) {
      take();
      Node& node = make(NodeKind::kOutput, at);
      node.items.push_back(tuple(true, false));
      expect(TokenKind::kVariableEnd);
      out.push_back(&node);
    } else {
      expect(TokenKind::kBlockBegin);
      if (is_word_of(end_words)) return out;
      out.push_back(statement());
      expect(TokenKind::kBlockEnd);
    }
  }
  if (end_words.size() > 0) {
    std::string wanted;
    for (const std::string_view word : end_words)
      wanted += fmt::format("{}'{}'", wanted.empty() ? "" : " or ", word);
    fail(fmt::format("Unexpected end of template. Jinja was looking for the following tags: {}.",
                     wanted));
  }
  return out;
}

// The end of a tag, and what it encloses.
std::vector<const Node*> Parser::block(Words end_words) {
  skip_op(":");
  expect(TokenKind::kBlockEnd);
  return statements(end_words);
}

const Node* Parser::statement() {
  const Position at = current().at;
  if (current().kind != TokenKind::kName) fail("tag name expected");
  const std::string word = take().text;
  // Bodies other than those of an if are strict again about unknown names.
  const bool outer = lenient_;
  if (word != "if" && word != "set") lenient_ = false;
  const Node* out = nullptr;
  if (word == "for") {
    out = for_statement(at);
  } else if (word == "if") {
    out = if_statement(at);
  } else if (word == "set") {
    out = set_statement(at);
  } else if (word == "macro") {
    out = macro_statement(at);
  } else if (word == "call") {
    out = call_statement(at);
  } else if (word == "filter") {
    out = filter_statement(at);
  } else if (word == "with") {
    out = with_statement(at);
  } else if (word == "generation") {
    out = scope_statement(at, "endgeneration");
  } else if (word == "print") {
    Node& node = make(NodeKind::kOutput, at);
    while (current().kind != TokenKind::kBlockEnd) {
      if (!node.items.empty()) expect_op(",");
      node.items.push_back(expression());
    }
    out = &node;
  } else if (word == "break" || word == "continue") {
    if (loops_ == 0) fail_at(at, fmt::format("'{}' outside of a loop", word));
    out = &make(word == "break" ? NodeKind::kBreak : NodeKind::kContinue, at);
  } else {
    for (const std::string_view known :
         {"block", "extends", "include", "import", "from", "autoescape"}) {
      if (word == known) fail_at(at, fmt::format("the tag '{}' is not supported", word));
    }
    fail_at(at, fmt::format("Encountered unknown tag '{}'.", word));
  }
  lenient_ = outer;
  return out;
}

const Node* Parser::for_statement(Position at) {
  Node& node = make(NodeKind::kFor, at);
  node.targets.push_back(target({"in"}, false));
  if (!skip_word("in")) fail(fmt::format("expected token 'in', got {}", described()));
  node.items.push_back(tuple(false, false));
  node.items.push_back(skip_word("if") ? expression() : nullptr);
  node.recursive = skip_word("recursive");
  ++loops_;
  node.body = block({"endfor", "else"});
  --loops_;
  if (take().text == "else") {
    node.orelse = block({"endfor"});
    take();
  }
  return &node;
}

const Node* Parser::if_statement(Position at) {
  const bool outer = lenient_;
  lenient_ = true;
  Node& node = make(NodeKind::kIf, at);
  while (true) {
    const Node* test = tuple(false, false);
    node.branches.emplace_back(test, block({"elif", "else", "endif"}));
    const std::string word = take().text;
    if (word == "elif") continue;
    if (word == "else") {
      node.branches.emplace_back(nullptr, block({"endif"}));
      take();
    }
    break;
  }
  lenient_ = outer;
  return &node;
}

std::vector<Step> Parser::filters() {
  std::vector<Step> out;
  while (skip_op("|")) out.push_back(filter_step());
  return out;
}

const Node* Parser::set_statement(Position at) {
  const Target written = target({}, true);
  if (skip_op("=")) {
    Node& node = make(NodeKind::kSet, at);
    node.targets.push_back(written);
    node.items.push_back(tuple(true, false));
    return &node;
  }
  Node& node = make(NodeKind::kSetBlock, at);
  node.targets.push_back(written);
  node.steps = filters();
  lenient_ = false;
  node.body = block({"endset"});
  take();
  return &node;
}

std::vector<Parameter> Parser::signature() {
  std::vector<Parameter> out;
  expect_op("(");
  while (!is_op(")")) {
    if (!out.empty()) expect_op(",");
    Parameter parameter;
    parameter.name = one_target(false).name;
    if (skip_op("=")) {
      parameter.fallback = expression();
    } else if (!out.empty() && out.back().fallback != nullptr) {
      fail("non-default argument follows default argument");
    }
    out.push_back(std::move(parameter));
  }
  take();
  return out;
}

namespace {

/// caller, varargs and kwargs in a body are also those of the macro around it, where no parameter
/// has the name.
void pass_uses(const Node& inner, Node& outer) {
  const auto is_free = [&](std::string_view name) {
    return std::ranges::find(inner.parameters, name, &Parameter::name) == inner.parameters.end();
  };
  outer.uses_caller |= inner.uses_caller && is_free("caller");
  outer.uses_varargs |= inner.uses_varargs && is_free("varargs");
  outer.uses_kwargs |= inner.uses_kwargs && is_free("kwargs");
}

}  // namespace

const Node* Parser::macro_statement(Position at) {
  Node& node = make(NodeKind::kMacro, at);
  node.text = one_target(false).name;
  Node* outer = macro_;
  const unsigned loops = loops_;
  macro_ = &node;
  loops_ = 0;
  node.parameters = signature();
  node.body = block({"endmacro"});
  take();
  macro_ = outer;
  loops_ = loops;
  if (outer != nullptr) pass_uses(node, *outer);
  return &node;
}

const Node* Parser::call_statement(Position at) {
  Node& node = make(NodeKind::kCallBlock, at);
  if (is_op("(")) node.parameters = signature();
  const Node* call = expression();
  const bool is_call = call->kind == NodeKind::kChain && call->steps.back().kind == StepKind::kCall;
  if (!is_call) fail_at(at, "expected call");
  node.items.push_back(call);
  Node* outer = macro_;
  const unsigned loops = loops_;
  macro_ = &node;
  loops_ = 0;
  node.body = block({"endcall"});
  take();
  macro_ = outer;
  loops_ = loops;
  if (outer != nullptr) pass_uses(node, *outer);
  return &node;
}

const Node* Parser::filter_statement(Position at) {
  Node& node = make(NodeKind::kFilterBlock, at);
  node.steps.push_back(filter_step());
  for (Step& step : filters()) node.steps.push_back(std::move(step));
  node.body = block({"endfilter"});
  take();
  return &node;
}

const Node* Parser::with_statement(Position at) {
  Node& node = make(NodeKind::kWith, at);
  while (current().kind != TokenKind::kBlockEnd) {
    if (!node.targets.empty()) expect_op(",");
    node.targets.push_back(target({}, false));
    expect_op("=");
    node.items.push_back(expression());
  }
  node.body = block({"endwith"});
  take();
  return &node;
}

const Node* Parser::scope_statement(Position at, std::string_view end_word) {
  Node& node = make(NodeKind::kScope, at);
  const unsigned loops = loops_;
  loops_ = 0;
  node.body = block({end_word});
  take();
  loops_ = loops;
  return &node;
}

Target Parser::one_target(bool with_namespace) {
  Target out;
  out.at = current().at;
  if (with_namespace && is_op("(")) fail("assigning to a tuple in parentheses is not supported");
  out.name = expect_name();
  for (const std::string_view word : {"true", "false", "none", "True", "False", "None"}) {
    if (out.name == word) fail_at(out.at, "can't assign to 'const'");
  }
  if (with_namespace && skip_op(".")) out.attribute = expect_name();
  return out;
}

Target Parser::target(Words end_words, bool with_namespace) {
  Target out;
  out.at = current().at;
  const bool parentheses = skip_op("(");
  bool is_tuple = parentheses;
  while (true) {
    if (!out.parts.empty()) expect_op(",");
    if (at_tuple_end() || is_op("=")) break;
    // jinja2 takes an end word after a comma for a name.
    if (!out.parts.empty() && is_word_of(end_words)) {
      take();
      fail(fmt::format("expected token 'in', got {}", described()));
    }
    out.parts.push_back(one_target(with_namespace));
    if (!is_op(",")) break;
    is_tuple = true;
  }
  if (out.parts.empty()) fail(fmt::format("Expected an expression, got {}", described()));
  if (parentheses) {
    expect_op(")");
    if (is_op(",")) fail("nested tuples in an assignment are not supported");
  }
  return is_tuple ? out : out.parts[0];
}

std::unique_ptr<Ast> parse(std::string_view source) {
  auto ast = std::make_unique<Ast>();
  Parser(*ast, tokenize(source)).parse_template();
  find_scopes(*ast);
  return ast;
}

}  // namespace cyb::tmpl
