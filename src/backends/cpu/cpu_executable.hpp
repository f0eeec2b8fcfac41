// CpuExecutable: the steps of a plan, phase by phase, as rounds of the thread pool. Steps of the
// reference run between regions of them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backends/cpu/fallback_step.hpp"
#include "backends/cpu/step.hpp"

namespace cyb::cpu {

struct ExecutableContext {
  const KernelTable* kernels;
  ThreadPool* pool;
  bool exact;
  bool allow_fallback;
};

class CpuExecutable final : public Executable {
 public:
  static Result<std::unique_ptr<Executable>> compile(Plan plan, const ExecutableContext& context);

  Result<void> submit(const StepParams& params) override;
  Result<void> sync(std::stop_token stop) override;
  Result<TensorView> output_tensor(std::size_t i) override;
  std::uint32_t n_fallback_steps() const noexcept override { return n_fallback_; }
  bool is_fallback(std::size_t step) const noexcept override { return fallback_[step]; }
  Result<void> reserve(const RunLimits& limits) override;
  std::uint64_t own_bytes() const noexcept override {
    std::uint64_t tables = kept_bytes_;
    for (const Buffer& memory : rope_memory_) tables += memory.size();
    return arena_.size() + shared_.size() + thread_memory_.size() + partials_.size() + tables;
  }

 private:
  enum class Stage : std::uint8_t { kStart, kRopes, kSteps };
  /// Rounds of the pool for steps one after the other: a round is a phase of a step. The tables of
  /// the rotary embeddings come before the first step of a run.
  struct Region {
    CpuExecutable& of;
    const std::stop_token& stop;
    std::size_t end;
    Stage stage;
    std::size_t step;
    unsigned phase = 0, phases = 0;
    bool stopped = false;
    bool next() noexcept;
    void share(unsigned thread) noexcept;
  };

  CpuExecutable(Plan plan, const ExecutableContext& context)
      : plan_(std::move(plan)), context_(context) {}
  Result<void> build_steps();
  Result<void> note_step(const Step& step, StepPtr kernel);
  void note_inputs(const Step& step);
  Result<void> allocate(const Build& build);
  Result<void> check(const StepParams& params) const;
  Result<void> check_sequences(const StepParams& params) const;
  void copy_params(const StepParams& params);
  Result<void> want_partials(const StepParams& params);
  void fill_ropes(unsigned thread) noexcept;
  bool walk(std::size_t begin, std::size_t end, const std::stop_token& stop) noexcept;
  std::uint32_t tokens_of(std::size_t row) const noexcept;
  double dynamic_base(const RopeConfig& rope, std::size_t row) const noexcept;
  Result<void> run_all(const std::stop_token& stop);
  /// Times of a measured run: steps_[i] begins, and ends.
  void note_begin(std::size_t i, std::int64_t ns) const noexcept;
  void note_end(std::size_t i, std::int64_t ns) const noexcept;

  Plan plan_;
  ExecutableContext context_;
  std::vector<StepPtr> steps_;  // null: fallbacks_ has it
  std::vector<std::optional<FallbackStep>> fallbacks_;
  std::vector<std::uint32_t> owners_;  // step of the plan that steps_[i] is a part of
  std::vector<bool> fallback_;         // per step of the plan
  std::uint32_t owner_ = 0;            // of the step that is made
  std::uint32_t n_fallback_ = 0;
  bool uses_kv_ = false;
  std::vector<KvLayerShape> kv_layers_;  // as the steps use them; head_dim 0: layer unused
  std::vector<std::int64_t> id_limits_;  // V of every table that ids are looked up in

  Buffer arena_, shared_, thread_memory_, partials_;
  std::vector<std::byte*> thread_scratch_;
  std::size_t partial_bytes_per_chunk_ = 0;
  std::uint64_t kept_bytes_ = 0;
  std::vector<RopeConfig> ropes_;
  std::vector<Buffer> rope_memory_;
  std::vector<RopeTable> rope_tables_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> counters_;
  std::size_t n_counters_ = 0;
  std::vector<Build::Fault> faults_;

  std::vector<std::int32_t> ids_, positions_, output_rows_;
  std::vector<SequenceSpan> sequences_;
  std::vector<std::uint32_t> pages_;
  std::vector<TensorView> tensors_;
  Run run_;
  bool pending_ = false, ready_ = false;
};

}  // namespace cyb::cpu
