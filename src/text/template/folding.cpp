// jinja2 replaces an expression by its value where that is constant and has a text that Python
// reads back; an output also where it has none. Depth is bounded by the parser.
#include "text/template/folding.hpp"

#include <algorithm>
#include <array>

#include "text/template/interpreter.hpp"

namespace cyb::tmpl {
namespace {

bool is_constant(const Node& node, std::size_t n_steps);

bool is_constant(const Node* node) {
  return node == nullptr || is_constant(*node, node->steps.size());
}

/// Filters that jinja2 gives its context are never worked out beforehand.
bool takes_context(std::string_view filter) {
  constexpr std::array<std::string_view, 5> kNames{"map", "reject", "rejectattr", "select",
                                                   "selectattr"};
  return std::ranges::find(kNames, filter) != kNames.end();
}

bool is_constant(const Arguments& arguments) {
  const auto constant = [](const Node* node) { return is_constant(node); };
  return std::ranges::all_of(arguments.positional, constant) &&
         std::ranges::all_of(arguments.named,
                             [](const auto& named) { return is_constant(named.second); }) &&
         is_constant(arguments.more) && is_constant(arguments.more_named);
}

bool is_constant(const Step& step) {
  switch (step.kind) {
    case StepKind::kAttribute:
      return true;
    case StepKind::kItem:
      return is_constant(step.index);
    case StepKind::kSlice:
      return std::ranges::all_of(step.bounds, [](const Node* bound) { return is_constant(bound); });
    case StepKind::kCall:
      return false;
    case StepKind::kFilter:
      return !takes_context(step.name) && filter_support(step.name) == Support::kYes &&
             is_constant(step.arguments);
    default:
      return test_support(step.name) == Support::kYes && is_constant(step.arguments);
  }
}

/// Of a chain: its first `n_steps`.
bool is_constant(const Node& node, std::size_t n_steps) {
  if (node.kind == NodeKind::kName || node.kind > NodeKind::kChain) return false;
  const auto constant = [](const Node* item) { return is_constant(item); };
  return std::all_of(node.steps.begin(), node.steps.begin() + static_cast<std::ptrdiff_t>(n_steps),
                     [](const Step& step) { return is_constant(step); }) &&
         std::ranges::all_of(node.items, constant);
}

bool has_slice(const Node* node);

bool has_slice(const Arguments& arguments) {
  return std::ranges::any_of(arguments.positional, [](const Node* n) { return has_slice(n); }) ||
         std::ranges::any_of(arguments.named,
                             [](const auto& named) { return has_slice(named.second); }) ||
         has_slice(arguments.more) || has_slice(arguments.more_named);
}

bool has_slice(const Node* node) {
  if (node == nullptr || node->kind > NodeKind::kChain) return false;
  return std::ranges::any_of(node->items, [](const Node* item) { return has_slice(item); }) ||
         std::ranges::any_of(node->steps, [](const Step& step) {
           return step.kind == StepKind::kSlice || has_slice(step.index) ||
                  has_slice(step.arguments);
         });
}

/// What Python writes and reads back as itself.
bool has_safe_text(const Value& value, unsigned depth = 0) {
  if (depth > 100) return false;
  const auto safe = [depth](const Value& item) { return has_safe_text(item, depth + 1); };
  switch (value.kind) {
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
    case Kind::kString:
    case Kind::kRange:
      return true;
    case Kind::kList:
    case Kind::kTuple:
      return std::ranges::all_of(value.list->span(), safe);
    case Kind::kDict:
      return std::ranges::all_of(value.dict->span(), [&](const Entry& entry) {
        return safe(entry.key) && safe(entry.value);
      });
    default:
      return false;
  }
}

}  // namespace

void mark_folding(Ast& ast) {
  for (Node& node : ast.nodes) {
    const bool chain = node.kind == NodeKind::kChain;
    const bool starts_constant = chain ? is_constant(node, 0) : is_constant(&node);
    node.folds = starts_constant && has_slice(&node);
  }
}

/// Works out a constant node, or the first steps of a chain; false: it is not constant, or fails.
bool Interpreter::fold(const Node& node, std::size_t n_steps, Scope& scope, Value& out) {
  if (!is_constant(node, n_steps)) return false;
  const Position here = context_.here;
  folding_ = true;
  bool done = true;
  try {
    out = node.kind == NodeKind::kChain ? chain(node, n_steps, scope) : unfolded(node, scope);
  } catch (const Failure&) {
    done = false;
    context_.here = here;
  }
  folding_ = false;
  return done;
}

Value Interpreter::folded(const Node& node, Scope& scope) {
  Value value;
  if (node.kind != NodeKind::kChain) {
    const bool done = fold(node, 0, scope, value) && has_safe_text(value);
    return done ? value : unfolded(node, scope);
  }
  for (std::size_t n = node.steps.size(); n > 0; --n) {
    if (!fold(node, n, scope, value) || !has_safe_text(value)) continue;
    for (std::size_t i = n; i < node.steps.size(); ++i) {
      context_.step();
      value = apply(node.steps[i], value, scope);
    }
    return value;
  }
  return unfolded(node, scope);
}

}  // namespace cyb::tmpl
