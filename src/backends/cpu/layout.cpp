// The walk over a plan's steps that decides their layouts.
#include "backends/cpu/layout.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "backends/cpu/conv_epilogue.hpp"
#include "backends/cpu/layout_steps.hpp"
#include "backends/cpu/layout_values.hpp"

namespace cyb::cpu {
namespace {

class Layouts {
 public:
  Layouts(Plan plan, std::vector<bool> direct)
      : plan_(std::move(plan)), direct_(std::move(direct)), pending_(plan_.steps.size()) {
    for (Step& step : plan_.steps) align_slopes(step);
    find_merges();
  }

  LaidPlan lay_out() {
    for (at_ = 0; at_ < plan_.steps.size(); ++at_) {
      const Step& step = plan_.steps[at_];
      if (merged_into_[at_] != kNoStep) {
        pending_[merged_into_[at_]] = conv(step);
      } else if (pending_[at_]) {
        finish_merged(step);
      } else if (direct_[at_]) {
        emit_conv(step);
      } else if (!transpose(step)) {
        follows(step) ? emit_last(step) : emit_plain(step);
      }
    }
    --at_;
    std::vector<std::uint32_t> outputs;
    for (const Operand& o : plan_.outputs) {
      Operand copy = o;
      outputs.push_back(read_plain(copy));
    }
    LaidPlan laid = place(std::move(drafts_), values_, outputs);
    for (std::size_t i = 0; i < plan_.outputs.size(); ++i) {
      const std::uint64_t offset = laid.outputs[i].offset;
      laid.outputs[i] = plan_.outputs[i];
      if (outputs[i] != kNoValue) laid.outputs[i].offset = offset;
    }
    return laid;
  }

 private:
  static constexpr std::uint32_t kNoStep = UINT32_MAX;

  /// PRelu's slopes, one a channel, as a shape that repeats like any other.
  static void align_slopes(Step& step) {
    const std::size_t rank = step.outputs.empty() ? 0 : step.outputs[0].shape.rank();
    for (const FusedOp& op : step.fused) {
      if (op.op.tag != OpTag::kPRelu || op.inputs[1].is_result || rank < 3) continue;
      Shape& slope = step.fused_inputs[op.inputs[1].index].shape;
      if (slope.rank() != 1 || slope[0] == 1) continue;
      std::vector<std::int64_t> dims(rank - 1, 1);
      dims[0] = slope[0];
      slope = Shape(dims);
    }
  }

  // --- values

  std::uint32_t value_of(const Operand& operand) const {
    if (operand.kind != Operand::Kind::kArena) return kNoValue;
    const auto found = at_offset_.find(operand.offset);
    return found == at_offset_.end() ? kNoValue : found->second;
  }
  bool is_last(const Operand& operand) const {
    const std::uint32_t v = value_of(operand);
    return v != kNoValue && values_[v].last && keeps_channels(values_[v].shape, operand.shape);
  }
  std::uint32_t add_value(const Shape& shape, DType dtype, bool last) {
    const auto v = static_cast<std::uint32_t>(values_.size());
    values_.push_back({shape, dtype, last && !is_trivial(shape), v, kNoValue});
    return v;
  }

  /// A copy of [B, C, axes...] in the other order. `v`: where it comes from, or kNoValue. The shape
  /// is a copy too: it may be that of a value, and values_ grows here.
  std::uint32_t convert(Operand from, std::uint32_t v, const Shape shape, bool to_last) {
    if (v != kNoValue && values_[v].copy != kNoValue) {
      const LayoutValue& copy = values_[values_[v].copy];
      if (copy.last == to_last && (copy.shape == shape || !to_last)) return values_[v].copy;
    }
    from.shape = to_last ? shape : channels_last(shape);
    const std::uint32_t made = add_value(shape, from.dtype, to_last);
    const Shape& out = to_last ? channels_last(shape) : shape;
    Step step{{OpTag::kPermute, permutation(shape.rank(), to_last)},
              {from},
              {{.kind = Operand::Kind::kArena, .dtype = from.dtype, .shape = out}},
              plan_.steps[at_].label};
    drafts_.push_back({{std::move(step), false, at_}, {v}, {}, {made}});
    if (v != kNoValue) {
      values_[v].copy = made;
      values_[made].copy = v;
    }
    return made;
  }

