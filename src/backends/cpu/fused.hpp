// FusedOps: elementwise ops on a step's result, block by block while a block is in the cache. Where
// the step's own op is elementwise too, it is the first of them.
#pragma once

#include <vector>

#include "backends/cpu/step.hpp"

namespace cyb::cpu {

/// All fused ops have kernels here: f32, and operands that repeat in one run of dimensions.
bool can_fuse(const Step& step);

/// Fused ops that together are a kernel become one (class F).
void join_patterns(Step& step);

class FusedOps {
 public:
  static constexpr std::size_t kBlock = 1024;  // values

  /// The step's own op is one that this computes; it needs no step then.
  static bool takes_own_op(const Step& step);
  explicit FusedOps(const Step& step);

  std::size_t scratch_bytes() const noexcept { return n_blocks_ * kBlock * sizeof(float); }
  /// Values [first, first + n) of the result, in place; n <= kBlock. `scratch`: scratch_bytes().
  void apply(const Run& run, std::byte* scratch, std::size_t first, std::size_t n) const noexcept;
  const Operand& output() const noexcept { return out_; }

 private:
  struct Source {
    enum class Kind : std::uint8_t { kAbsent, kSlot, kFull, kOne, kCycle };
    Kind kind = Kind::kAbsent;
    std::uint32_t slot = 0;
    Operand operand;
    std::size_t inner = 1, count = 1;  // kCycle: value i / inner % count for element i
  };
  struct Work {
    Op op;
    std::vector<Source> inputs;
    std::uint32_t slot = 0;  // of the result
  };
  /// Where a block is worked on.
  struct Place {
    const Run& run;
    float* base;     // slot 0
    float* scratch;  // the other slots, then room for operands
    std::size_t first, n;
    float* slot(std::uint32_t i) const noexcept {
      return i == 0 ? base : scratch + (i - 1) * kBlock;
    }
  };

  Source source_of(const Operand& operand, const Op& op) const;
  Side side(const Place& place, const Source& source, float* room) const noexcept;
  void work(const Place& place, const Work& work) const noexcept;
  static void by_reference(const Op& op, std::span<const Side> sides, std::size_t n,
                           float* y) noexcept;

  static void sines(const KernelTable& k, const Op& op, const float* x, std::size_t n,
                    float* y) noexcept;

  std::vector<Work> works_;
  Operand out_;
  std::size_t n_slots_ = 1, n_blocks_ = 0;
};

Result<StepPtr> make_fused_step(const Step& step, Build& build);

}  // namespace cyb::cpu
