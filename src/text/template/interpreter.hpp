// Interpreter: walks the Ast. Its depth is bounded by the depth of the source times the depth of
// macro calls, with a limit on both; every step is counted.
#pragma once

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/ast.hpp"
#include "text/template/library.hpp"

namespace cyb::tmpl {

/// A variable of a scope; the newest comes first.
struct Variable {
  std::string_view name;
  Value value;
  Variable* next = nullptr;
};

struct Scope {
  Scope* parent = nullptr;
  Variable* first = nullptr;
};

struct Macro {
  const Node* node = nullptr;  // kMacro or kCallBlock
  Scope* scope = nullptr;      // where it was defined
};

struct Loop {
  const Node* node = nullptr;
  Scope* scope = nullptr;  // around the loop, for loop(...)
  std::span<const Value> items;
  std::uint32_t index = 0;  // from 0
  std::uint32_t depth = 0;
  const List* changed = nullptr;  // last arguments of loop.changed()
};

class Interpreter final : public Host {
 public:
  Interpreter(Context& context, const std::tm& now) : context_(context), now_(now) {}

  void define(std::string_view name, const Value& value) { set(&globals_, name, value); }
  /// Runs the template; the output is in out().
  void run(const Ast& ast);
  const Builder& out() const noexcept { return top_; }

  Value filter(std::string_view name, const Value& value, const Args& args) override;
  bool test(std::string_view name, const Value& value, const Args& args) override;

 private:
  enum class Flow : std::uint8_t { kNext, kBreak, kContinue };
  class Deeper;    // guards the depth of evaluation
  class Captured;  // sends output to a buffer of its own while it lives
  using Body = std::vector<const Node*>;

  // statements
  Flow execute(const Body& body, Scope& scope);
  Flow execute(const Node& node, Scope& scope);
  Flow if_statement(const Node& node, Scope& scope);
  void for_statement(const Node& node, Scope& scope);
  void run_loop(const Node& node, Scope& scope, const Value& over, std::uint32_t depth);
  std::span<const Value> chosen(const Node& node, Scope& scope, std::span<const Value> items);
  void set_statement(const Node& node, Scope& scope);
  Flow set_block(const Node& node, Scope& scope);
  Flow filter_block(const Node& node, Scope& scope);
  Flow with_statement(const Node& node, Scope& scope);
  void call_block(const Node& node, Scope& scope);
  void assign(const Target& target, const Value& value, Scope& scope);
  void write(const Value& value);

  // expressions
  Value evaluate(const Node& node, Scope& scope);
  Value name(const Node& node, Scope& scope);
  Value collection(const Node& node, Scope& scope);
  Value dict(const Node& node, Scope& scope);
  Value condition(const Node& node, Scope& scope);
  Value comparison(const Node& node, Scope& scope);
  Value arithmetic(const Node& node, Scope& scope);
  Value concatenation(const Node& node, Scope& scope);
  Value chain(const Node& node, std::size_t n_steps, Scope& scope);
  Value apply(const Step& step, const Value& value, Scope& scope);
  Value slice(const Step& step, const Value& value, Scope& scope);
  // folding.cpp
  bool fold(const Node& node, std::size_t n_steps, Scope& scope, Value& out);
  Value folded(const Node& node, Scope& scope);
  Value unfolded(const Node& node, Scope& scope);

  // calls
  struct Evaluated;
  void arguments(const Arguments& source, Scope& scope, Evaluated& out);
  Value call(const Value& callee, const Args& args);
  Value call_macro(const Macro& macro, const Args& args);
  void bind_parameters(const Macro& macro, const Args& args, Scope& scope);
  Value call_loop(Loop& loop, const Args& args);
  Value call_method(const Method& method, const Args& args);

  /// The scope of a node's body inside of `parent`.
  Scope& enter(const Node* node, Scope* parent, bool orelse = false);
  void set(Scope* scope, std::string_view name, const Value& value);
  const Value* find(const Scope* scope, std::string_view name) const;

  Context& context_;
  const std::tm& now_;
  const Ast* ast_ = nullptr;
  Scope globals_;
  Builder top_;
  Builder* buffer_ = &top_;
  unsigned depth_ = 0, macros_ = 0;
  bool folding_ = false;  // constants are worked out: what cannot be sliced is then undefined
};

// Operators (operators.cpp).
Value negate(Context& context, const Value& value);
Value arithmetic(Context& context, Op op, const Value& a, const Value& b);
Value power(Context& context, const Value& a, const Value& b);
bool compare(Context& context, Op op, const Value& a, const Value& b);

/// loop.<name>
Value loop_attribute(Context& context, const Value& loop, std::string_view name);

}  // namespace cyb::tmpl