  /// `operand` read in row-major order.
  std::uint32_t read_plain(Operand& operand) {
    const std::uint32_t v = value_of(operand);
    if (v == kNoValue || !values_[v].last) return v;
    Operand from = operand;
    return convert(from, v, values_[v].shape, false);
  }

  /// `operand` as one of a step whose result has `rank` dimensions and its channels last; gets the
  /// shape of the memory.
  std::uint32_t read_last(Operand& operand, std::size_t rank) {
    if (operand.kind == Operand::Kind::kNone || operand.shape.count() == 1)
      return read_plain(operand);
    const Shape shape = with_rank(operand.shape, rank);
    std::uint32_t v;
    if (is_trivial(shape)) {
      v = read_plain(operand);
    } else if (is_last(operand)) {
      v = value_of(operand);
    } else {
      v = read_plain(operand);
      const auto tensor =
          operand.kind == Operand::Kind::kTensor ? tensors_.find(operand.index) : tensors_.end();
      if (tensor != tensors_.end() && values_[tensor->second].shape == shape) {
        v = tensor->second;
      } else {
        v = convert(operand, v, shape, true);
        if (operand.kind == Operand::Kind::kTensor) tensors_[operand.index] = v;
      }
    }
    if (v != kNoValue) operand.kind = Operand::Kind::kArena;
    operand.shape = channels_last(shape);
    return v;
  }

  // --- steps

  DraftStep draft(const Step& step, bool last) const {
    DraftStep d{{step, last, at_}, {}, {}, {}};
    for (const Operand& in : step.inputs) {
      const bool same = in.kind == Operand::Kind::kArena && !step.outputs.empty() &&
                        in.offset == step.outputs[0].offset;
      if (same) d.shares = value_of(in);
    }
    return d;
  }

  void write(DraftStep& d, const std::vector<Operand>& outputs, bool last) {
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const std::uint32_t v = add_value(outputs[k].shape, outputs[k].dtype, last);
      at_offset_[outputs[k].offset] = v;
      d.outputs.push_back(v);
      if (last) d.laid.step.outputs[k].shape = channels_last(outputs[k].shape);
    }
  }

  void emit_plain(const Step& step) {
    DraftStep d = draft(step, false);
    for (Operand& in : d.laid.step.inputs) d.inputs.push_back(read_plain(in));
    for (Operand& in : d.laid.step.fused_inputs) d.fused_inputs.push_back(read_plain(in));
    write(d, step.outputs, false);
    drafts_.push_back(std::move(d));
  }

  void emit_last(const Step& step) {
    const bool pixels = is_pixel_op(step.op.tag);  // of one tensor
    const std::size_t rank = (pixels ? step.inputs : step.outputs)[0].shape.rank();
    DraftStep d = draft(step, true);
    d.laid.step.op = op_with_channels_last(step.op, rank);
    for (std::size_t k = 0; k < step.inputs.size(); ++k) {
      Operand& in = d.laid.step.inputs[k];
      d.inputs.push_back(k == 0 || !pixels ? read_last(in, rank) : read_plain(in));
    }
    for (Operand& in : d.laid.step.fused_inputs) d.fused_inputs.push_back(read_last(in, rank));
    write(d, step.outputs, true);
    drafts_.push_back(std::move(d));
  }

  /// Goes on in the order of its inputs.
  bool follows(const Step& step) const {
    std::int64_t last = 0, plain = 0;
    if (!can_follow(step, plan_)) return false;
    const auto count = [&](const Operand& in) {
      if (in.kind == Operand::Kind::kNone || is_trivial(in.shape)) return;
      (is_last(in) ? last : plain) += in.shape.count();
    };
    std::ranges::for_each(step.inputs, count);
    std::ranges::for_each(step.fused_inputs, count);
    return last > plain;
  }

  // --- convolutions

  /// The convolution without what is fused into it and without its output.
  DraftStep conv(const Step& step) {
    DraftStep d{{step, true, at_}, {}, {}, {}};
    Step& own = d.laid.step;
    d.inputs = {read_last(own.inputs[0], own.inputs[0].shape.rank())};
    d.inputs.resize(own.inputs.size(), kNoValue);  // stored
    return d;
  }

