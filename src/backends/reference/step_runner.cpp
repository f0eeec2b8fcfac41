// Plain ops run directly; fused ones through EagerSink, attention once per sequence.
#include "backends/reference/step_runner.hpp"

#include <algorithm>
#include <cstring>

namespace cyb::reference {
namespace {

constexpr std::size_t kLengthInput = 6;  // of BlockAttention

/// Rows [begin, begin + n) of a tensor.
TensorView slice(const TensorView& view, std::uint32_t begin, std::uint32_t n) {
  TensorView out = view;
  out.shape[0] = n;
  const auto row = tensor_bytes(view.dtype, view.shape).value_or(0) /
                   static_cast<std::uint64_t>(std::max<std::int64_t>(view.shape[0], 1));
  out.data = view.data + begin * row;
  return out;
}

void copy_out(const TensorView& from, std::byte* to) {
  const auto bytes = tensor_bytes(from.dtype, from.shape).value_or(0);
  if (bytes != 0) std::memcpy(to, from.data, bytes);
}

void note_scratch(const StepCall& call, const EagerSink& sink) {
  if (call.scratch_bytes == nullptr) return;
  *call.scratch_bytes = std::max(*call.scratch_bytes, sink.own_bytes());
}

/// BlockAttention: q, k, v and the output are cut into sequences, which know nothing of each other.
Result<void> run_attention(const StepCall& call) {
  for (const SequenceSpan& s : call.params.sequences) {
    const TensorView positions{
        DType::kI32, Shape{s.n_rows},
        reinterpret_cast<const std::byte*>(call.params.positions.data() + s.row_begin)};
    EagerSink sink(call.pool, {call.kv, s.pages, s.past_tokens, s.n_rows}, positions);
    std::vector<ValueId> inputs;
    const auto length = static_cast<std::int32_t>(s.tokens());
    for (std::size_t k = 0; k < call.inputs.size(); ++k) {
      const bool per_row = k < 3;
      if (k == kLengthInput && call.inputs[k].present()) {
        inputs.push_back(
            sink.add({DType::kI32, Shape{1}, reinterpret_cast<const std::byte*>(&length)}));
        continue;
      }
      inputs.push_back(
          sink.add(per_row ? slice(call.inputs[k], s.row_begin, s.n_rows) : call.inputs[k]));
    }
    if (call.measures) sink.measure();
    CYB_ASSIGN(const std::vector<ValueId> outputs, sink.emit(call.step.op, inputs));
    note_scratch(call, sink);
    if (call.measures) continue;
    const TensorView all = call.outputs[0];
    copy_out(sink.view(outputs[0]),
             call.outputs[0].data + (slice(all, s.row_begin, s.n_rows).data - all.data));
  }
  return {};
}

Result<void> run_fused(const StepCall& call) {
  EagerSink sink(call.pool, {}, {});
  std::vector<ValueId> inputs;
  for (const TensorView& view : call.inputs) inputs.push_back(sink.add(view));
  if (call.measures) sink.measure();
  CYB_ASSIGN(const std::vector<ValueId> outputs, sink.emit(call.step.op, inputs));
  note_scratch(call, sink);
  if (call.measures) return {};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    copy_out(sink.view(outputs[i]), call.outputs[i].data);
  }
  return {};
}

Result<void> dispatch(const StepCall& call) {
  const OpInfo& info = op_info(call.step.op.tag);
  if (info.tag == OpTag::kBlockAttention) return run_attention(call);
  if (info.fused) return run_fused(call);
  if (call.measures) return {};
  const RefCall plain{.attrs = call.step.op.attrs,
                      .inputs = call.inputs,
                      .outputs = call.outputs,
                      .pool = call.pool};
  if (info.tag != OpTag::kKvCache) return info.reference(plain);
  if (call.params.sequences.size() != 1) {
    return fail(internal_error("a KvCache step serves one sequence"));
  }
  const SequenceSpan& s = call.params.sequences[0];
  return run_kv_cache(plain, {call.kv, s.pages, s.past_tokens, s.n_rows});
}

}  // namespace

Result<void> run_step(const StepCall& call) {
  auto result = dispatch(call);
  if (!result && !call.step.label.empty()) {
    return fail(std::move(result).error().in(call.step.label));
  }
  return result;
}

}  // namespace cyb::reference
