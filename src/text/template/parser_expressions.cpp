// Expressions, by precedence: if-else, or, and, not, comparison, + -, ~, * / // %, **, unary,
// postfix and filters.
#include <array>
#include <optional>

#include "text/template/parser_common.hpp"

namespace cyb::tmpl {
namespace {

constexpr std::array<std::pair<std::string_view, Op>, 6> kComparisons{{{"==", Op::kEq},
                                                                       {"!=", Op::kNe},
                                                                       {"<", Op::kLt},
                                                                       {"<=", Op::kLe},
                                                                       {">", Op::kGt},
                                                                       {">=", Op::kGe}}};

}  // namespace

const Node* Parser::expression(bool with_condition) {
  const Nest nest(*this);
  return with_condition ? condition() : alternatives();
}

const Node* Parser::condition() {
  const Position at = current().at;
  const std::size_t n_unknown = unknown_.size();
  const Node* out = alternatives();
  if (!is_word("if")) return out;
  // What stands in a conditional expression may name filters that do not exist, as in jinja2.
  unknown_.resize(n_unknown);
  const bool outer = lenient_;
  lenient_ = true;
  for (unsigned nested = 0; is_word("if"); ++nested) {
    // `a if b if c` nests to the left.
    if (nested >= kMaxTemplateDepth)
      fail(fmt::format("nested more than {} deep", kMaxTemplateDepth));
    take();
    Node& node = make(NodeKind::kCond, at);
    node.items = {alternatives(), out};
    if (skip_word("else")) node.items.push_back(expression());
    out = &node;
  }
  lenient_ = outer;
  return out;
}

const Node* Parser::alternatives() {
  const Position at = current().at;
  const Node* first = conjunction();
  if (!is_word("or")) return first;
  Node& node = make(NodeKind::kOr, at);
  node.items.push_back(first);
  while (skip_word("or")) node.items.push_back(conjunction());
  return &node;
}

const Node* Parser::conjunction() {
  const Position at = current().at;
  const Node* first = negation();
  if (!is_word("and")) return first;
  Node& node = make(NodeKind::kAnd, at);
  node.items.push_back(first);
  while (skip_word("and")) node.items.push_back(negation());
  return &node;
}

const Node* Parser::negation() {
  if (!is_word("not")) return comparison();
  const Nest nest(*this);
  Node& node = make(NodeKind::kNot, take().at);
  node.items.push_back(negation());
  return &node;
}

const Node* Parser::comparison() {
  const Position at = current().at;
  const Node* first = sum();
  Node* node = nullptr;
  while (true) {
    std::optional<Op> op;
    for (const auto& [text, value] : kComparisons) {
      if (is_op(text)) op = value;
    }
    const bool not_in =
        is_word("not") && following().kind == TokenKind::kName && following().text == "in";
    if (is_word("in")) op = Op::kIn;
    if (not_in) {
      take();
      op = Op::kNotIn;
    }
    if (!op) return node != nullptr ? node : first;
    take();
    if (node == nullptr) {
      node = &make(NodeKind::kCompare, at);
      node->items.push_back(first);
    }
    node->ops.push_back(*op);
    node->items.push_back(sum());
  }
}

const Node* Parser::sum() {
  const Position at = current().at;
  const Node* first = concatenation();
  if (!is_op("+") && !is_op("-")) return first;
  Node& node = make(NodeKind::kArith, at);
  node.items.push_back(first);
  while (is_op("+") || is_op("-")) {
    node.ops.push_back(take().text == "+" ? Op::kAdd : Op::kSub);
    node.items.push_back(concatenation());
  }
  return &node;
}

const Node* Parser::concatenation() {
  const Position at = current().at;
  const Node* first = product();
  if (!is_op("~")) return first;
  Node& node = make(NodeKind::kConcat, at);
  node.items.push_back(first);
  while (skip_op("~")) node.items.push_back(product());
  return &node;
}

const Node* Parser::product() {
  const Position at = current().at;
  const Node* first = power();
  Node* node = nullptr;
  while (is_op("*") || is_op("/") || is_op("//") || is_op("%")) {
    if (node == nullptr) {
      node = &make(NodeKind::kArith, at);
      node->items.push_back(first);
    }
    const std::string& op = take().text;
    node->ops.push_back(op == "*"   ? Op::kMul
                        : op == "/" ? Op::kDiv
                        : op == "%" ? Op::kMod
                                    : Op::kFloorDiv);
    node->items.push_back(power());
  }
  return node != nullptr ? node : first;
}

const Node* Parser::power() {
  const Position at = current().at;
  const Node* first = unary();
  if (!is_op("**")) return first;
  Node& node = make(NodeKind::kPow, at);
  node.items.push_back(first);
  while (skip_op("**")) node.items.push_back(unary());
  return &node;
}

const Node* Parser::unary(bool with_filter) {
  const Position at = current().at;
  if (!is_op("-") && !is_op("+")) return chain(primary(), with_filter);
  const Nest nest(*this);
  Node& node = make(take().text == "-" ? NodeKind::kNeg : NodeKind::kPos, at);
  node.items.push_back(unary(false));
  return chain(&node, with_filter);
}

const Node* Parser::primary() {
  const Token& token = current();
  const Position at = token.at;
  if (token.kind == TokenKind::kString) return string_constant();
  if (is_op("[")) return list();
  if (is_op("{")) return dict();
  if (skip_op("(")) {
    const Node* inside = tuple(true, true);
    expect_op(")");
    return inside;
  }
  if (token.kind == TokenKind::kName) {
    const std::string& word = take().text;
    const bool yes = word == "true" || word == "True", no = word == "false" || word == "False";
    if (yes || no || word == "none" || word == "None") {
      Node& node = make(NodeKind::kConst, at);
      node.constant = yes || no ? of(yes) : none();
      return &node;
    }
    Node& node = make(NodeKind::kName, at);
    node.text = word;
    if (macro_ != nullptr) {
      macro_->uses_caller |= word == "caller";
      macro_->uses_varargs |= word == "varargs";
      macro_->uses_kwargs |= word == "kwargs";
    }
    return &node;
  }
  if (token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) {
    Node& node = make(NodeKind::kConst, at);
    node.constant = token.kind == TokenKind::kInteger ? of(token.integer) : of(token.number);
    take();
    return &node;
  }
  fail(fmt::format("unexpected {}", described()));
}

const Node* Parser::string_constant() {
  Node& node = make(NodeKind::kConst, current().at);
  std::string text;
  while (current().kind == TokenKind::kString) text += take().text;
  node.constant = text_of(ast_.context, text, true);
  add_literal(text);
  return &node;
}

bool Parser::at_tuple_end() const {
  const TokenKind kind = current().kind;
  return kind == TokenKind::kVariableEnd || kind == TokenKind::kBlockEnd || is_op(")");
}

const Node* Parser::tuple(bool with_condition, bool parenthesised) {
  const Position at = current().at;
  std::vector<const Node*> items;
  bool is_tuple = false;
  while (true) {
    if (!items.empty()) expect_op(",");
    if (at_tuple_end()) break;
    items.push_back(expression(with_condition));
    if (!is_op(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return items[0];
  if (!is_tuple && !parenthesised) fail(fmt::format("Expected an expression, got {}", described()));
  Node& node = make(NodeKind::kTuple, at);
  node.items = std::move(items);
  return &node;
}

const Node* Parser::list() {
  Node& node = make(NodeKind::kList, take().at);
  while (!is_op("]")) {
    if (!node.items.empty()) expect_op(",");
    if (is_op("]")) break;
    node.items.push_back(expression());
  }
  take();
  return &node;
}

const Node* Parser::dict() {
  Node& node = make(NodeKind::kDict, take().at);
  while (!is_op("}")) {
    if (!node.items.empty()) expect_op(",");
    if (is_op("}")) break;
    node.items.push_back(expression());
    expect_op(":");
    node.items.push_back(expression());
  }
  take();
  return &node;
}

const Node* Parser::chain(const Node* base, bool with_filter) {
  Node* node = nullptr;
  const auto add = [&](Step step) {
    if (node == nullptr) {
      node = &make(NodeKind::kChain, base->at);
      node->items.push_back(base);
    }
    node->steps.push_back(std::move(step));
  };
  bool filtered = false;  // after a filter or test only filters, tests and calls may follow
  while (true) {
    if (!filtered && is_op(".")) {
      add(attribute());
    } else if (!filtered && is_op("[")) {
      add(subscript());
    } else if (is_op("(")) {
      Step step;
      step.kind = StepKind::kCall;
      step.at = current().at;
      step.arguments = call_arguments();
      add(std::move(step));
    } else if (with_filter && is_op("|")) {
      take();
      add(filter_step());
      filtered = true;
    } else if (with_filter && is_word("is")) {
      add(test_step());
      filtered = true;
    } else {
      return node != nullptr ? node : base;
    }
  }
}

Step Parser::attribute() {
  Step step;
  step.at = take().at;
  const Token& name = take();
  if (name.kind == TokenKind::kName) {
    step.kind = StepKind::kAttribute;
    step.name = name.text;
  } else if (name.kind == TokenKind::kInteger) {
    step.kind = StepKind::kItem;
    Node& index = make(NodeKind::kConst, name.at);
    index.constant = of(name.integer);
    step.index = &index;
  } else {
    fail_at(name.at, "expected name or number");
  }
  return step;
}

Step Parser::subscript() {
  Step step;
  step.at = take().at;
  step.kind = StepKind::kItem;
  if (is_op("]")) {  // x[] asks for the item ()
    step.index = &make(NodeKind::kTuple, take().at);
    return step;
  }
  if (!is_op(":")) step.index = expression();
  if (is_op(":")) {
    step.kind = StepKind::kSlice;
    step.bounds[0] = step.index;
    for (int i = 1; i < 3 && skip_op(":"); ++i) {
      if (!is_op(":") && !is_op("]") && !is_op(",")) step.bounds[i] = expression();
    }
  }
  if (is_op(",")) fail("several subscripts are not supported");
  expect_op("]");
  return step;
}

}  // namespace cyb::tmpl
