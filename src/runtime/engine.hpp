// Engine: one model on one path and one backend, with its weights, KV pages, tokenizer and
// defaults. Shared by any number of sessions; one forward runs at a time, and what a sequence
// computes never depends on what runs beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.hpp"
#include "base/result.hpp"
#include "model/model.hpp"
#include "paths/forward.hpp"
#include "paths/length_rule.hpp"
#include "paths/lora.hpp"
#include "runtime/memory.hpp"
#include "runtime/sequence.hpp"

namespace cyb {

class ChatTemplate;
class Tokenizer;
struct SamplingDefaults;

/// Progress of the one slow part of a first load: repacking weights for the backend.
struct LoadProgress {
  std::uint64_t bytes_done = 0, bytes_total = 0;
  std::string_view what;
};

struct EngineOptions {
  std::string path = "auto";     // auto, curated, graph, nox
  std::string backend = "auto";  // auto, reference, cpu, ...
  std::string isa{};             // "": best of the machine
  unsigned n_threads = 0;        // 0: one per physical core
  bool exact = false;            // f32 activations and KV
  bool allow_fallback = true;
  bool fuse = true;              // false: a curated plan of plain ops and attention; a graph of
                                 // tensors where every node is a step of its own
  std::uint32_t ctx_tokens = 0;  // 0: min(trained context, 32768)
  std::uint32_t chunk_tokens =
      512;  // rows of one run: prefill chunk, or all sequences of a step together
  std::uint32_t max_outputs = 8;    // logit rows of one run; memory grows with it
  std::uint32_t max_sequences = 1;  // KV memory is for this many full contexts
  bool pack_cache = true;           // keep packed weights in the cache folder
  bool verify = false;              // check hashes of cached packed weights
  std::function<void(const LoadProgress&)> progress{};  // may be empty
  std::stop_token stop{};                               // ends a load with Cancelled
  std::optional<DType> kv_dtype{};  // f32, f16, q8, q4; else f32 with `exact`, else the backend's
  bool rings = true;  // false: layers with a window keep the K and V of all positions too
  // LoRA adapters, read for this model; those of one weight are applied in this order.
  std::vector<LoraUse> adapters{};
};

struct LoadReport {
  double load_ms = 0;
  double pack_ms = 0;                  // part of load_ms spent repacking weights
  std::uint64_t mapped_bytes = 0;      // model file
  std::uint64_t packed_bytes = 0;      // mapped from the cache folder
  std::uint64_t own_weight_bytes = 0;  // weights beside the mappings
  std::uint64_t kv_bytes = 0;          // all pages; resident only as they are used
  std::uint64_t text_bytes = 0;        // vocabulary, tokenizer, chat template
  std::uint64_t process_bytes = 0;     // resident before weights are bound, text_bytes apart
  std::vector<std::string> notes;      // D8 and the like: shown to the user as warnings
  std::vector<std::string> adapters;   // one line for each: what was applied with which weight
};

/// What a run with the same options takes at most, found without loading.
struct MemoryPlan {
  Path path = Path::kCurated;
  std::string backend;
  std::uint32_t ctx_tokens = 0, n_sequences = 1;
  DType kv_dtype = DType::kF16;
  MemoryPools bytes;
  std::vector<std::string> notes;  // as LoadReport::notes
};

/// Receives rows [R, V] of step `index` after the run; the span is valid only inside the call.
using LogitsSink = std::function<void(std::size_t index, std::span<const float> rows)>;

class Engine : public std::enable_shared_from_this<Engine> {
 public:
  /// Errors: D1..D7, BackendInit, InvalidConfig (context), OutOfMemory, F codes of binding, G
  /// codes, L codes of adapters, Cancelled.
  static Result<std::shared_ptr<Engine>> load(std::shared_ptr<const Model> model,
                                              const EngineOptions& options = {});
  /// The same on a given backend; options.backend, isa, n_threads and allow_fallback are not looked
  /// at.
  static Result<std::shared_ptr<Engine>> load(std::shared_ptr<const Model> model,
                                              std::shared_ptr<Backend> backend,
                                              const EngineOptions& options = {});
  /// The memory of an engine loaded with these options when every sequence has filled its context
  /// and every token of the vocabulary has been read: the load run dry. No weight is read, packed
  /// or written. Errors: as load(), but OutOfMemory for want of memory in the machine.
  static Result<MemoryPlan> plan(std::shared_ptr<const Model> model,
                                 const EngineOptions& options = {});
  /// The same on a given backend, as load().
  static Result<MemoryPlan> plan(std::shared_ptr<const Model> model,
                                 std::shared_ptr<Backend> backend, const EngineOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  const Model& model() const noexcept { return *model_; }
  const std::shared_ptr<const Model>& shared_model() const noexcept { return model_; }
  const Backend& backend() const noexcept { return *backend_; }
  Path path() const noexcept { return forward_->path(); }
  const LoadReport& report() const noexcept { return report_; }
  /// Peak bytes by pool so far.
  MemoryPools memory() const;
  /// Text of model_id ("blake3:..."), found once.
  const std::string& model_id() const noexcept { return model_id_; }
  /// What decides the bits of a run besides the model: "curated, cpu (AVX2), kv f16", and for each
  /// adapter its weight and the hash of its bytes. Engines of the same model and numerics may read
  /// each other's KV pages.
  const std::string& numerics() const noexcept { return numerics_; }

  std::uint32_t vocab_size() const noexcept { return forward_->vocab_size(); }  // V
  /// min(trained context, capacity): positions a sequence may hold.
  std::uint32_t ctx_tokens() const noexcept { return ctx_tokens_; }
  /// How rope depends on the length of a sequence.
  const LengthRule& length_rule() const noexcept { return length_rule_; }
  std::uint32_t trained_tokens() const noexcept { return forward_->max_positions(); }
  /// Rows and logit rows of one run.
  std::uint32_t chunk_tokens() const noexcept { return forward_->max_tokens(); }
  std::uint32_t max_outputs() const noexcept { return forward_->max_outputs(); }
  std::uint32_t n_fallback_steps() const noexcept { return forward_->n_fallback_steps(); }

  /// Null for a model of ids (tokenizer type none).
  const Tokenizer* tokenizer() const noexcept { return tokenizer_.get(); }
  /// The tokenizer, or Tokenizer error "this model has no tokenizer: it takes and gives token ids".
  Result<const Tokenizer*> need_tokenizer() const;
  /// Null where the model has no chat part, or one that cannot be used: chat_error() says why.
  const ChatTemplate* chat_template() const noexcept { return chat_.get(); }
  /// `no_chat_template`, or the template's own error with line and column.
  Error chat_error() const;
  /// [sampling] of the config, checked.
  const SamplingDefaults& sampling_defaults() const noexcept { return *sampling_; }
  /// eos_token_ids of the config, ascending.
  std::span<const std::int32_t> stop_ids() const noexcept { return stop_ids_; }
  bool is_stop_id(std::int32_t id) const noexcept;
  /// Stop strings of the chat part that are text; those that are one control token are among
  /// stop_ids().
  const std::vector<std::string>& stop_strings() const noexcept { return stop_strings_; }
  /// Errors: InvalidInput for an id outside [0, V).
  Result<void> check_ids(std::span<const std::int32_t> ids) const;

  /// An empty sequence with this engine's limit.
  Sequence new_sequence() const;
  const KvPool& kv_pool() const noexcept { return *kv_; }
  DType kv_dtype() const noexcept { return kv_->store().layout().dtype; }

  /// One ragged forward that joins all steps: each sequence's ids go after its position. After
  /// success every position has advanced and the sink has had the rows of each step that asked for
  /// some, in step order. On error or cancellation no sequence has changed. Errors:
  /// ContextOverflow, InvalidInput (no step, no ids, an id outside [0, V), too many rows, a
  /// sequence twice), OutOfMemory{"kv cache"}, NonFinite (logits), Cancelled.
  Result<void> step(std::span<const SequenceStep> steps, const LogitsSink& sink,
                    std::stop_token stop = {});

 private:
  Engine() = default;
  struct Loader;
  Result<void> check_steps(std::span<const SequenceStep> steps) const;
  static std::uint32_t tokens_of(const SequenceStep& step) noexcept;
  Result<void> check_frequency_set(const SequenceStep& step) const;
  void fill_params(std::span<const SequenceStep> steps);
  Result<std::span<const float>> run(std::stop_token stop);
  void deliver(std::span<const SequenceStep> steps, std::span<const float> logits,
               const LogitsSink& sink) const;

  std::shared_ptr<const Model> model_;
  std::shared_ptr<Backend> backend_;
  std::unique_ptr<WeightTable> weights_;
  std::shared_ptr<KvPool> kv_;
  std::unique_ptr<Forward> forward_;  // destroyed before weights, pages and backend
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<ChatTemplate> chat_;
  std::unique_ptr<SamplingDefaults> sampling_;
  std::unique_ptr<Error> chat_error_;
  LengthRule length_rule_;
  std::vector<std::int32_t> stop_ids_;
  std::vector<std::string> stop_strings_;
  std::string model_id_, numerics_;
  std::uint32_t ctx_tokens_ = 0;
  LoadReport report_;

  std::mutex run_mutex_;  // guards what follows and the forward
  std::vector<std::int32_t> ids_, positions_, output_rows_;
  std::vector<SequenceSpan> spans_;
};

}  // namespace cyb
