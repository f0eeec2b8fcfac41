// Forward: one model on one path and one backend, ready to run ragged steps. The curated path
// compiles one plan; the graph path walks the IR. Callers see no difference: same StepParams, same
// KV pages, same logits contract.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "backends/backend.hpp"
#include "base/result.hpp"
#include "paths/weight_table.hpp"

namespace cyb {

enum class Path : std::uint8_t { kCurated, kGraph, kNox };
std::string_view path_name(Path path) noexcept;

struct ForwardOptions {
  std::uint32_t max_tokens =
      512;  // rows of one run (the graph path may take fewer: see max_tokens())
  std::uint32_t max_outputs = 8;  // rows whose logits are wanted in one run
  bool fuse = true;  // false: the curated plan holds plain ops in place of blocks, but attention
};

class Forward {
 public:
  virtual ~Forward() = default;
  virtual Path path() const noexcept = 0;
  virtual std::uint32_t max_tokens() const noexcept = 0;
  virtual std::uint32_t max_outputs() const noexcept = 0;
  virtual std::uint32_t vocab_size() const noexcept = 0;     // V
  virtual std::uint32_t max_positions() const noexcept = 0;  // trained context
  /// Layer shapes of the KV pages this forward reads and writes.
  virtual const std::vector<KvLayerShape>& kv_layers() const noexcept = 0;
  /// One ragged step. On error or cancellation nothing the caller holds has advanced.
  virtual Result<void> run(const StepParams& params, std::stop_token stop) = 0;
  /// After run(): f32 [R, V] in the order of params.output_rows; valid until the next run.
  virtual Result<std::span<const float>> logits() = 0;
  virtual std::uint32_t n_fallback_steps() const noexcept = 0;
  /// Allocates what runs up to these limits need. Errors: OutOfMemory.
  virtual Result<void> reserve(const RunLimits& /*limits*/) { return {}; }
  /// Memory of its own at most so far, weights and KV pages apart.
  virtual std::uint64_t peak_bytes() const noexcept { return 0; }
  /// What peak_bytes() comes to when prompts of that length have been run, in chunks of
  /// max_tokens(). Errors: those of compiling plans.
  virtual Result<std::uint64_t> most_bytes(const RunLimits& /*limits*/) { return peak_bytes(); }
};

/// What a user asked for and what the model has decide the path (D1..D4, D7). `requested`: auto,
/// curated, graph, nox.
Result<Path> choose_path(const Model& model, std::string_view requested);

/// Builds the forward of a chosen path. With requested "auto" and a graph part, a curated bind
/// failure becomes D8: `warning` gets its text and the graph runs.
Result<std::unique_ptr<Forward>> make_forward(std::string_view requested, WeightTable& weights,
                                              const ForwardOptions& options, std::string& warning);

/// The graph part: stored, else recorded from the family's body. Errors: D3.
Result<Graph> model_graph(const Model& model);

/// Every (tensor, use) that the curated plan of this model will ask for, in order: what a pack
/// cache must hold.
struct WeightNeed {
  std::string name;
  WeightUse use;
};
Result<std::vector<WeightNeed>> weight_needs(const Model& model);

}  // namespace cyb
