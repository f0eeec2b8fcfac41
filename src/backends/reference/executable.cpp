// Running plans on the reference. Nothing here depends on how many sequences share a run.
#include "backends/reference/executable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "backends/reference/plan_check.hpp"
#include "backends/reference/step_runner.hpp"
#include "backends/reference/weight.hpp"

namespace cyb::reference {

Result<std::unique_ptr<Executable>> ReferenceExecutable::compile(std::shared_ptr<Device> device,
                                                                 Plan plan) {
  CYB_ASSIGN(const PlanFacts facts, check_plan(plan));
  std::unique_ptr<ReferenceExecutable> out(new ReferenceExecutable);
  CYB_ASSIGN(out->arena_, device->memory->allocate(plan.arena_bytes, device->name));
  out->vocab_size_ = facts.vocab_size;
  out->kv_layers_ = facts.kv_layers;
  out->device_ = std::move(device);
  out->plan_ = std::move(plan);
  out->staging_.resize(out->plan_.outputs.size());
  out->published_.resize(out->plan_.outputs.size());
  CYB_TRY(out->plan_fused());
  return std::unique_ptr<Executable>(std::move(out));
}

Result<void> ReferenceExecutable::plan_fused() {
  for (const Step& step : plan_.steps) {
    slots_.push_back(fused_slots(step));
    if (slots_.back().n > 1) {
      fused_bytes_ = std::max(fused_bytes_, (slots_.back().n - 1) * fused_slot_bytes(step));
    }
  }
  if (fused_bytes_ == 0) return {};
  CYB_ASSIGN(fused_, device_->memory->allocate(fused_bytes_, device_->name));
  return {};
}

Result<void> ReferenceExecutable::check(const StepParams& params) const {
  CYB_TRY(check_tensors(plan_, params));
  if (!plan_.token_step) return {};
  const std::size_t n = params.ids.size(), r = params.output_rows.size();
  if (n == 0 || n > plan_.max_tokens) {
    return fail(invalid_input(fmt::format("{} rows, the plan takes 1 to {}", n, plan_.max_tokens)));
  }
  if (r > plan_.max_outputs) {
    return fail(
        invalid_input(fmt::format("{} output rows, the plan takes {}", r, plan_.max_outputs)));
  }
  if (params.positions.size() != n)
    return fail(invalid_input("ids and positions differ in length"));
  for (const std::int32_t id : params.ids) {
    if (vocab_size_ > 0 && (id < 0 || id >= vocab_size_)) {
      return fail(invalid_input(fmt::format("token id {} is outside 0..{}", id, vocab_size_ - 1)));
    }
  }
  for (const std::int32_t position : params.positions) {
    if (position < 0) return fail(invalid_input("negative position"));
  }
  for (std::size_t i = 0; i < r; ++i) {
    const std::int32_t row = params.output_rows[i];
    const bool ascending = i == 0 || row > params.output_rows[i - 1];
    if (row < 0 || static_cast<std::size_t>(row) >= n || !ascending) {
      return fail(invalid_input("output rows must ascend inside the run"));
    }
  }
  return kv_layers_ > 0 ? check_sequences(params) : Result<void>{};
}

Result<void> ReferenceExecutable::check_sequences(const StepParams& params) const {
  const auto* kv = dynamic_cast<const KvAccess*>(params.kv);
  if (kv == nullptr) return fail(internal_error("the run's KV store is not of this backend"));
  const KvLayout& layout = kv->access_layout();
  if (kv_layers_ > layout.layers.size())
    return fail(internal_error("KV store with too few layers"));
  std::size_t rows = 0;
  for (const SequenceSpan& s : params.sequences) {
    if (s.row_begin != rows) return fail(internal_error("sequences do not cover the rows"));
    rows += s.n_rows;
    const std::uint64_t total = std::uint64_t{s.past_tokens} + s.n_rows;
    if (s.pages.size() * std::uint64_t{layout.page_tokens} < total) {
      return fail(context_overflow(total, s.pages.size() * std::uint64_t{layout.page_tokens}));
    }
    for (const std::uint32_t page : s.pages) {
      if (page >= kv->access_pages()) return fail(internal_error("kv page out of range"));
    }
  }
  if (rows != params.ids.size()) return fail(internal_error("sequences do not cover the rows"));
  return {};
}

void ReferenceExecutable::copy(const StepParams& params) {
  run_.ids.assign(params.ids.begin(), params.ids.end());
  run_.positions.assign(params.positions.begin(), params.positions.end());
  run_.output_rows.assign(params.output_rows.begin(), params.output_rows.end());
  run_.sequences.assign(params.sequences.begin(), params.sequences.end());
  run_.pages.clear();
  for (const SequenceSpan& s : params.sequences) {
    run_.pages.insert(run_.pages.end(), s.pages.begin(), s.pages.end());
  }
  std::size_t at = 0;
  for (SequenceSpan& s : run_.sequences) {
    const std::size_t n = s.pages.size();
    s.pages = std::span<const std::uint32_t>(run_.pages).subspan(at, n);
    at += n;
  }
  run_.kv = dynamic_cast<KvAccess*>(params.kv);
  run_.length = run_.sequences.empty() ? 0 : static_cast<std::int32_t>(run_.sequences[0].tokens());
  run_.params = {run_.ids, run_.positions, run_.output_rows, run_.sequences, params.kv,
                 {},       params.times};
}

/// Tensors as the device sees them: the caller's memory, or a copy.
Result<void> ReferenceExecutable::take_tensors(const StepParams& params) {
  run_.tensors.clear();
  for (const TensorView& tensor : params.tensors) run_.tensors.push_back(present_tensor(tensor));
  uploads_.resize(params.tensors.size());
  for (std::size_t i = 0; i < params.tensors.size(); ++i) {
    TensorView& tensor = run_.tensors[i];
    const std::uint64_t bytes = tensor_bytes(tensor.dtype, tensor.shape).value_or(0);
    if (bytes == 0 || device_->memory->host_visible()) continue;
    if (uploads_[i] == nullptr) {
      CYB_ASSIGN(uploads_[i], device_->memory->allocate(bytes, device_->name));
    }
    std::byte* to = uploads_[i]->data();
    device_->memory->execute([&] { std::memcpy(to, tensor.data, bytes); });
    tensor.data = to;
  }
  return {};
}

Result<void> ReferenceExecutable::submit(const StepParams& params) {
  if (pending_) return fail(busy("the executable"));
  done_ = false;
  CYB_TRY(check(params));
  copy(params);
  CYB_TRY(take_tensors(params));
  run_.params.tensors = run_.tensors;
  pending_ = true;
  return {};
}

TensorView ReferenceExecutable::view(const Operand& operand) const {
  const Shape shape = run_shape(operand, run_.params);
  const auto list = [&](const std::vector<std::int32_t>& values) {
    return TensorView{DType::kI32, shape, reinterpret_cast<const std::byte*>(values.data())};
  };
  switch (operand.kind) {
    case Operand::Kind::kArena:
      return {operand.dtype, shape, arena_->data() + operand.offset};
    case Operand::Kind::kIds:
      return list(run_.ids);
    case Operand::Kind::kPositions:
      return list(run_.positions);
    case Operand::Kind::kOutputRows:
      return list(run_.output_rows);
    case Operand::Kind::kLength:
      return {DType::kI32, shape, reinterpret_cast<const std::byte*>(&run_.length)};
    case Operand::Kind::kTensor:
      return {operand.dtype, shape, run_.tensors[operand.index].data};
    case Operand::Kind::kWeight: {
      TensorView weight = static_cast<const ReferenceWeight*>(operand.weight)->view();
      weight.shape = shape;
      return weight;
    }
    default:
      return {};
  }
}

Result<void> ReferenceExecutable::run_step_at(std::size_t i) {
  const Step& step = plan_.steps[i];
  step_inputs_.clear();
  step_outputs_.clear();
  for (const Operand& in : step.inputs) step_inputs_.push_back(view(in));
  for (const Operand& out : step.outputs) {
    step_outputs_.push_back({out.dtype, run_shape(out, run_.params), arena_->data() + out.offset});
  }
  ThreadPool* pool = device_->pool.get();
  CYB_TRY(
      run_step({step, step_inputs_, step_outputs_, run_.params, run_.kv, pool, &scratch_bytes_}));
  if (step.fused.empty()) return {};
  step_operands_.clear();
  for (const Operand& in : step.fused_inputs) step_operands_.push_back(view(in));
  std::byte* scratch = fused_ == nullptr ? nullptr : fused_->data();
  return run_fused_ops({step, slots_[i], step_outputs_[0], step_operands_, scratch, pool},
                       step_inputs_);
}

/// A run of as many rows as fit, the last ones of the longest sequence.
std::uint64_t ReferenceExecutable::most_bytes(const RunLimits& limits) const {
  const std::uint32_t longest = std::max(limits.sequence_tokens, std::uint32_t{1});
  const std::uint32_t unit = KvLayout{}.page_tokens;
  const std::uint32_t pages_each = (longest + unit - 1) / unit;
  const std::uint64_t all = std::uint64_t{std::max(limits.kv_pages / pages_each, 1u)} * longest;
  const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>(plan_.max_tokens, all));
  const std::uint32_t n_rows = std::min(n, longest);
  const std::vector<std::int32_t> ids(n), rows(std::min(plan_.max_outputs, n));
  const SequenceSpan sequence{.n_rows = n_rows, .past_tokens = longest - n_rows, .pages = {}};
  const StepParams params{ids, ids, rows, std::span(&sequence, 1), nullptr, {}, {}};
  const auto seen = [&](const Operand& operand) {
    static constexpr std::byte kNothing{};
    const bool there = operand.kind != Operand::Kind::kNone;
    return TensorView{operand.dtype, run_shape(operand, params), there ? &kNothing : nullptr};
  };
  std::uint64_t scratch = 0;
  for (const Step& step : plan_.steps) {
    std::vector<TensorView> inputs;
    for (const Operand& in : step.inputs) inputs.push_back(seen(in));
    // A decomposition that needs data to go on counts up to there.
    (void)run_step({step, inputs, {}, params, nullptr, nullptr, &scratch, true});
  }
  return plan_.arena_bytes + fused_bytes_ + scratch;
}