  void emit_conv(const Step& step) {
    DraftStep d = conv(step);
    const std::size_t rank = step.outputs[0].shape.rank();
    const bool whole = step.fused.empty() || can_fuse(shapes_last(step));
    if (!whole) return emit_conv_apart(std::move(d), step);
    for (Operand& in : d.laid.step.fused_inputs) d.fused_inputs.push_back(read_last(in, rank));
    write(d, step.outputs, true);
    drafts_.push_back(std::move(d));
  }

  /// What is fused needs rows: it goes with the copy into them.
  void emit_conv_apart(DraftStep d, const Step& step) {
    d.laid.step.fused.clear();
    d.laid.step.fused_inputs.clear();
    const Operand& out = step.outputs[0];
    d.laid.step.outputs[0].shape = channels_last(out.shape);
    const std::uint32_t v = add_value(out.shape, out.dtype, true);
    d.outputs = {v};
    drafts_.push_back(std::move(d));
    Operand from{
        .kind = Operand::Kind::kArena, .dtype = out.dtype, .shape = channels_last(out.shape)};
    DraftStep rows{{{{OpTag::kPermute, permutation(out.shape.rank(), false)},
                     {from},
                     step.outputs,
                     step.label,
                     step.fused,
                     step.fused_inputs},
                    false,
                    at_},
                   {v},
                   {},
                   {}};
    for (Operand& in : rows.laid.step.fused_inputs) rows.fused_inputs.push_back(read_plain(in));
    write(rows, step.outputs, false);
    drafts_.push_back(std::move(rows));
  }

  // --- transposes

  /// A transpose between the two orders that is another name of the same memory: [B, C, axes...]
  /// with channels last is [B, axes..., C] in rows, and the other way round.
  bool transpose(const Step& step) {
    const std::uint32_t v = step.inputs.empty() ? kNoValue : value_of(step.inputs[0]);
    if (v == kNoValue) return false;
    const bool to_last = transposes(step, true) && is_last(step.inputs[0]);
    if (!to_last && (!transposes(step, false) || values_[v].last)) return false;
    if (!step.fused.empty()) return transpose_with_ops(step, v, !to_last);
    const std::uint32_t alias = add_value(step.outputs[0].shape, DType::kF32, !to_last);
    values_[alias].root = values_[v].root;
    at_offset_[step.outputs[0].offset] = alias;
    return true;
  }

  /// The fused ops alone, behind a copy that keeps the order.
  bool transpose_with_ops(const Step& step, std::uint32_t v, bool last) {
    const std::size_t rank = step.outputs[0].shape.rank();
    Step own = last ? shapes_last(step) : step;
    own.inputs[0].shape = own.outputs[0].shape;
    own.op = {OpTag::kPermute, identity(rank)};
    if (!can_fuse(own)) return false;
    DraftStep d{{std::move(own), last, at_}, {v}, {}, {}};
    d.laid.step.fused_inputs = step.fused_inputs;
    for (Operand& in : d.laid.step.fused_inputs)
      d.fused_inputs.push_back(last ? read_last(in, rank) : read_plain(in));
    write(d, step.outputs, last);
    drafts_.push_back(std::move(d));
    return true;
  }

  /// A convolution whose only reader is a transpose to channels last with fused ops takes these.
  void find_merges() {
    merged_into_.assign(plan_.steps.size(), kNoStep);
    std::map<std::uint64_t, std::uint32_t> writer;
    std::vector<std::uint32_t> reads(plan_.steps.size(), 0), reader(plan_.steps.size(), kNoStep);
    const auto note = [&](const Operand& in, std::uint32_t at) {
      const auto by = writer.find(in.offset);
      if (in.kind != Operand::Kind::kArena || by == writer.end()) return;
      ++reads[by->second];
      reader[by->second] = at;
    };
    for (std::uint32_t at = 0; at < plan_.steps.size(); ++at) {
      const Step& step = plan_.steps[at];
      for (const Operand& in : step.inputs) note(in, at);
      for (const Operand& in : step.fused_inputs) note(in, at);
      for (const Operand& out : step.outputs) writer[out.offset] = at;
    }
    for (const Operand& out : plan_.outputs) note(out, kNoStep);
    for (std::uint32_t at = 0; at < plan_.steps.size(); ++at) {
      if (reads[at] == 1 && reader[at] != kNoStep && direct_[at] &&
          takes_ops_of(plan_.steps[at], plan_.steps[reader[at]]))
        merged_into_[at] = reader[at];
    }
  }

