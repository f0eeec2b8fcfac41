// Running If and Loop: the branch that the condition names; rounds until the count or the condition
// ends them, with the carried values copied out of the body before it runs again.
#include "paths/graph/control.hpp"

#include <fmt/format.h>

#include <cstring>

#include "ops/control/control.hpp"
#include "ops/typed.hpp"
#include "paths/graph/tensor_forward.hpp"

namespace cyb {
namespace {

std::uint64_t size_of(const TensorView& view) {
  return tensor_bytes(view.dtype, view.shape).value_or(0);
}

/// `to` becomes a copy of `from`; its memory is used again where it has the size.
Result<void> copy_into(const TensorView& from, HostTensor& to) {
  const std::uint64_t size = size_of(from);
  if (to.bytes.data() == nullptr || size_of(to.view()) != size) {
    CYB_ASSIGN(to, HostTensor::allocate(from.dtype, from.shape));
  }
  to.dtype = from.dtype;
  to.shape = from.shape;
  if (size != 0) std::memcpy(to.bytes.data(), from.data, size);
  return {};
}

}  // namespace

bool runs_between_plans(OpTag tag) noexcept {
  return is_control(tag) || op_info(tag).state != nullptr;
}

struct ControlFlow::Stack {
  DType dtype = DType::kF32;
  Shape row;
  std::vector<std::byte> bytes;
  std::int64_t rows = 0;

