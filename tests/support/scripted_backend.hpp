// ScriptedBackend: runs no arithmetic. It keeps the token ids themselves in its KV pages and
// computes each logit row from the ids it reads back through the page table, so that paging, prefix
// reuse and copy on write are tested by value; and it fails where a test tells it to.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "backends/backend.hpp"

namespace cyb::test {

struct Script {
  /// Logits [V] after the history (all ids of the sequence so far). Default: a hash of the history.
  std::function<void(std::span<const std::int32_t> history, std::span<float> logits)> row;
  /// Before each run; an error ends the run.
  std::function<Result<void>(const StepParams& params)> before_run;
};

/// Logits that are 0 but for a large one at `answer[history.size() - n_prompt]`; past the end: the
/// last entry.
Script scripted_answer(std::size_t n_prompt, std::vector<std::int32_t> answer);

class ScriptedBackend final : public Backend {
 public:
  explicit ScriptedBackend(Script script = {});
  std::string_view name() const noexcept override { return "scripted"; }
  std::string description() const override { return "scripted"; }
  NumericMode numeric_mode() const noexcept override { return NumericMode::kExact; }
  DType default_kv_dtype() const noexcept override { return DType::kF32; }
  bool supports(const Op&, std::span<const TensorSpec>) const override { return true; }
  std::string layout_id() const override { return layout; }
  std::uint64_t packed_bytes(const WeightSource& source, WeightUse use) const override;
  Result<void> pack(const WeightSource& source, WeightUse use,
                    std::span<std::byte> out) const override;
  Result<std::unique_ptr<Weight>> load_weight(const WeightSource& source, WeightUse use,
                                              std::span<const std::byte> packed) override;
  Result<std::unique_ptr<KvStore>> alloc_kv(const KvLayout& layout, std::uint32_t n_pages) override;
  Result<std::unique_ptr<Executable>> compile(Plan plan) override;

  Script script;
  std::string layout = "scripted-1";
  bool packs = false;                    // matmul weights are "packed": their bytes, each inverted
  mutable std::atomic<int> n_packs = 0;  // calls of pack()
  std::atomic<int> n_packed_loads = 0;   // load_weight() with bytes given, all of them right
  std::vector<OpTag> compiled;           // the steps of the last plan
  std::vector<std::uint32_t> run_sizes;  // tokens of each run
  std::uint32_t n_copies = 0;            // copy_page() calls
};

}  // namespace cyb::test
