// Running stages one after the other, building those that are missing.
#include "paths/graph/tensor_forward.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace cyb {
namespace {

constexpr std::size_t kMaxPlans = 256;  // kept

Error wrong_input(std::string_view name, std::string_view what) {
  return invalid_input(fmt::format("\"{}\": {}", name, what));
}

std::string shapes_key(std::span<const TensorSpec> specs) {
  std::string key;
  for (const TensorSpec& spec : specs) key += spec.text() + ";";
  return key;
}

}  // namespace

Result<void> TensorForward::check_dim(const GraphInput& input, std::size_t axis,
                                      std::int64_t given) {
  const Dim& dim = input.spec.dims[axis];
  if (dim.is_anonymous()) return {};
  const std::vector<std::string>& symbols = program_.symbols();
  const auto mismatch = [&](const std::string& want) {
    return fail(wrong_input(input.name, fmt::format("dimension {} is {}, the model takes {}: {}",
                                                    axis, given, want, input.spec.text(symbols))));
  };
  if (dim.is_constant()) {
    return dim.constant() == given ? Result<void>{} : mismatch(std::to_string(dim.constant()));
  }
  const auto terms = dim.terms();
  if (terms.size() != 1 || terms[0].second != 1 || dim.constant() != 0) return {};
  const std::uint32_t symbol = terms[0].first;
  if (symbol >= bound_.size()) bound_.resize(symbol + 1);
  Bound& bound = bound_[symbol];
  if (bound.by == nullptr) bound = {given, &input};
  if (bound.value == given) return {};
  return mismatch(fmt::format("{} = {} (as input \"{}\" has it)", dim.text(symbols), bound.value,
                              bound.by->name));
}

Result<std::unique_ptr<TensorForward>> TensorForward::make(const Graph& graph, WeightTable& weights,
                                                           const TensorOptions& options) {
  CYB_ASSIGN(TensorProgram program, TensorProgram::prepare(graph, weights.model()));
  std::unique_ptr<TensorForward> out(new TensorForward(std::move(program), weights, options));
  for (std::uint32_t i = 0; i < out->program_.n_nodes(); ++i) {
    const TensorProgram::Node& node = out->program_.nodes()[i];
    if (!runs_between_plans(node.op.tag)) continue;
    auto control = ControlFlow::make(node.op, weights, options);
    if (!control) return fail(std::move(control).error().in("graph: " + node.label));
    out->controls_[i] = *std::move(control);
  }
  return out;
}

Result<void> TensorForward::check_inputs(std::span<const TensorView> inputs) {
  if (inputs.size() != program_.inputs().size()) {
    return fail(invalid_input(
        fmt::format("{} given, the model has {}", inputs.size(), program_.inputs().size())));
  }
  bound_.assign(bound_.size(), {});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const GraphInput& want = program_.inputs()[i];
    const TensorView& given = inputs[i];
    if (!given.present()) return fail(wrong_input(want.name, "missing"));
    if (given.dtype != want.spec.dtype) {
      return fail(
          wrong_input(want.name, fmt::format("{}, the model takes {}", dtype_name(given.dtype),
                                             dtype_name(want.spec.dtype))));
    }
    if (given.shape.rank() != want.spec.rank()) {
      return fail(
          wrong_input(want.name, fmt::format("shape {}, the model takes {}", given.shape.text(),
                                             want.spec.text(program_.symbols()))));
    }
    for (std::size_t axis = 0; axis < want.spec.rank(); ++axis) {
      CYB_TRY(check_dim(want, axis, given.shape[axis]));
    }
  }
  return {};
}

StageState TensorForward::first_state(std::span<const TensorView> inputs) const {
  StageState state;
  const std::size_t n = program_.values().size();
  state.specs.resize(n);
  state.known.resize(n, false);
  state.found.resize(n);
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    const std::uint32_t v = program_.input_values()[i];
    state.specs[v] = TensorSpec::of(inputs[i].dtype, inputs[i].shape);
    state.known[v] = true;
    state.found[v] =
        StageSource{StageSource::Kind::kInput, 0, i, inputs[i].dtype, inputs[i].shape, nullptr};
  }
  return state;
}

