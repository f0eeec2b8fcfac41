// Formulas that are one kernel: x sigmoid(x) is Silu, x (1 + erf(x / sqrt(2))) / 2 is Gelu,
// x clip(x + 3, 0, 6) / 6 is HardSwish.
#include <algorithm>
#include <cmath>
#include <optional>

#include "backends/cpu/fused.hpp"
#include "ops/activation/gelu.hpp"

namespace cyb::cpu {
namespace {

class Patterns {
 public:
  explicit Patterns(Step& step) : step_(step) {}

  void apply() {
    for (std::size_t i = 0; i < step_.fused.size(); ++i) {
      if (step_.fused[i].op.tag == OpTag::kSigmoid) join_silu(i);
      if (step_.fused[i].op.tag == OpTag::kErf) join_gelu(i);
      if (step_.fused[i].op.tag == OpTag::kClip) join_hard_swish(i);
    }
    drop_unread();
  }

 private:
  /// Result of fused op i.
  static std::uint32_t result(std::size_t i) { return static_cast<std::uint32_t>(i + 1); }

  bool reads(std::size_t i, std::uint32_t result) const {
    return std::ranges::any_of(step_.fused[i].inputs, [&](const FusedInput& in) {
      return in.is_result && in.index == result;
    });
  }

  /// The one fused op that reads what fused op i gives.
  std::optional<std::size_t> only_reader(std::size_t i) const {
    std::optional<std::size_t> found;
    for (std::size_t r = i + 1; r < step_.fused.size(); ++r) {
      if (!reads(r, result(i))) continue;
      if (found) return std::nullopt;
      found = r;
    }
    return found;
  }

  bool is(std::size_t i, OpTag tag) const { return step_.fused[i].op.tag == tag; }

  /// The input beside `known`, where fused op i has two.
  std::optional<FusedInput> other(std::size_t i, std::uint32_t known) const {
    const auto& in = step_.fused[i].inputs;
    if (in.size() != 2) return std::nullopt;
    if (in[0].is_result && in[0].index == known) return in[1];
    if (in[1].is_result && in[1].index == known) return in[0];
    return std::nullopt;
  }

  /// A stored operand of one value.
  std::optional<float> value(const FusedInput& in) const {
    if (in.is_result) return std::nullopt;
    const Operand& operand = step_.fused_inputs[in.index];
    if (operand.kind != Operand::Kind::kWeight || operand.shape.count() != 1) return std::nullopt;
    const float* data = cpu_weight(operand)->vector();
    return data == nullptr ? std::nullopt : std::optional(*data);
  }

  bool is_about(const std::optional<FusedInput>& in, double want) const {
    const auto got = in ? value(*in) : std::nullopt;
    return got && std::fabs(static_cast<double>(*got) - want) < 1e-6;
  }

  void replace(std::size_t i, Op op, std::uint32_t x) {
    step_.fused[i].op = std::move(op);
    step_.fused[i].inputs = {{true, x}};
  }

  void join_silu(std::size_t i) {
    const FusedInput x = step_.fused[i].inputs[0];
    const auto mul = only_reader(i);
    if (!x.is_result || !mul || !is(*mul, OpTag::kMul)) return;
    const auto beside = other(*mul, result(i));
    if (beside && beside->is_result && beside->index == x.index)
      replace(*mul, {OpTag::kSilu, {}}, x.index);
  }

  /// Fused op i is Erf: of x / sqrt(2)?
  std::optional<std::uint32_t> scaled(std::size_t i) const {
    const FusedInput in = step_.fused[i].inputs[0];
    if (!in.is_result || in.index == 0) return std::nullopt;
    const std::size_t at = in.index - 1;
    for (const FusedInput& x : step_.fused[at].inputs) {
      if (!x.is_result) continue;
      const auto by = other(at, x.index);
      const bool divided = is(at, OpTag::kDiv) && step_.fused[at].inputs[0].is_result &&
                           is_about(by, std::sqrt(2.0));
      if (divided || (is(at, OpTag::kMul) && is_about(by, std::sqrt(0.5)))) return x.index;
    }
    return std::nullopt;
  }

  bool is_half_of(const FusedInput& in, std::uint32_t x) const {
    if (!in.is_result || in.index == 0) return false;
    const std::size_t at = in.index - 1;
    return is(at, OpTag::kMul) && is_about(other(at, x), 0.5);
  }

  void join_gelu(std::size_t i) {
    const auto x = scaled(i);
    const auto add = only_reader(i);
    if (!x || !add || !is(*add, OpTag::kAdd) || !is_about(other(*add, result(i)), 1.0)) return;
    const auto mul = only_reader(*add);
    const auto beside = mul ? other(*mul, result(*add)) : std::nullopt;
    if (!beside || !is(*mul, OpTag::kMul)) return;
    const Op gelu{OpTag::kGelu, {{static_cast<std::int64_t>(GeluMode::kErf)}}};
    if (is_half_of(*beside, *x)) return replace(*mul, gelu, *x);
    const auto half = only_reader(*mul);
    const bool whole = beside->is_result && beside->index == *x;
    if (whole && half && is(*half, OpTag::kMul) && is_about(other(*half, result(*mul)), 0.5))
      replace(*half, gelu, *x);
  }

  /// Fused op i is Clip: of x + 3 to 0..6, times x, over 6?
  void join_hard_swish(std::size_t i) {
    const auto& in = step_.fused[i].inputs;
    if (in.size() != 3 || !is_about(in[1], 0.0) || !is_about(in[2], 6.0)) return;
    if (!in[0].is_result || in[0].index == 0) return;
    const std::size_t at = in[0].index - 1;
    if (!is(at, OpTag::kAdd)) return;
    const auto mul = only_reader(i);
    const auto x = mul && is(*mul, OpTag::kMul) ? other(*mul, result(i)) : std::nullopt;
    if (!x || !x->is_result || !is_about(other(at, x->index), 3.0)) return;
    const auto last = only_reader(*mul);
    if (!last) return;
    const auto by = other(*last, result(*mul));
    const bool divided = is(*last, OpTag::kDiv) && step_.fused[*last].inputs[0].is_result;
    if ((divided && is_about(by, 6.0)) || (is(*last, OpTag::kMul) && is_about(by, 1.0 / 6.0)))
      replace(*last, {OpTag::kHardSwish, {}}, x->index);
  }

  void drop_unread() {
    for (std::size_t i = step_.fused.size() - 1; i-- > 0;) {
      bool read = false;
      for (std::size_t r = i + 1; r < step_.fused.size(); ++r) read = read || reads(r, result(i));
      if (read) continue;
      step_.fused.erase(step_.fused.begin() + static_cast<std::ptrdiff_t>(i));
      for (FusedOp& fused : step_.fused) {
        for (FusedInput& in : fused.inputs) {
          if (in.is_result && in.index > result(i)) --in.index;
        }
      }
    }
  }

  Step& step_;
};

}  // namespace

void join_patterns(Step& step) {
  if (!step.fused.empty()) Patterns(step).apply();
}

}  // namespace cyb::cpu
