// Expressions.
#include <fmt/format.h>

#include "base/limits.hpp"
#include "text/template/interpreter.hpp"
#include "text/template/interpreter_guards.hpp"

namespace cyb::tmpl {

Value Interpreter::evaluate(const Node& node, Scope& scope) {
  return node.folds && !folding_ ? folded(node, scope) : unfolded(node, scope);
}

Value Interpreter::unfolded(const Node& node, Scope& scope) {
  const Deeper deeper(*this);
  context_.here = node.at;
  context_.step();
  switch (node.kind) {
    case NodeKind::kConst:
      return node.constant;
    case NodeKind::kName:
      return name(node, scope);
    case NodeKind::kTuple:
    case NodeKind::kList:
      return collection(node, scope);
    case NodeKind::kDict:
      return dict(node, scope);
    case NodeKind::kCond:
      return condition(node, scope);
    case NodeKind::kOr:
    case NodeKind::kAnd: {
      const bool stop = node.kind == NodeKind::kOr;
      Value value;
      for (const Node* item : node.items) {
        value = evaluate(*item, scope);
        if (truth(value) == stop) break;
      }
      return value;
    }
    case NodeKind::kNot:
      return of(!truth(evaluate(*node.items[0], scope)));
    case NodeKind::kCompare:
      return comparison(node, scope);
    case NodeKind::kArith:
    case NodeKind::kPow:
      return arithmetic(node, scope);
    case NodeKind::kConcat:
      return concatenation(node, scope);
    case NodeKind::kNeg:
    case NodeKind::kPos: {
      const Value value = evaluate(*node.items[0], scope);
      context_.here = node.at;
      const Value negative = negate(context_, value);
      return node.kind == NodeKind::kNeg ? negative : negate(context_, negative);
    }
    case NodeKind::kChain:
      return chain(node, node.steps.size(), scope);
    default:
      context_.fail("not an expression");
  }
}

Value Interpreter::name(const Node& node, Scope& scope) {
  if (const Value* found = find(&scope, node.text)) return *found;
  return undefined(context_, "'" + node.text + "' is undefined");
}

Value Interpreter::collection(const Node& node, Scope& scope) {
  Value* items = context_.array<Value>(node.items.size());
  for (std::size_t i = 0; i < node.items.size(); ++i) items[i] = evaluate(*node.items[i], scope);
  Value out;
  out.kind = node.kind == NodeKind::kList ? Kind::kList : Kind::kTuple;
  out.list = context_.make(List{items, static_cast<std::uint32_t>(node.items.size()), nullptr});
  return out;
}

Value Interpreter::dict(const Node& node, Scope& scope) {
  Dict* out = context_.make(Dict{});
  for (std::size_t i = 0; i < node.items.size(); i += 2) {
    const Value key = evaluate(*node.items[i], scope);
    const Value value = evaluate(*node.items[i + 1], scope);
    context_.here = node.at;
    out->set(context_, key, value);
  }
  return of(out);
}

Value Interpreter::condition(const Node& node, Scope& scope) {
  if (truth(evaluate(*node.items[0], scope))) return evaluate(*node.items[1], scope);
  if (node.items.size() > 2) return evaluate(*node.items[2], scope);
  context_.here = node.at;
  return undefined(context_,
                   "the inline if-expression evaluated to false and no else section was defined.");
}

Value Interpreter::comparison(const Node& node, Scope& scope) {
  Value left = evaluate(*node.items[0], scope);
  for (std::size_t i = 0; i < node.ops.size(); ++i) {
    const Value right = evaluate(*node.items[i + 1], scope);
    context_.here = node.at;
    if (!compare(context_, node.ops[i], left, right)) return of(false);
    left = right;
  }
  return of(true);
}

Value Interpreter::arithmetic(const Node& node, Scope& scope) {
  Value left = evaluate(*node.items[0], scope);
  for (std::size_t i = 1; i < node.items.size(); ++i) {
    const Value right = evaluate(*node.items[i], scope);
    context_.here = node.at;
    left = node.kind == NodeKind::kPow ? power(context_, left, right)
                                       : tmpl::arithmetic(context_, node.ops[i - 1], left, right);
  }
  return left;
}

Value Interpreter::concatenation(const Node& node, Scope& scope) {
  Builder out;
  for (const Node* item : node.items) append_text(context_, out, evaluate(*item, scope));
  context_.here = node.at;
  return out.finish(context_);
}

/// The first `n_steps` of a chain.
Value Interpreter::chain(const Node& node, std::size_t n_steps, Scope& scope) {
  Value value = evaluate(*node.items[0], scope);
  for (std::size_t i = 0; i < n_steps; ++i) {
    context_.step();
    value = apply(node.steps[i], value, scope);
  }
  return value;
}

Value Interpreter::slice(const Step& step, const Value& value, Scope& scope) {
  Value bounds[3];
  for (int i = 0; i < 3; ++i)
    bounds[i] = step.bounds[i] == nullptr ? none() : evaluate(*step.bounds[i], scope);
  context_.here = step.at;
  const bool has_items = value.is(Kind::kString) || value.is(Kind::kList) || value.is(Kind::kTuple);
  if (folding_ && !has_items) return undefined(context_, "a constant has no items");
  return get_slice(context_, value, bounds[0], bounds[1], bounds[2]);
}

struct Interpreter::Evaluated {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
  Args args() const { return {positional, named}; }
};

void Interpreter::arguments(const Arguments& source, Scope& scope, Evaluated& out) {
  for (const Node* node : source.positional) out.positional.push_back(evaluate(*node, scope));
  for (const auto& [key, node] : source.named) out.named.emplace_back(key, evaluate(*node, scope));
  if (source.more != nullptr) {
    const auto items = iterate(context_, evaluate(*source.more, scope));
    out.positional.insert(out.positional.end(), items.begin(), items.end());
  }
  if (source.more_named == nullptr) return;
  const Value more = evaluate(*source.more_named, scope);
  if (!more.is(Kind::kDict)) context_.fail("argument after ** must be a mapping");
  for (const Entry& entry : more.dict->span()) {
    if (!entry.key.is(Kind::kString)) context_.fail("keywords must be strings");
    out.named.emplace_back(entry.key.text->view(), entry.value);
  }
}

Value Interpreter::apply(const Step& step, const Value& value, Scope& scope) {
  context_.here = step.at;
  if (step.kind == StepKind::kAttribute) return get_attribute(context_, value, step.name);
  if (step.kind == StepKind::kSlice) return slice(step, value, scope);
  if (step.kind == StepKind::kItem) {
    const Value key = evaluate(*step.index, scope);
    context_.here = step.at;
    return get_item(context_, value, key);
  }
  Evaluated evaluated;
  arguments(step.arguments, scope, evaluated);
  context_.here = step.at;
  switch (step.kind) {
    case StepKind::kCall:
      return call(value, evaluated.args());
    case StepKind::kFilter:
      return filter(step.name, value, evaluated.args());
    case StepKind::kTest:
      return of(test(step.name, value, evaluated.args()));
    default:
      return of(!test(step.name, value, evaluated.args()));
  }
}

Value Interpreter::filter(std::string_view name, const Value& value, const Args& args) {
  if (filter_support(name) != Support::kYes)
    context_.fail(fmt::format("No filter named '{}'.", name));
  return call_filter(context_, *this, name, value, args);
}

bool Interpreter::test(std::string_view name, const Value& value, const Args& args) {
  if (test_support(name) != Support::kYes) context_.fail(fmt::format("No test named '{}'.", name));
  return call_test(context_, name, value, args);
}

Value Interpreter::call(const Value& callee, const Args& args) {
  switch (callee.kind) {
    case Kind::kMacro:
      return call_macro(*callee.macro, args);
    case Kind::kFunction:
      return call_function(context_, callee.function, args, now_);
    case Kind::kMethod:
      return call_method(*callee.method, args);
    case Kind::kLoop:
      return call_loop(*callee.loop, args);
    case Kind::kJoiner:
      return call_cycler(context_, *callee.cycler);
    case Kind::kUndefined:
      context_.fail(std::string(callee.text->view()));
    default:
      context_.fail(fmt::format("'{}' object is not callable", type_name(callee)));
  }
}

Value Interpreter::call_loop(Loop& loop, const Args& args) {
  if (!loop.node->recursive)
    context_.fail("The loop must have the 'recursive' marker to be called recursively.");
  const auto given = bind(context_, "loop", args, {"iterable"}, 1);
  Captured captured(*this);
  run_loop(*loop.node, *loop.scope, *given[0], loop.depth + 1);
  return captured.finish();
}

Value Interpreter::call_method(const Method& method, const Args& args) {
  if (!method.self.is(Kind::kLoop)) return tmpl::call_method(context_, method, args);
  Loop& loop = *method.self.loop;
  if (!args.named.empty()) context_.fail("keyword arguments of a loop's method are not supported");
  if (method.name == "cycle") {
    if (args.positional.empty()) context_.fail("no items for cycling given");
    return args.positional[loop.index % args.positional.size()];
  }
  // changed(...): whether the arguments differ from those of the last call.
  const Value now = list_of(context_, args.positional, Kind::kTuple);
  Value before = now;
  before.list = loop.changed;
  const bool changed = loop.changed == nullptr || !equal(context_, before, now);
  loop.changed = now.list;
  return of(changed);
}

void Interpreter::bind_parameters(const Macro& macro, const Args& args, Scope& scope) {
  const auto& parameters = macro.node->parameters;
  const std::string& macro_name = macro.node->text;
  Dict* more_named = context_.make(Dict{});
  std::vector<bool> given(parameters.size(), false);
  for (std::size_t i = 0; i < parameters.size() && i < args.positional.size(); ++i) {
    set(&scope, parameters[i].name, args.positional[i]);
    given[i] = true;
  }
  Value caller = undefined(context_, "No caller defined");
  for (const auto& [key, value] : args.named) {
    std::size_t i = 0;
    while (i < parameters.size() && parameters[i].name != key) ++i;
    if (i < parameters.size()) {
      if (given[i])
        context_.fail(
            fmt::format("macro '{}' got multiple values for argument '{}'", macro_name, key));
      set(&scope, parameters[i].name, value);
      given[i] = true;
    } else if (key == "caller" && macro.node->uses_caller) {
      caller = value;
    } else if (macro.node->uses_kwargs) {
      more_named->set(context_, text_view(context_, key, false), value);
    } else if (key == "caller") {
      context_.fail(fmt::format(
          "macro '{}' was invoked with two values for the special caller argument. This "
          "is most likely a bug.",
          macro_name));
    } else {
      context_.fail(fmt::format("macro '{}' takes no keyword argument '{}'", macro_name, key));
    }
  }
  const bool too_many = args.positional.size() > parameters.size();
  if (too_many && !macro.node->uses_varargs) {
    context_.fail(fmt::format("macro '{}' takes not more than {} argument(s)", macro_name,
                              parameters.size()));
  }
  if (macro.node->uses_caller) set(&scope, "caller", caller);
  if (macro.node->uses_kwargs) set(&scope, "kwargs", of(more_named));
  if (macro.node->uses_varargs) {
    const auto rest =
        too_many ? args.positional.subspan(parameters.size()) : std::span<const Value>();
    set(&scope, "varargs", list_of(context_, rest, Kind::kTuple));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (given[i]) continue;
    const Node* fallback = parameters[i].fallback;
    set(&scope, parameters[i].name,
        fallback != nullptr
            ? evaluate(*fallback, scope)
            : undefined(context_, "parameter '" + parameters[i].name + "' was not provided"));
  }
}

Value Interpreter::call_macro(const Macro& macro, const Args& args) {
  const Deeper deeper(*this);
  if (macros_ >= kMaxTemplateDepth)
    context_.fail(fmt::format("macros call each other more than {} deep", kMaxTemplateDepth));
  ++macros_;
  const Position here = context_.here;
  Captured captured(*this);
  Scope& scope = enter(macro.node, macro.scope);
  bind_parameters(macro, args, scope);
  execute(macro.node->body, scope);
  context_.here = here;
  --macros_;
  return captured.finish();
}

void Interpreter::call_block(const Node& node, Scope& scope) {
  Value caller;
  caller.kind = Kind::kMacro;
  caller.macro = context_.make(Macro{&node, &scope});
  // The last step of the chain is the call; `caller` is one more named argument of it.
  const Node& chain_node = *node.items[0];
  Value callee = evaluate(*chain_node.items[0], scope);
  for (std::size_t i = 0; i + 1 < chain_node.steps.size(); ++i)
    callee = apply(chain_node.steps[i], callee, scope);
  Evaluated evaluated;
  arguments(chain_node.steps.back().arguments, scope, evaluated);
  evaluated.named.emplace_back("caller", caller);
  context_.here = node.at;
  write(call(callee, evaluated.args()));
}

}  // namespace cyb::tmpl
