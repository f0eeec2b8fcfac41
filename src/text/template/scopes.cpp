// The analysis, one frame (body) at a time. Branches of an if are read from the same state and then
// united; a trail of changes stands for the copies that jinja2 makes, so that the time stays in
// proportion to the template.
#include "text/template/scopes.hpp"

#include <cstdint>
#include <unordered_map>

namespace cyb::tmpl {
namespace {

constexpr std::uint8_t kKnown = 1;   // read or assigned in this frame
constexpr std::uint8_t kStored = 2;  // assigned
constexpr std::uint8_t kUnset = 4;   // assigned before it was read, and unknown outside

using Body = std::vector<const Node*>;

class Frame {
 public:
  Frame(Ast& ast, const Frame* parent) : ast_(ast), parent_(parent) {}

  void parameter(std::string_view name) {
    change(name, static_cast<std::uint8_t>((flags(name) | kKnown | kStored) & ~kUnset));
  }

  void load(std::string_view name) {
    if (!known(name)) change(name, flags(name) | kKnown);
  }

  void store(std::string_view name) {
    const std::uint8_t before = flags(name);
    const bool unset = (before & kKnown) == 0 && (parent_ == nullptr || !parent_->known(name));
    change(name, static_cast<std::uint8_t>(before | kKnown | kStored | (unset ? kUnset : 0)));
  }

  void statements(const Body& body) {
    for (const Node* node : body) statement(*node);
  }

  /// Names for the node whose frame this is, then the frames inside of it.
  void finish(std::vector<std::string_view>& out) {
    for (const auto& [name, bits] : names_) {
      if ((bits & kUnset) != 0) out.push_back(name);
    }
    for (const Node* node : inner_) enter(*node);
  }

  /// Expressions only read names, in any order: a list of open nodes needs no stack, however deep
  /// the conditional chain.
  void expression(const Node& first) {
    std::vector<const Node*> open = {&first};
    while (!open.empty()) {
      const Node& node = *open.back();
      open.pop_back();
      if (node.kind == NodeKind::kName) load(node.text);
      for (const Node* item : node.items) {
        if (item != nullptr) open.push_back(item);
      }
      operands(node.steps, open);
    }
  }

  void parameters(const Node& node) {
    for (const Parameter& p : node.parameters) parameter(p.name);
    for (const Parameter& p : node.parameters) {
      if (p.fallback != nullptr) expression(*p.fallback);
    }
  }

  void steps(const std::vector<Step>& all) {
    std::vector<const Node*> open;
    operands(all, open);
    for (const Node* node : open) expression(*node);
  }

  void target(const Target& written, bool is_parameter) {
    for (const Target& part : written.parts) target(part, is_parameter);
    if (!written.parts.empty()) return;
    if (!written.attribute.empty()) {
      load(written.name);
    } else if (is_parameter) {
      parameter(written.name);
    } else {
      store(written.name);
    }
  }

 private:
  static void operands(const std::vector<Step>& all, std::vector<const Node*>& out) {
    const auto add = [&](const Node* node) {
      if (node != nullptr) out.push_back(node);
    };
    for (const Step& step : all) {
      add(step.index);
      for (const Node* bound : step.bounds) add(bound);
      for (const Node* argument : step.arguments.positional) add(argument);
      for (const auto& [name, argument] : step.arguments.named) add(argument);
      add(step.arguments.more);
      add(step.arguments.more_named);
    }
  }

  struct Change {
    std::string_view name;
    std::uint8_t before = 0, after = 0;
  };

  std::uint8_t flags(std::string_view name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? 0 : found->second;
  }

  bool known(std::string_view name) const {
    return (flags(name) & kKnown) != 0 || (parent_ != nullptr && parent_->known(name));
  }

  void change(std::string_view name, std::uint8_t after) {
    std::uint8_t& bits = names_[name];
    if (bits == after) return;
    trail_.push_back({name, bits, after});
    bits = after;
  }

  /// Reads one branch of an if and takes its changes back; they are appended to `out`.
  void branch(const Node* test, const Body& body, std::vector<Change>& out) {
    const std::size_t mark = trail_.size();
    if (test != nullptr) expression(*test);
    statements(body);
    out.insert(out.end(), trail_.begin() + static_cast<std::ptrdiff_t>(mark), trail_.end());
    while (trail_.size() > mark) {
      names_[trail_.back().name] = trail_.back().before;
      trail_.pop_back();
    }
  }

  void if_statement(const Node& node) {
    expression(*node.branches[0].first);
    std::vector<Change> changes;
    for (std::size_t i = 0; i < node.branches.size(); ++i) {
      branch(i == 0 ? nullptr : node.branches[i].first, node.branches[i].second, changes);
    }
    for (const Change& one : changes) {
      const std::uint8_t before = flags(one.name);
      const bool stored_here = (before & kStored) == 0 && (one.after & kStored) != 0;
      std::uint8_t after = before | one.after;
      if (stored_here || (before & kUnset) == 0) after = static_cast<std::uint8_t>(after & ~kUnset);
      change(one.name, after);
    }
  }

  void statement(const Node& node) {
    switch (node.kind) {
      case NodeKind::kOutput:
        return expression(node);
      case NodeKind::kIf:
        return if_statement(node);
      case NodeKind::kSet:
        expression(*node.items[0]);
        return target(node.targets[0], false);
      case NodeKind::kSetBlock:
        target(node.targets[0], false);
        break;
      case NodeKind::kMacro:
        store(node.text);
        break;
      case NodeKind::kFor:
      case NodeKind::kCallBlock:
        expression(*node.items[0]);
        break;
      case NodeKind::kFilterBlock:
        steps(node.steps);
        break;
      case NodeKind::kWith:
        for (const Node* item : node.items) expression(*item);
        break;
      case NodeKind::kScope:
        break;
      default:
        return;
    }
    inner_.push_back(&node);
  }

  void enter(const Node& node) {
    Unset names;
    Frame body(ast_, this);
    if (node.kind == NodeKind::kFor) body.parameter("loop");
    const bool declares = node.kind == NodeKind::kFor || node.kind == NodeKind::kWith;
    if (declares) {
      for (const Target& written : node.targets) body.target(written, true);
    }
    body.parameters(node);
    body.statements(node.body);
    body.finish(names.body);
    if (!node.orelse.empty()) {
      Frame orelse(ast_, this);
      orelse.statements(node.orelse);
      orelse.finish(names.orelse);
    }
    if (!names.body.empty() || !names.orelse.empty()) ast_.unset.emplace(&node, std::move(names));
  }

  Ast& ast_;
  const Frame* parent_;
  std::unordered_map<std::string_view, std::uint8_t> names_;
  std::vector<Change> trail_;
  std::vector<const Node*> inner_;
};

}  // namespace

void find_scopes(Ast& ast) {
  Frame root(ast, nullptr);
  root.statements(ast.body);
  Unset names;
  root.finish(names.body);
  if (!names.body.empty()) ast.unset.emplace(nullptr, std::move(names));
}

}  // namespace cyb::tmpl