Result<void> ReferenceExecutable::run_steps(const std::stop_token& stop) {
  const bool timed = run_.params.times.size() == plan_.steps.size();
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    if (stop.stop_requested()) return fail(cancelled(0));
    if (timed) run_.params.times[i].begin_ns = now_ns();
    CYB_TRY(run_step_at(i));
    if (timed) run_.params.times[i].end_ns = now_ns();
  }
  return publish();
}

std::string ReferenceExecutable::producer(const Operand& output) const {
  for (auto step = plan_.steps.rbegin(); step != plan_.steps.rend(); ++step) {
    for (const Operand& out : step->outputs) {
      if (out.offset == output.offset) return std::string(op_info(step->op.tag).name);
    }
  }
  return "output";
}

Result<void> ReferenceExecutable::publish() {
  for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
    TensorView result = view(plan_.outputs[i]);
    const auto n = static_cast<std::size_t>(result.shape.count());
    for (std::size_t k = 0; plan_.token_step && k < n; ++k) {
      if (!std::isfinite(result.as<float>()[k])) {
        return fail(non_finite(producer(plan_.outputs[i]), fmt::format("output {}", i), k));
      }
    }
    if (!device_->memory->host_visible()) {
      const std::uint64_t bytes = tensor_bytes(result.dtype, result.shape).value_or(0);
      staging_[i].resize(std::max<std::uint64_t>(bytes, 1));
      if (bytes != 0) std::memcpy(staging_[i].data(), result.data, bytes);
      result.data = staging_[i].data();
    }
    published_[i] = result;
  }
  return {};
}

Result<void> ReferenceExecutable::sync(std::stop_token stop) {
  if (!pending_) return fail(internal_error("sync without submit"));
  pending_ = false;
  Result<void> result;
  const auto work = [&] { result = run_steps(stop); };
  device_->memory->execute(std::cref(work));  // a reference fits a function without memory
  done_ = result.has_value();
  return result;
}

Result<TensorView> ReferenceExecutable::output_tensor(std::size_t i) {
  if (!done_ || i >= published_.size())
    return fail(internal_error("no such output of a finished run"));
  return published_[i];
}

}  // namespace cyb::reference
