// Statements.
#include "text/template/interpreter.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "text/template/interpreter_guards.hpp"

namespace cyb::tmpl {

const Value* Interpreter::find(const Scope* scope, std::string_view name) const {
  for (; scope != nullptr; scope = scope->parent) {
    for (const Variable* v = scope->first; v != nullptr; v = v->next) {
      if (v->name == name) return &v->value;
    }
  }
  return nullptr;
}

void Interpreter::set(Scope* scope, std::string_view name, const Value& value) {
  for (Variable* v = scope->first; v != nullptr; v = v->next) {
    if (v->name == name) {
      v->value = value;
      return;
    }
  }
  scope->first = context_.make(Variable{name, value, scope->first});
}

void Interpreter::write(const Value& value) {
  append_text(context_, *buffer_, value);
  if (buffer_->size() > kMaxTemplateOutput) {
    context_.fail(fmt::format("more than {} bytes of output", kMaxTemplateOutput));
  }
}

Scope& Interpreter::enter(const Node* node, Scope* parent, bool orelse) {
  Scope* scope = context_.make(Scope{parent, nullptr});
  const auto found = ast_->unset.find(node);
  if (found == ast_->unset.end()) return *scope;
  for (const std::string_view name : orelse ? found->second.orelse : found->second.body) {
    set(scope, name, undefined(context_, fmt::format("'{}' is undefined", name)));
  }
  return *scope;
}

void Interpreter::run(const Ast& ast) {
  ast_ = &ast;
  execute(ast.body, enter(nullptr, &globals_));
}

Interpreter::Flow Interpreter::execute(const Body& body, Scope& scope) {
  const Deeper deeper(*this);
  for (const Node* node : body) {
    const Flow flow = execute(*node, scope);
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::execute(const Node& node, Scope& scope) {
  context_.here = node.at;
  context_.step();
  switch (node.kind) {
    case NodeKind::kData:
      buffer_->add(node.text, true);
      if (buffer_->size() > kMaxTemplateOutput)
        context_.fail(fmt::format("more than {} bytes of output", kMaxTemplateOutput));
      return Flow::kNext;
    case NodeKind::kOutput:
      for (const Node* item : node.items) {
        Value value;
        const bool folded = item->folds && fold(*item, item->steps.size(), scope, value);
        write(folded ? value : evaluate(*item, scope));
      }
      return Flow::kNext;
    case NodeKind::kIf:
      return if_statement(node, scope);
    case NodeKind::kFor:
      for_statement(node, scope);
      return Flow::kNext;
    case NodeKind::kSet:
      set_statement(node, scope);
      return Flow::kNext;
    case NodeKind::kSetBlock:
      return set_block(node, scope);
    case NodeKind::kFilterBlock:
      return filter_block(node, scope);
    case NodeKind::kWith:
      return with_statement(node, scope);
    case NodeKind::kCallBlock:
      call_block(node, scope);
      return Flow::kNext;
    case NodeKind::kMacro: {
      Value macro;
      macro.kind = Kind::kMacro;
      macro.macro = context_.make(Macro{&node, &scope});
      set(&scope, node.text, macro);
      return Flow::kNext;
    }
    case NodeKind::kScope:
      return execute(node.body, enter(&node, &scope));
    case NodeKind::kBreak:
      return Flow::kBreak;
    case NodeKind::kContinue:
      return Flow::kContinue;
    default:
      context_.fail("not a statement");
  }
}

Interpreter::Flow Interpreter::if_statement(const Node& node, Scope& scope) {
  for (const auto& [test, body] : node.branches) {
    if (test == nullptr || truth(evaluate(*test, scope))) return execute(body, scope);
  }
  return Flow::kNext;
}

void Interpreter::assign(const Target& target, const Value& value, Scope& scope) {
  if (!target.parts.empty()) {
    const auto items = iterate(context_, value);
    if (items.size() != target.parts.size()) {
      context_.fail(
          fmt::format("{} values to unpack, expected {}", items.size(), target.parts.size()));
    }
    for (std::size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i], scope);
    return;
  }
  if (target.attribute.empty()) return set(&scope, target.name, value);
  const Value* holder = find(&scope, target.name);
  if (holder == nullptr || !holder->is(Kind::kNamespace)) {
    context_.fail("cannot assign attribute on non-namespace object");
  }
  if (target.attribute.starts_with('_')) {
    context_.fail(
        "Chat templates cannot store underscore-prefixed attributes on a namespace, but got '" +
        target.attribute + "'. Please rename the attribute.");
  }
  holder->dict->set(context_, text_view(context_, target.attribute, true), value);
}

void Interpreter::set_statement(const Node& node, Scope& scope) {
  const Value value = evaluate(*node.items[0], scope);
  context_.here = node.at;
  assign(node.targets[0], value, scope);
}

// The text of the body, through the filters, into the target. A break inside of it leaves the
// target as it was.
Interpreter::Flow Interpreter::set_block(const Node& node, Scope& scope) {
  Value value;
  {
    Captured captured(*this);
    const Flow flow = execute(node.body, enter(&node, &scope));
    if (flow != Flow::kNext) return flow;
    value = captured.finish();
  }
  for (const Step& step : node.steps) value = apply(step, value, scope);
  context_.here = node.at;
  assign(node.targets[0], value, scope);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::filter_block(const Node& node, Scope& scope) {
  Value value;
  Scope& inner = enter(&node, &scope);
  {
    Captured captured(*this);
    const Flow flow = execute(node.body, inner);
    if (flow != Flow::kNext) return flow;
    value = captured.finish();
  }
  for (const Step& step : node.steps) value = apply(step, value, inner);
  write(value);
  return Flow::kNext;
}

Interpreter::Flow Interpreter::with_statement(const Node& node, Scope& scope) {
  Scope& inner = enter(&node, &scope);
  std::vector<Value> values;
  for (const Node* item : node.items) values.push_back(evaluate(*item, scope));
  for (std::size_t i = 0; i < values.size(); ++i) assign(node.targets[i], values[i], inner);
  return execute(node.body, inner);
}

void Interpreter::for_statement(const Node& node, Scope& scope) {
  const Value over = evaluate(*node.items[0], scope);
  run_loop(node, scope, over, 0);
}

/// The items for which the loop's own condition holds.
std::span<const Value> Interpreter::chosen(const Node& node, Scope& scope,
                                           std::span<const Value> items) {
  if (node.items[1] == nullptr) return items;
  Value* kept = context_.array<Value>(items.size());
  std::size_t count = 0;
  for (const Value& item : items) {
    Scope& inner = *context_.make(Scope{&scope, nullptr});
    assign(node.targets[0], item, inner);
    if (truth(evaluate(*node.items[1], inner))) kept[count++] = item;
  }
  return {kept, count};
}

void Interpreter::run_loop(const Node& node, Scope& scope, const Value& over, std::uint32_t depth) {
  const Deeper deeper(*this);
  context_.here = node.at;
  const auto all = iterate(context_, over);
  if (all.size() > kMaxTemplateLoop) {
    context_.fail(fmt::format("a loop of more than {} rounds", kMaxTemplateLoop));
  }
  Loop* loop = context_.make(Loop{&node, &scope, chosen(node, scope, all), 0, depth, nullptr});
  Value handle;
  handle.kind = Kind::kLoop;
  handle.loop = loop;
  bool completed =
      false;  // some round came to its end: a break or continue does not count, as in jinja2
  for (std::uint32_t i = 0; i < loop->items.size(); ++i) {
    context_.here = node.at;
    context_.step();
    loop->index = i;
    Scope& inner = enter(&node, &scope);
    set(&inner, "loop", handle);
    assign(node.targets[0], loop->items[i], inner);
    const Flow flow = execute(node.body, inner);
    if (flow == Flow::kNext) completed = true;
    if (flow == Flow::kBreak) break;
  }
  if (!completed) execute(node.orelse, enter(&node, &scope, true));
}

}  // namespace cyb::tmpl