  static bool takes_ops_of(const Step& conv, const Step& after) {
    const auto stored = [](const Operand& o) { return o.kind == Operand::Kind::kWeight; };
    const Operand& y = conv.outputs[0];
    if (after.inputs.empty() || after.inputs[0].shape != y.shape) return false;
    if (!std::ranges::all_of(conv.fused_inputs, stored)) return false;
    if (after.op.tag == OpTag::kBatchNorm) {
      return is_affine(after) && (after.fused.empty() || can_fuse(shapes_last(after))) &&
             ConvEpilogue(joined(conv, after), nullptr, static_cast<std::size_t>(y.shape[1]))
                 .has_kernels();
    }
    return !after.fused.empty() && transposes(after, true) && !is_trivial(y.shape) &&
           can_fuse(joined(conv, after));
  }

  /// The convolution with the BatchNorm behind it, or with the fused ops of the transpose to
  /// channels last behind it; shapes of the memory.
  static Step joined(const Step& conv, const Step& after) {
    const bool norm = after.op.tag == OpTag::kBatchNorm;
    Step whole = shapes_last(conv);
    const auto n_inputs = [&] { return static_cast<std::uint32_t>(whole.fused_inputs.size()); };
    auto result = static_cast<std::uint32_t>(conv.fused.size());
    if (norm) {
      FusedOp op{after.op, {{true, result++}}};
      for (std::size_t k = 1; k < after.inputs.size(); ++k) {
        op.inputs.push_back({false, n_inputs()});
        whole.fused_inputs.push_back(after.inputs[k]);
      }
      whole.fused.push_back(std::move(op));
    }
    const std::uint32_t first = n_inputs();
    for (const Operand& in : norm ? shapes_last(after).fused_inputs : after.fused_inputs)
      whole.fused_inputs.push_back(in);
    for (FusedOp op : after.fused) {
      for (FusedInput& in : op.inputs) in.index += in.is_result ? result : first;
      whole.fused.push_back(std::move(op));
    }
    return whole;
  }

  /// A convolution that waited for the step behind it.
  void finish_merged(const Step& after) {
    const bool norm = after.op.tag == OpTag::kBatchNorm;
    DraftStep d = *std::move(pending_[at_]);
    Step whole = joined(plan_.steps[d.laid.owner], after);
    whole.inputs = d.laid.step.inputs;
    const std::size_t stored = whole.fused_inputs.size() - after.fused_inputs.size();
    d.fused_inputs.assign(stored, kNoValue);
    for (std::size_t k = 0; k < after.fused_inputs.size(); ++k) {
      Operand& in = whole.fused_inputs[stored + k] = after.fused_inputs[k];
      d.fused_inputs.push_back(norm ? read_last(in, after.outputs[0].shape.rank())
                                    : read_plain(in));
    }
    d.laid.step = std::move(whole);
    d.laid.owner = at_;
    write(d, after.outputs, norm);
    drafts_.push_back(std::move(d));
  }

  Plan plan_;
  std::vector<bool> direct_;  // per step
  std::uint32_t at_ = 0;
  std::vector<LayoutValue> values_;
  std::vector<DraftStep> drafts_;
  std::map<std::uint64_t, std::uint32_t> at_offset_;  // value that lies there now
  std::map<std::uint32_t, std::uint32_t> tensors_;    // inputs of the plan with channels last
  std::vector<std::uint32_t> merged_into_;            // step of which a convolution becomes a part
  std::vector<std::optional<DraftStep>> pending_;     // per step that takes one
};

}  // namespace

LaidPlan lay_out(const Plan& plan) {
  std::vector<bool> direct;
  for (const Step& step : plan.steps) direct.push_back(is_direct(step));
  if (std::ranges::find(direct, true) != direct.end())
    return Layouts(plan, std::move(direct)).lay_out();
  LaidPlan laid{{}, plan.outputs, plan.arena_bytes};
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i)
    laid.steps.push_back({plan.steps[i], false, i});
  return laid;
}

}  // namespace cyb::cpu
