// GraphForward: runs the IR, one sequence at a time; the correctness reference beside the curated
// path.
#pragma once

#include <memory>
#include <vector>

#include "paths/forward.hpp"
#include "paths/graph/graph_program.hpp"

namespace cyb {

class GraphForward final : public Forward {
 public:
  GraphForward(GraphProgram program, WeightTable& weights, std::uint32_t max_positions,
               const ForwardOptions& options);

  Path path() const noexcept override { return Path::kGraph; }
  std::uint32_t max_tokens() const noexcept override { return max_tokens_; }
  std::uint32_t max_outputs() const noexcept override { return max_outputs_; }
  std::uint32_t vocab_size() const noexcept override { return program_.vocab_size(); }
  std::uint32_t max_positions() const noexcept override { return max_positions_; }
  const std::vector<KvLayerShape>& kv_layers() const noexcept override {
    return program_.kv_layers();
  }
  Result<void> run(const StepParams& params, std::stop_token stop) override;
  Result<std::span<const float>> logits() override { return std::span<const float>(logits_); }
  std::uint32_t n_fallback_steps() const noexcept override { return n_fallback_steps_; }
  std::uint64_t peak_bytes() const noexcept override { return peak_bytes_; }
  Result<std::uint64_t> most_bytes(const RunLimits& limits) override;

 private:
  /// A plan for runs of `n_new` rows after at most `max_past` positions.
  struct Kept {
    std::uint32_t n_new = 0, max_past = 0;
    std::uint64_t used = 0;
    std::unique_ptr<Executable> executable;
  };
  Result<std::unique_ptr<Executable>> compile(std::uint32_t n_new, std::uint32_t max_past) const;
  std::uint32_t max_past_for(std::uint32_t n_past) const noexcept;
  std::uint64_t logits_bytes() const noexcept;
  Result<Executable*> executable_for(std::uint32_t n_new, std::uint32_t n_past);
  Result<void> run_sequence(const StepParams& params, const SequenceSpan& sequence,
                            const std::stop_token& stop);

  GraphProgram program_;
  WeightTable& weights_;
  std::uint32_t max_tokens_, max_outputs_, max_positions_;
  std::vector<Kept> kept_;
  std::uint64_t n_runs_ = 0;
  std::vector<float> logits_;  // [R, V]
  std::uint32_t n_fallback_steps_ = 0;
  std::uint64_t peak_bytes_ = 0;
};

}  // namespace cyb
