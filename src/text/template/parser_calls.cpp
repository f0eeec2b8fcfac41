// Filters, tests and the arguments of calls.
#include "text/template/library.hpp"
#include "text/template/parser_common.hpp"

namespace cyb::tmpl {

Step Parser::filter_step() {
  Step step;
  step.kind = StepKind::kFilter;
  step.at = current().at;
  step.name = expect_name();
  while (skip_op(".")) step.name += "." + expect_name();
  const Support support = filter_support(step.name);
  if (support == Support::kRefused)
    fail_at(step.at, fmt::format("the filter '{}' is not supported", step.name));
  if (support == Support::kUnknown && !lenient_)
    unknown_.push_back({step.at, fmt::format("No filter named '{}'.", step.name)});
  if (is_op("(")) step.arguments = call_arguments();
  return step;
}

bool Parser::begins_test_argument() const {
  const Token& token = current();
  const bool begins = token.kind == TokenKind::kName || token.kind == TokenKind::kString ||
                      token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat ||
                      is_op("[") || is_op("{");
  return begins && !is_word_of({"else", "or", "and"});
}

Step Parser::test_step() {
  Step step;
  take();
  step.kind = skip_word("not") ? StepKind::kNotTest : StepKind::kTest;
  step.at = current().at;
  step.name = expect_name();
  while (skip_op(".")) step.name += "." + expect_name();
  const Support support = test_support(step.name);
  if (support == Support::kRefused)
    fail_at(step.at, fmt::format("the test '{}' is not supported", step.name));
  if (support == Support::kUnknown && !lenient_)
    unknown_.push_back({step.at, fmt::format("No test named '{}'.", step.name)});
  if (is_op("(")) {
    step.arguments = call_arguments();
  } else if (begins_test_argument()) {
    if (is_word("is")) fail("You cannot chain multiple tests with is");
    const Nest nest(*this);
    step.arguments.positional.push_back(chain(primary(), false));
  }
  return step;
}

Arguments Parser::call_arguments() {
  Arguments out;
  expect_op("(");
  bool first = true;
  while (!is_op(")")) {
    if (!first) expect_op(",");
    if (is_op(")")) break;
    first = false;
    one_argument(out);
  }
  take();
  return out;
}

void Parser::one_argument(Arguments& out) {
  const auto ensure = [&](bool good) {
    if (!good) fail("invalid syntax for function call expression");
  };
  if (is_op("*")) {
    ensure(out.more == nullptr && out.more_named == nullptr);
    take();
    out.more = expression();
  } else if (is_op("**")) {
    ensure(out.more_named == nullptr);
    take();
    out.more_named = expression();
  } else if (current().kind == TokenKind::kName && following().kind == TokenKind::kOperator &&
             following().text == "=") {
    ensure(out.more_named == nullptr);
    std::string name = take().text;
    take();
    for (const auto& [other, value] : out.named) {
      if (other == name) fail(fmt::format("keyword argument repeated: {}", name));
    }
    out.named.emplace_back(std::move(name), expression());
  } else {
    ensure(out.more == nullptr && out.more_named == nullptr && out.named.empty());
    out.positional.push_back(expression());
  }
}

}  // namespace cyb::tmpl
