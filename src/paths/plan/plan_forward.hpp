// PlanForward: the curated path: one plan, compiled once, for every run up to its maxima.
#pragma once

#include <memory>
#include <vector>

#include "paths/family.hpp"
#include "paths/forward.hpp"

namespace cyb {

class PlanForward final : public Forward {
 public:
  static Result<std::unique_ptr<PlanForward>> build(const FamilyModel& family, WeightTable& weights,
                                                    const ForwardOptions& options);

  Path path() const noexcept override { return Path::kCurated; }
  std::uint32_t max_tokens() const noexcept override { return options_.max_tokens; }
  std::uint32_t max_outputs() const noexcept override { return options_.max_outputs; }
  std::uint32_t vocab_size() const noexcept override { return vocab_size_; }
  std::uint32_t max_positions() const noexcept override { return max_positions_; }
  const std::vector<KvLayerShape>& kv_layers() const noexcept override { return kv_layers_; }
  Result<void> run(const StepParams& params, std::stop_token stop) override;
  Result<std::span<const float>> logits() override { return executable_->output(logits_index_); }
  std::uint32_t n_fallback_steps() const noexcept override {
    return executable_->n_fallback_steps();
  }
  Result<void> reserve(const RunLimits& limits) override { return executable_->reserve(limits); }
  std::uint64_t peak_bytes() const noexcept override { return executable_->own_bytes(); }
  Result<std::uint64_t> most_bytes(const RunLimits& limits) override {
    return executable_->most_bytes(limits);
  }

 private:
  PlanForward() = default;
  ForwardOptions options_;
  std::uint32_t vocab_size_ = 0, max_positions_ = 0;
  std::vector<KvLayerShape> kv_layers_;
  std::unique_ptr<Executable> executable_;
  std::size_t logits_index_ = 0;
};

}  // namespace cyb