  Result<void> add(const TensorView& view) {
    if (rows == 0) {
      dtype = view.dtype;
      row = view.shape;
    } else if (!(row == view.shape)) {
      return fail(
          shape_mismatch("Op::Loop: an output that is stacked", row.text(), view.shape.text()));
    }
    const std::uint64_t size = size_of(view);
    const std::size_t at = bytes.size();
    try {
      bytes.resize(at + size);
    } catch (const std::exception&) {
      return fail(out_of_memory("graph", at + size, 0));
    }
    if (size != 0) std::memcpy(bytes.data() + at, view.data, size);
    ++rows;
    return {};
  }
};

ControlFlow::ControlFlow(const Op& op) : op_(op) {}
ControlFlow::~ControlFlow() = default;

Result<std::unique_ptr<ControlFlow>> ControlFlow::make(const Op& op, WeightTable& weights,
                                                       const TensorOptions& options) {
  std::unique_ptr<ControlFlow> out(new ControlFlow(op));
  // The validator has held the declaration against the bodies, and bounds how deep they lie.
  for (const std::size_t attr : body_attrs(op.tag)) {
    CYB_ASSIGN(const Graph body, decode_graph(op.attrs.bytes(attr)));
    CYB_ASSIGN(std::unique_ptr<TensorForward> forward, TensorForward::make(body, weights, options));
    out->bodies_.push_back(std::move(forward));
  }
  if (op.tag == OpTag::kLoop) {
    const std::size_t carried = op.attrs.u32(1);
    CYB_ASSIGN(out->declared_, declared_specs(op.attrs));
    out->carried_.resize(carried);
    out->next_.resize(carried);
    out->scanned_.resize(out->declared_.size() - carried);
  }
  return out;
}

Result<void> ControlFlow::run(std::span<const TensorView> inputs, const std::stop_token& stop) {
  outputs_.clear();
  n_fallback_steps_ = 0;
  if (op_.tag == OpTag::kIf) return run_branch(inputs, stop);
  return op_.tag == OpTag::kLoop ? run_loop(inputs, stop) : run_state(inputs);
}

void ControlFlow::commit() noexcept {
  if (!next_state_.empty()) std::swap(state_, next_state_);
  next_state_.clear();
}

Result<void> ControlFlow::run_state(std::span<const TensorView> inputs) {
  next_state_.clear();
  CYB_ASSIGN(const std::vector<TensorSpec> specs, run_specs(op_, inputs));
  std::vector<TensorSpec> given;
  for (const TensorView& input : inputs) given.push_back(spec_with_value(input));
  CYB_ASSIGN(const std::vector<TensorSpec> kept, state_specs(op_, given));
  std::vector<MutableTensorView> state, outputs;
  for (std::size_t k = 0; k < kept.size(); ++k) {
    const auto shape = kept[k].bind({});
    if (!shape) return fail(internal_error("state of an unknown shape"));
    CYB_ASSIGN(HostTensor next, HostTensor::allocate(kept[k].dtype, *shape));  // zeros
    if (!state_.empty()) {
      if (!(state_[k].shape == *shape)) {
        return fail(shape_mismatch(op_info(op_.tag).name, state_[k].shape.text(), shape->text())
                        .in("the state of earlier runs"));
      }
      CYB_TRY(copy_into(state_[k].view(), next));
    }
    next_state_.push_back(std::move(next));
  }
  for (HostTensor& tensor : next_state_) state.push_back(tensor.out());
  results_.clear();
  for (const TensorSpec& spec : specs) {
    CYB_ASSIGN(HostTensor result, HostTensor::allocate(spec.dtype, *spec.bind({})));
    results_.push_back(std::move(result));
  }
  for (HostTensor& tensor : results_) outputs.push_back(tensor.out());
  CYB_TRY(op_info(op_.tag).reference(
      {.attrs = op_.attrs, .inputs = inputs, .outputs = outputs, .state = state}));
  for (const HostTensor& tensor : results_) outputs_.push_back(tensor.view());
  n_fallback_steps_ = 1;
  return {};
}

std::uint64_t ControlFlow::peak_bytes() const noexcept {
  std::uint64_t total = 0;
  for (const auto& body : bodies_) total += body->peak_bytes() + body->constant_bytes();
  return total;
}

void ControlFlow::record_into(StepLog* log) noexcept {
  for (const std::unique_ptr<TensorForward>& body : bodies_) body->record_into(log);
}

Result<void> ControlFlow::run_branch(std::span<const TensorView> inputs,
                                     const std::stop_token& stop) {
  const bool yes = ref::integer_at(inputs[0], 0) != 0;
  TensorForward& branch = *bodies_[yes ? 0 : 1];
  auto done = branch.run(inputs.subspan(1), stop);
  if (!done) return fail(std::move(done).error().in(yes ? "then" : "else"));
  n_fallback_steps_ = branch.n_fallback_steps();
  for (std::size_t k = 0; k < branch.outputs().size(); ++k) {
    CYB_ASSIGN(const TensorView output, branch.output(k));
    outputs_.push_back(output);
  }
  return {};
}

Result<bool> ControlFlow::end_round(std::size_t carried, std::vector<Stack>& stacks) {
  TensorForward& body = *bodies_[0];
  n_fallback_steps_ += body.n_fallback_steps();
  // An output may be another's input: all are copied before any is replaced.
  for (std::size_t k = 0; k < carried; ++k) {
    CYB_ASSIGN(const TensorView output, body.output(1 + k));
    CYB_TRY(copy_into(output, next_[k]));
  }
  for (std::size_t k = 0; k < stacks.size(); ++k) {
    CYB_ASSIGN(const TensorView output, body.output(1 + carried + k));
    CYB_TRY(stacks[k].add(output));
  }
  CYB_ASSIGN(const TensorView condition, body.output(0));
  const bool more = ref::integer_at(condition, 0) != 0;
  std::swap(carried_, next_);
  return more;
}

Result<void> ControlFlow::run_loop(std::span<const TensorView> inputs,
                                   const std::stop_token& stop) {
  const std::size_t carried = carried_.size();
  const bool counted = inputs[0].present();
  const std::int64_t count = counted ? ref::integer_at(inputs[0], 0) : kMaxLoopRounds + 1;
  bool more = !inputs[1].present() || ref::integer_at(inputs[1], 0) != 0;
  for (std::size_t k = 0; k < carried; ++k) CYB_TRY(copy_into(inputs[2 + k], carried_[k]));
  std::vector<Stack> stacks(scanned_.size());
  std::int64_t round = 0;
  std::uint8_t yes = 1;
  std::vector<TensorView> given(inputs.begin(), inputs.end());
  for (; more && round < count; ++round) {
    if (round == kMaxLoopRounds)
      return fail(invalid_input(fmt::format("Op::Loop: more than {} rounds", kMaxLoopRounds)));
    given[0] = {DType::kI64, Shape{}, reinterpret_cast<const std::byte*>(&round)};
    given[1] = {DType::kBool, Shape{}, reinterpret_cast<const std::byte*>(&yes)};
    for (std::size_t k = 0; k < carried; ++k) given[2 + k] = carried_[k].view();
    auto done = bodies_[0]->run(given, stop);
    if (!done) return fail(std::move(done).error().in(fmt::format("round {}", round)));
    CYB_ASSIGN(more, end_round(carried, stacks));
  }
  return finish_loop(carried, stacks);
}

Result<void> ControlFlow::finish_loop(std::size_t carried, std::vector<Stack>& stacks) {
  for (std::size_t k = 0; k < carried; ++k) outputs_.push_back(carried_[k].view());
  for (std::size_t k = 0; k < stacks.size(); ++k) {
    Stack& stack = stacks[k];
    const TensorSpec& spec = declared_[carried + k];
    std::vector<std::int64_t> dims = {stack.rows};
    if (stack.rows == 0) {  // no round said how large a row is: it is empty anyway
      stack.dtype = spec.dtype;
      for (std::size_t i = 1; i < spec.rank(); ++i)
        dims.push_back(spec.dims[i].is_constant() ? spec.dims[i].constant() : 0);
    } else {
      dims.insert(dims.end(), stack.row.dims().begin(), stack.row.dims().end());
    }
    const Shape shape{std::span<const std::int64_t>(dims)};
    CYB_ASSIGN(scanned_[k], HostTensor::allocate(stack.dtype, shape));
    if (!stack.bytes.empty())
      std::memcpy(scanned_[k].bytes.data(), stack.bytes.data(), stack.bytes.size());
    outputs_.push_back(scanned_[k].view());
  }
  return {};
}

}  // namespace cyb