Result<TensorView> TensorForward::view(const StageSource& source) const {
  switch (source.kind) {
    case StageSource::Kind::kInput:
      return TensorView{source.dtype, source.shape, inputs_[source.index].data};
    case StageSource::Kind::kHost:
      return TensorView{source.dtype, source.shape, source.host};
    case StageSource::Kind::kControl:
      return controls_.at(source.stage)->outputs()[source.index];
    case StageSource::Kind::kStage: {
      CYB_ASSIGN(TensorView tensor, path_[source.stage]->executable->output_tensor(source.index));
      tensor.shape = source.shape;
      return tensor;
    }
  }
  return fail(internal_error("an unknown source"));
}

void TensorForward::note_built(Stage& stage) {
  stage.used = n_runs_;
  ++n_plans_;
  plan_bytes_ += stage.bytes;
  peak_plan_bytes_ = std::max(peak_plan_bytes_, plan_bytes_);
  make_room();
}

void TensorForward::make_room() {
  while (plan_bytes_ > weights_.options().plan_bytes || n_plans_ > kMaxPlans) {
    if (!drop_oldest()) return;
  }
}

/// Drops the plan that was not used for the longest time, among those that none follows; those of
/// this run stay. False: there is none.
bool TensorForward::drop_oldest() {
  struct Place {
    Stage* before;
    std::unique_ptr<Stage>* stage;
  };
  Place oldest{nullptr, nullptr};
  std::vector<Place> todo;
  for (auto& [key, stage] : first_) todo.push_back({nullptr, &stage});
  while (!todo.empty()) {
    const Place at = todo.back();
    todo.pop_back();
    Stage* stage = at.stage->get();
    if (stage == nullptr) continue;
    for (auto& [key, next] : stage->next) todo.push_back({stage, &next});
    const bool older = oldest.stage == nullptr || stage->used < (*oldest.stage)->used;
    if (stage->next.empty() && older && stage->used != n_runs_) oldest = at;
  }
  if (oldest.stage == nullptr) return false;
  plan_bytes_ -= (*oldest.stage)->bytes;
  --n_plans_;
  oldest.stage->reset();
  const auto dropped = [](const auto& entry) { return entry.second == nullptr; };
  if (oldest.before == nullptr) {
    std::erase_if(first_, dropped);
  } else {
    std::erase_if(oldest.before->next, dropped);
  }
  return true;
}

Result<Stage*> TensorForward::first_stage() {
  key_.clear();
  for (const TensorView& input : inputs_) {
    const auto dims = input.shape.dims();
    key_.insert(key_.end(), dims.begin(), dims.end());
  }
  std::unique_ptr<Stage>& stage = first_[key_];
  if (stage == nullptr) {
    auto built = build_first_stage(weights_, first_state(inputs_));
    if (!built) first_.erase(key_);
    if (!built) return fail(std::move(built).error());
    stage = *std::move(built);
    note_built(*stage);
  }
  stage->used = n_runs_;
  return stage.get();
}

Result<std::vector<TensorSpec>> TensorForward::run_control(std::uint32_t node,
                                                           std::span<const TensorView> inputs,
                                                           const std::stop_token& stop) {
  ControlFlow& control = *controls_.at(node);
  control.record_into(log_);
  CYB_TRY(control.run(inputs, stop));
  n_fallback_steps_ += control.n_fallback_steps();
  std::vector<TensorSpec> specs;
  for (const TensorView& output : control.outputs())
    specs.push_back(TensorSpec::of(output.dtype, output.shape));
  return specs;
}

