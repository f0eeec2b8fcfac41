// Regions: the bodies of If and Loop while they are built.
#include <algorithm>
#include <set>

#include "import/onnx/builder.hpp"
#include "ops/control/control.hpp"

namespace cyb::onnx {

std::uint32_t Builder::begin_region(std::span<const TensorSpec> inputs) {
  const auto region = static_cast<std::uint32_t>(regions_.size());
  Region made;
  made.parent = region_;
  for (const TensorSpec& spec : inputs) {
    Value value;
    value.spec = spec;
    value.spec.value.reset();
    value.origin = Origin::kInput;
    value.region = region;
    made.inputs.push_back(add(std::move(value)));
  }
  regions_.push_back(std::move(made));
  region_ = region;
  return region;
}

Val Builder::copied(Val value, Op identity) {
  return add_node({std::move(identity), {value}, {}, region_}, {values_[value].spec})[0];
}

Result<void> Builder::end_region(std::span<const Val> outputs) {
  std::set<Val> seen;
  std::vector<Val> values;
  for (Val value : outputs) {
    // A body gives out what its nodes make: the rest is copied.
    const bool own = values_[value].origin == Origin::kNode && values_[value].region == region_;
    if (!own || seen.contains(value)) {
      CYB_ASSIGN(Op op, make_op(OpTag::kIdentity));
      value = copied(value, std::move(op));
    }
    seen.insert(value);
    values.push_back(value);
  }
  regions_[region_].outputs = std::move(values);
  region_ = regions_[region_].parent;
  return {};
}

Result<std::vector<Val>> Builder::emit_control(OpTag tag, std::vector<Val> inputs,
                                               std::vector<std::uint32_t> bodies,
                                               std::vector<TensorSpec> outputs) {
  Op op{tag, {}};
  for (std::size_t k = 0; k < bodies.size(); ++k)
    op.attrs.values.emplace_back(std::vector<std::byte>{});
  if (tag == OpTag::kLoop)
    op.attrs.values.emplace_back(static_cast<std::int64_t>(inputs.size() - 2));
  op.attrs.values.emplace_back(declared_outputs(outputs));
  std::vector<TensorSpec> specs;
  for (const Val input : inputs) specs.push_back(values_[input].spec);
  CYB_TRY(infer(op, specs));
  for (TensorSpec& spec : outputs) spec.value.reset();
  return add_node({std::move(op), std::move(inputs), {}, region_, std::move(bodies)},
                  std::move(outputs));
}

std::vector<std::vector<Val>> Builder::captures(const std::vector<bool>& live) const {
  std::vector<std::vector<Val>> reads(regions_.size());
  std::set<std::pair<std::uint32_t, Val>> seen;
  const auto use = [&](Val value, std::uint32_t region) {
    const Value& v = values_[value];
    if (value == 0 || v.origin == Origin::kConstant) return;
    for (; region != v.region && region != 0; region = regions_[region].parent) {
      if (seen.emplace(region, value).second) reads[region].push_back(value);
    }
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!live[i]) continue;
    for (const Val input : nodes_[i].inputs) use(input, nodes_[i].region);
  }
  return reads;
}

}  // namespace cyb::onnx
