// Plan: the common currency between paths and backends. Everything is decided when it is built;
// between tokens only StepParams changes. Nothing here is a host pointer to tensor data: a
// backend's memory may be invisible to the host.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ops/op.hpp"
#include "tensor/shape.hpp"

namespace cyb {

class KvStore;
class Weight;

/// What dimension 0 of an operand is at run time.
enum class RowKind : std::uint8_t {
  kFixed,    // the stored shape
  kTokens,   // StepParams::n_tokens rows (stored: the maximum)
  kOutputs,  // StepParams::output_rows.size() rows (stored: the maximum)
};

struct Operand {
  enum class Kind : std::uint8_t {
    kNone,        // absent optional input
    kArena,       // intermediate at `offset` of the arena
    kWeight,      // `weight`
    kIds,         // i32 [N] token ids of the run
    kPositions,   // i32 [N] absolute positions
    kOutputRows,  // i32 [R] rows whose outputs are wanted
    kLength,      // i32 [1] tokens() of the run's one sequence; of each in BlockAttention
    kTensor,      // StepParams::tensors[index], a named input of a general graph
  };
  Kind kind = Kind::kNone;
  RowKind rows = RowKind::kFixed;
  DType dtype = DType::kF32;
  Shape shape{};
  std::uint64_t offset = 0;        // bytes, multiple of 256
  const Weight* weight = nullptr;  // owned by the model's weight table, outlives the plan
  std::uint32_t index = 0;         // of a kTensor
  // Dimension that counts the past positions of the run's one sequence; stored for `max_past` of
  // them. -1: none.
  std::int8_t past_axis = -1;
  std::uint32_t max_past = 0;
};

/// An input of a FusedOp: a result of the step (0: of the step's own op, i: of fused[i - 1]), or
/// Step::fused_inputs[index].
struct FusedInput {
  bool is_result = false;
  std::uint32_t index = 0;
};

/// One elementwise op that a step goes on with. Its result has the shape and dtype of the step's
/// own.
struct FusedOp {
  Op op;
  std::vector<FusedInput> inputs;
};

/// outputs[0] may be the memory of inputs[k] where works_in_place(op, k) (ops/elementwise.hpp),
/// both have as many elements of the same dtype, and no other input of the step lies there.
struct Step {
  Op op;
  std::vector<Operand> inputs, outputs;
  std::string label;  // "layer 3 attention": context of errors and profiles
  // Elementwise ops on the result, in order; outputs[0] is the last one's. Only where the backend
  // said so (Backend::fuses).
  std::vector<FusedOp> fused = {};
  std::vector<Operand> fused_inputs = {};
};

/// Buffers for the results of a step with fused ops: slot of result i; slot 0 is outputs[0]. A
/// result takes the lowest slot whose value nobody reads any more; the last one is in slot 0.
struct FusedSlots {
  std::vector<std::uint32_t> of;  // per result
  std::uint32_t n = 1;
};
FusedSlots fused_slots(const Step& step);

struct Plan {
  std::vector<Step> steps;
  std::vector<Operand> outputs;  // what the caller reads after a run, e.g. logits [R, V]
  std::uint64_t arena_bytes = 0;
  std::uint32_t max_tokens = 0;   // N <= max_tokens
  std::uint32_t max_outputs = 0;  // R <= max_outputs
  // A language model's step: 1..max_tokens ids, and f32 outputs without NaN or Inf (NonFinite). A
  // general graph has neither: its inputs are `tensors`, its outputs what the ops give.
  bool token_step = true;
  std::vector<TensorSpec> tensors = {};  // specs of StepParams::tensors, all dimensions constant
};

/// Rows [row_begin, row_begin + n_rows) of a run belong to one sequence that has `past_tokens`
/// positions in the cache.
struct SequenceSpan {
  std::uint32_t row_begin = 0;
  std::uint32_t n_rows = 0;
  std::uint32_t past_tokens = 0;  // P
  std::span<const std::uint32_t>
      pages;  // page ids that hold positions 0 .. P + n_rows - 1, page_tokens each
  /// Length of the whole sequence where the run holds a part of it only (a prompt in chunks); 0: P
  /// + n_rows. Rope frequencies may depend on it.
  std::uint32_t length = 0;  // T

  std::uint32_t tokens() const noexcept { return length != 0 ? length : past_tokens + n_rows; }
};

/// When a step ran, on the steady clock.
struct StepTime {
  std::int64_t begin_ns = 0, end_ns = 0;
};

/// One ragged forward. Borrowed until submit() returns; rows of a sequence are contiguous and in
/// position order.
struct StepParams {
  std::span<const std::int32_t> ids = {};          // [N]
  std::span<const std::int32_t> positions = {};    // [N]
  std::span<const std::int32_t> output_rows = {};  // [R], ascending
  std::span<const SequenceSpan> sequences = {};
  KvStore* kv = nullptr;
  std::span<const TensorView> tensors = {};  // host memory, kept by the caller until sync() returns
  std::span<StepTime> times = {};            // one per step, filled by sync(); empty: not measured

  std::uint32_t n_tokens() const noexcept { return static_cast<std::uint32_t>(ids.size()); }
};

/// The run's tensors are those that the plan lists: number, dtypes, shapes.
Result<void> check_tensors(const Plan& plan, const StepParams& params);
/// The tensor with a pointer even where it is empty: null means absent.
TensorView present_tensor(TensorView tensor) noexcept;

/// Nanoseconds of the steady clock.
std::int64_t now_ns() noexcept;

/// Shape of an operand in a run.
inline Shape run_shape(const Operand& operand, const StepParams& params) noexcept {
  Shape shape = operand.shape;
  if (operand.rows == RowKind::kTokens) shape[0] = params.n_tokens();
  if (operand.rows == RowKind::kOutputs)
    shape[0] = static_cast<std::int64_t>(params.output_rows.size());
  if (operand.past_axis >= 0 && !params.sequences.empty()) {
    const std::int64_t past = params.sequences[0].past_tokens;
    shape[static_cast<std::size_t>(operand.past_axis)] -= operand.max_past - past;
  }
  return shape;
}

}  // namespace cyb