Result<Stage*> TensorForward::next_stage(Stage& stage, const std::stop_token& stop) {
  const TensorProgram::Node& node = program_.nodes()[stage.end];
  std::vector<TensorView> views;
  for (const auto& source : stage.awaited) {
    views.emplace_back();
    if (!source) continue;
    CYB_ASSIGN(views.back(), view(*source));
  }
  auto specs = runs_between_plans(node.op.tag) ? run_control(stage.end, views, stop)
                                               : run_specs(node.op, views);
  if (!specs) return fail(std::move(specs).error().in("graph: " + node.label));
  std::unique_ptr<Stage>& next = stage.next[shapes_key(*specs)];
  if (next == nullptr) {
    auto built = build_next_stage(weights_, stage, *std::move(specs));
    if (!built)
      std::erase_if(stage.next, [](const auto& entry) { return entry.second == nullptr; });
    if (!built) return fail(std::move(built).error());
    next = *std::move(built);
    note_built(*next);
  }
  next->used = n_runs_;
  return next.get();
}

Result<void> TensorForward::run_stage(Stage& stage, const std::stop_token& stop) {
  if (stage.executable == nullptr) return {};
  tensors_.clear();
  for (const StageSource& source : stage.tensors) {
    CYB_ASSIGN(const TensorView tensor, view(source));
    tensors_.push_back(tensor);
  }
  StepParams params{.tensors = tensors_};
  if (log_ != nullptr) {
    stage.times.assign(stage.steps.size(), {});
    params.times = stage.times;
  }
  CYB_TRY(stage.executable->submit(params));
  CYB_TRY(stage.executable->sync(stop));
  n_fallback_steps_ += stage.executable->n_fallback_steps();
  for (std::size_t i = 0; log_ != nullptr && i < stage.steps.size(); ++i) {
    log_->cut = log_->cut || log_->entries.size() == StepLog::kMaxEntries;
    if (!log_->cut) log_->entries.push_back({stage.steps[i], stage.times[i]});
  }
  return {};
}

Result<void> TensorForward::run(std::span<const TensorView> inputs, std::stop_token stop) {
  outputs_.clear();
  path_.clear();
  if (log_ == &own_log_) own_log_ = {};
  n_fallback_steps_ = 0;
  ++n_runs_;
  CYB_TRY(check_inputs(inputs));
  inputs_.assign(inputs.begin(), inputs.end());
  CYB_ASSIGN(Stage * stage, first_stage());
  while (true) {
    path_.push_back(stage);
    CYB_TRY(run_stage(*stage, stop));
    if (stage->end == program_.n_nodes()) break;
    CYB_ASSIGN(stage, next_stage(*stage, stop));
  }
  // A stop during the last step: what its caller no longer wants is not given.
  if (stop.stop_requested()) return fail(cancelled(0));
  for (const StageSource& source : stage->outputs) {
    CYB_ASSIGN(const TensorView tensor, view(source));
    outputs_.push_back(tensor);
  }
  for (const auto& [node, control] : controls_) control->commit();
  return {};
}

std::uint64_t TensorForward::peak_bytes() const noexcept {
  std::uint64_t total = peak_plan_bytes_;
  for (const auto& [node, control] : controls_) total += control->peak_bytes();
  return total;
}

Result<void> TensorForward::plan_for(std::span<const TensorView> inputs) {
  ++n_runs_;
  CYB_TRY(check_inputs(inputs));
  inputs_.assign(inputs.begin(), inputs.end());
  auto stage = first_stage();
  inputs_.clear();
  if (!stage) return fail(std::move(stage).error());
  if ((*stage)->end == program_.n_nodes()) return {};
  return fail(invalid_input("what the graph takes depends on its data from " +
                            program_.nodes()[(*stage)->end].label +
                            " on: a run with the data says it (--json: memory)"));
}

void TensorForward::reset() noexcept {
  for (const auto& [node, control] : controls_) control->reset();
}

Result<TensorView> TensorForward::output(std::size_t i) const {
  if (i >= outputs_.size()) return fail(internal_error("no such output of a finished run"));
  return outputs_[i];
}

}  // namespace cyb
