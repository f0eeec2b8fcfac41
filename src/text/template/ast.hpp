// The parsed template. Nodes are owned by the Ast in one list, so that nothing recurses when it
// goes. Left-nested chains (a + b + c, a.b[c]|d) are lists, so that their length needs no stack.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/template/context.hpp"
#include "text/template/value.hpp"

namespace cyb::tmpl {

struct Node;

/// Arguments of a call, filter or test.
struct Arguments {
  std::vector<const Node*> positional;
  std::vector<std::pair<std::string, const Node*>> named;
  const Node* more = nullptr;        // *expr
  const Node* more_named = nullptr;  // **expr
};

enum class StepKind : std::uint8_t { kAttribute, kItem, kSlice, kCall, kFilter, kTest, kNotTest };

/// One link of a chain: what is done to the value on its left.
struct Step {
  StepKind kind = StepKind::kAttribute;
  Position at;
  std::string name;                                     // attribute, filter, test
  const Node* index = nullptr;                          // item
  const Node* bounds[3] = {nullptr, nullptr, nullptr};  // slice
  Arguments arguments;
};

enum class NodeKind : std::uint8_t {
  // expressions
  kConst,
  kName,
  kTuple,
  kList,
  kDict,
  kCond,
  kOr,
  kAnd,
  kNot,
  kCompare,
  kArith,
  kConcat,
  kPow,
  kNeg,
  kPos,
  kChain,
  // statements
  kData,
  kOutput,
  kFor,
  kIf,
  kSet,
  kSetBlock,
  kMacro,
  kCallBlock,
  kFilterBlock,
  kWith,
  kScope,
  kBreak,
  kContinue,
};

enum class Op : std::uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kIn,
  kNotIn
};

/// What an assignment writes to: a name, an attribute of a namespace, or several of these.
struct Target {
  Position at;
  std::string name;       // empty: the parts
  std::string attribute;  // of the namespace `name`
  std::vector<Target> parts;
};

struct Parameter {
  std::string name;
  const Node* fallback = nullptr;
};

struct Node {
  NodeKind kind = NodeKind::kConst;
  Position at;
  Value constant;                     // kConst
  std::string text;                   // kName, kData, kMacro
  std::vector<const Node*> items;     // operands; kDict: key, value, ...; kCond: test, yes, no?
  std::vector<Op> ops;                // kCompare, kArith: between the items
  std::vector<Step> steps;            // kChain (of items[0]), kSetBlock and kFilterBlock: filters
  std::vector<Target> targets;        // kFor, kSet, kSetBlock, kWith
  std::vector<Parameter> parameters;  // kMacro, kCallBlock
  std::vector<const Node*> body, orelse;
  std::vector<std::pair<const Node*, std::vector<const Node*>>>
      branches;            // kIf: test (null: else), body
  bool recursive = false;  // kFor
  bool folds = false;      // an expression with a slice that jinja2 may work out beforehand
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;  // kMacro, kCallBlock
};

/// Names that are not yet defined when a node's body begins, although an outer variable may have
/// the name: jinja2 decides where a name lives before it runs anything (scopes.hpp).
struct Unset {
  std::vector<std::string_view> body, orelse;
};

struct Ast {
  Context context;  // owns the constants
  std::deque<Node> nodes;
  std::vector<const Node*> body;
  std::vector<std::string> literals;
  std::unordered_map<const Node*, Unset> unset;  // null: of the whole template
};

}  // namespace cyb::tmpl
