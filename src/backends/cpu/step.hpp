// CpuStep: one step of a plan with everything chosen. Its work is cut into as many shares as the
// pool has threads, and into phases that follow one another; all shares of a phase are done before
// the next begins. Steps never allocate and never fail while they run.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "backends/backend.hpp"
#include "backends/cpu/cpu_weight.hpp"
#include "backends/cpu/kernels/table.hpp"
#include "backends/cpu/kv_store.hpp"
#include "base/thread_pool.hpp"
#include "ops/conv/geometry.hpp"

namespace cyb::cpu {

/// Frequencies of one rotary embedding; tables are made once per run for its positions.
struct RopeConfig {
  std::vector<double> frequencies;            // [R/2]
  std::vector<double> long_frequencies = {};  // [R/2] where T > original; empty: none
  std::uint32_t original = 0;
  double dynamic_factor = 0, base = 0;  // above 0: RopeRule::kDynamic
  bool operator==(const RopeConfig&) const = default;
};

/// cos and sin of all rows of the run, [N, R/2] each.
struct RopeTable {
  float* cos;
  float* sin;
  std::size_t n;  // R/2
};

/// What a step needs of the run. A `thread` is a share of it, whoever does it. Borrowed; constant
/// during the run except for what the pointers lead to.
struct Run {
  const KernelTable* k = nullptr;
  ThreadPool* pool = nullptr;  // for steps of the reference, which run between regions
  unsigned n_threads = 1;
  std::byte* arena = nullptr;
  StepParams params;
  CpuKvStore* kv = nullptr;
  std::byte* shared = nullptr;                 // scratch of the step that runs, seen by all shares
  std::byte* const* thread_scratch = nullptr;  // [n_threads], of a share in a phase
  std::byte* partials = nullptr;               // split attention
  const RopeTable* ropes = nullptr;
  std::atomic<std::uint32_t>* counters = nullptr;  // zero at the start of the run
  std::int32_t length = 0;                         // of the one sequence

  const std::byte* data(const Operand& operand) const noexcept;
  const float* f32(const Operand& operand) const noexcept {
    return reinterpret_cast<const float*>(data(operand));
  }
  float* out(const Operand& operand) const noexcept {
    return reinterpret_cast<float*>(arena + operand.offset);
  }
  /// Product of all dimensions but the last.
  std::size_t rows(const Operand& operand) const noexcept;
  std::size_t elements(const Operand& operand) const noexcept {
    return static_cast<std::size_t>(run_shape(operand, params).count());
  }
};

/// A contiguous share of n things.
struct Share {
  std::size_t begin, end;
  Share(std::size_t n, unsigned thread, unsigned n_threads)
      : begin(n * thread / n_threads), end(n * (thread + 1) / n_threads) {}
};

/// A share of n values of elementwise work: it starts at a multiple of 256.
Share grains(std::size_t n, const Run& run, unsigned thread) noexcept;

/// What steps ask for while a plan is compiled.
struct Build {
  const KernelTable* k;
  unsigned n_threads;
  bool exact;
  std::uint32_t max_tokens;
  std::size_t thread_bytes = 0, shared_bytes = 0, partial_bytes_per_chunk = 0;
  std::size_t n_counters = 0;
  std::vector<RopeConfig> ropes = {};
  std::uint64_t kept_bytes = 0;  // rearranged weights that steps own
  std::size_t counter() { return n_counters++; }
  /// A counter that stays 0 in a run without fault; what it holds else is 1 + the row to blame.
  struct Fault {
    std::size_t counter;
    std::string op, what, label;
  };
  std::vector<Fault> faults = {};
  void want_thread(std::size_t bytes) {
    thread_bytes = bytes > thread_bytes ? bytes : thread_bytes;
  }
  void want_shared(std::size_t bytes) {
    shared_bytes = bytes > shared_bytes ? bytes : shared_bytes;
  }
  std::size_t rope(RopeConfig config);
  const Plan* plan = nullptr;
  /// False: no step and no output of the plan looks at what this one writes.
  bool is_read(const Operand& output) const noexcept;
};

class CpuStep {
 public:
  virtual ~CpuStep() = default;
  /// At least 1; the same for all threads of a run.
  virtual unsigned phases(const Run&) const noexcept { return 1; }
  virtual void run_phase(const Run& run, unsigned thread, unsigned phase) const noexcept = 0;
};

/// A step of one phase.
class PlainStep : public CpuStep {
 public:
  virtual void run(const Run& run, unsigned thread) const noexcept = 0;
  void run_phase(const Run& r, unsigned thread, unsigned) const noexcept final { run(r, thread); }
};

using StepPtr = std::unique_ptr<CpuStep>;

// Each maker takes ops of its kind; `supports` of the backend has already said yes.
Result<StepPtr> make_linear_step(const Step& step, Build& build);
Result<StepPtr> make_attention_step(const Step& step, Build& build);
Result<StepPtr> make_row_step(const Step& step, Build& build);
Result<StepPtr> make_graph_step(const Step& step, Build& build);
Result<StepPtr> make_layout_step(const Step& step);
/// In row-major order; null where a group has more than one channel in or out.
Result<StepPtr> make_conv_step(const Step& step, Build& build);
Result<StepPtr> make_product_step(const Step& step, Build& build);
/// Null where A or B is not packed.
Result<StepPtr> make_lora_step(const Step& step, Build& build);

/// n values, or one that stands for n.
struct Side {
  const float* data;
  bool one;
};
/// y = a op b, n values; `op` is Add, Sub, Mul or Div.
void arithmetic(const KernelTable& k, OpTag op, Side a, Side b, std::size_t n, float* y) noexcept;

/// Own kernel for the op on these operands.
bool has_kernel(const Op& op, std::span<const TensorSpec> inputs);

constexpr std::size_t round_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

/// Cuts scratch memory into arrays that begin at cache lines; without memory (null) it only counts.
class Carver {
 public:
  explicit Carver(std::byte* base) noexcept : base_(base) {}
  template <class T>
  T* take(std::size_t count) noexcept {
    std::byte* const here = base_ == nullptr ? nullptr : base_ + bytes_;
    bytes_ += round_up(count * sizeof(T), 64);
    return reinterpret_cast<T*>(here);
  }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* base_;
  std::size_t bytes_ = 0;
};
inline const CpuWeight* cpu_weight(const Operand& operand) {
  return static_cast<const CpuWeight*>(operand.weight);
}

}  // namespace cyb::cpu
