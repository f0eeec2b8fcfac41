// Loading an engine: backend, path, packed weights, forward, KV pages, text. Each step's failure
// names what could not be done.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.hpp"
#include "runtime/chat.hpp"
#include "runtime/context_limit.hpp"
#include "runtime/engine.hpp"
#include "runtime/held_model.hpp"
#include "runtime/memory.hpp"
#include "runtime/model_text.hpp"
#include "runtime/pack_cache.hpp"
#include "runtime/sampling.hpp"
#include "text/tokenizer.hpp"

namespace cyb {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kDefaultContext = 32768;
constexpr std::uint32_t kPageTokens = 16;
constexpr std::uint32_t kRollBack = 64;       // tokens that windows keep beside theirs
constexpr std::uint32_t kMaxRunSize = 65536;  // tokens, logit rows or sequences of one run

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// OutOfMemory before the system has to kill someone. Unknown memory limits nothing.
Result<void> check_memory(std::string_view backend, std::string what, std::uint64_t need) {
  const std::uint64_t room = usable_memory_bytes();
  if (room == 0 || need <= room) return {};
  return fail(out_of_memory(backend, need, room).in(std::move(what)));
}

}  // namespace

/// The steps, in order, on an engine that nobody else sees yet.
struct Engine::Loader {
  Engine& engine;
  const EngineOptions& options;
  bool dry = false;  // Engine::plan: nothing is read, packed or allocated that need not be
  LoadReport& report = engine.report_;
  std::shared_ptr<const PackCache> panels = nullptr;
  std::uint64_t n_pages = 0;

  Result<void> check_sizes() const;
  Result<void> load_text();
  Result<void> read_text();
  Result<void> load_chat();
  void collect_stops();
  Result<void> pack();
  Result<void> add_lora();
  Result<void> build_forward();
  Result<void> set_context();
  Result<KvLayout> kv_layout() const;
  Result<void> allocate_kv();
  RunLimits limits() const noexcept {
    return {static_cast<std::uint32_t>(std::min<std::uint64_t>(n_pages, UINT32_MAX)),
            engine.ctx_tokens_};
  }
  Result<MemoryPlan> memory_plan() const;
  std::string describe_numerics() const;
  Result<void> run();
};

Result<void> Engine::Loader::check_sizes() const {
  const std::pair<const char*, std::uint32_t> sizes[] = {{"chunk_tokens", options.chunk_tokens},
                                                         {"max_outputs", options.max_outputs},
                                                         {"max_sequences", options.max_sequences}};
  for (const auto& [name, size] : sizes) {
    if (size > kMaxRunSize) {
      return fail(invalid_config(
          name, std::to_string(size) + " is more than " + std::to_string(kMaxRunSize)));
    }
  }
  return {};
}

Result<void> Engine::Loader::load_text() {
  report.process_bytes = resident_bytes();
  const std::uint64_t before = allocated_bytes();
  CYB_TRY(read_text());
  const std::uint64_t after = allocated_bytes();
  report.text_bytes = after > before ? after - before : 0;
  // The program's code, the file's text and what the allocator keeps belong to the process.
  const std::uint64_t resident = resident_bytes();
  if (resident > report.text_bytes)
    report.process_bytes = std::max(report.process_bytes, resident - report.text_bytes);
  report.process_bytes += unread_code_bytes();
  return {};
}

Result<void> Engine::Loader::read_text() {
  CYB_ASSIGN(SamplingDefaults sampling, read_sampling(engine.model_->config()));
  engine.sampling_ = std::make_unique<SamplingDefaults>(sampling);
  CYB_ASSIGN(TokenizerParts parts, tokenizer_parts(*engine.model_));
  engine.stop_ids_ = parts.config.eos_token_ids;
  if (parts.config.type == TokenizerKind::kNone) return {};
  CYB_ASSIGN(engine.tokenizer_, Tokenizer::create(std::move(parts)));
  return load_chat();
}

/// A template that cannot be used is no reason not to load: completion works, chat says why not.
Result<void> Engine::Loader::load_chat() {
  const ConfigTable* chat = engine.model_->chat();
  if (chat == nullptr) return {};
  auto made = ChatTemplate::create(*chat, *engine.tokenizer_);
  if (!made) {
    engine.chat_error_ = std::make_unique<Error>(std::move(made).error());
    report.notes.push_back("chat is not available: " + engine.chat_error_->text());
    return {};
  }
  engine.chat_ = *std::move(made);
  engine.tokenizer_->guard_markers(engine.chat_->literals());
  return {};
}

void Engine::Loader::collect_stops() {
  if (engine.chat_ != nullptr) {
    for (const std::string& text : engine.chat_->stop_strings()) {
      const std::int32_t id = engine.tokenizer_->vocabulary().find(text);
      if (id >= 0 && engine.tokenizer_->is_control(id)) {
        engine.stop_ids_.push_back(id);
      } else {
        engine.stop_strings_.push_back(text);
      }
    }
  }
  std::ranges::sort(engine.stop_ids_);
  const auto twice = std::ranges::unique(engine.stop_ids_);
  engine.stop_ids_.erase(twice.begin(), twice.end());
}

Result<void> Engine::Loader::pack() {
  CYB_ASSIGN(const Path path, choose_path(*engine.model_, options.path));
  if (dry) panels = measured_panels();
  if (path != Path::kCurated || !options.pack_cache) return {};
  const auto needs = weight_needs(*engine.model_);
  if (!needs) return {};  // the forward reports it, or the graph runs (D8)
  const Clock::time_point start = Clock::now();
  PackCacheOptions pack;
  pack.verify = options.verify;
  pack.stop = options.stop;
  pack.measure = dry;
  if (options.progress) {
    pack.progress = [this](std::uint64_t done, std::uint64_t total, std::string_view name) {
      options.progress({done, total, name});
    };
  }
  CYB_ASSIGN(PackCacheResult packed,
             open_pack_cache(*engine.model_, *engine.backend_, *needs, pack));
  if (!dry) panels = std::move(packed.cache);
  if (!packed.note.empty()) report.notes.push_back(std::move(packed.note));
  if (packed.built) report.pack_ms = ms_since(start);
  if (dry ? packed.kept : panels != nullptr) report.packed_bytes = packed.bytes;
  if (panels != nullptr) return {};
  return check_memory(engine.backend_->name(), "packed weights", packed.bytes);
}

Result<void> Engine::Loader::add_lora() {
  for (const LoraUse& use : options.adapters) {
    if (use.adapter == nullptr) return fail(invalid_input("an adapter is null"));
  }
  CYB_ASSIGN(LoraTerms terms, add_adapters(options.adapters, *engine.weights_));
  engine.weights_->set_lora(std::move(terms));
  for (const LoraUse& use : options.adapters) {
    report.adapters.push_back(fmt::format("adapter {} ({}): {}, weight {}", use.adapter->path,
                                          use.adapter->format, lora_summary(*use.adapter),
                                          use.weight));
    log_info(report.adapters.back());
  }
  return {};
}

Result<void> Engine::Loader::build_forward() {
  engine.weights_ = std::make_unique<WeightTable>(engine.model_, engine.backend_, panels);
  CYB_TRY(add_lora());
  ForwardOptions forward;
  forward.max_tokens = std::max({options.chunk_tokens, options.max_sequences, std::uint32_t{1}});
  forward.max_outputs = std::max({options.max_outputs, options.max_sequences, std::uint32_t{1}});
  forward.max_outputs = std::min(forward.max_outputs, forward.max_tokens);
  forward.fuse = options.fuse;
  std::string warning;
  CYB_ASSIGN(engine.forward_, make_forward(options.path, *engine.weights_, forward, warning));
  if (!warning.empty()) report.notes.push_back(std::move(warning));
  report.own_weight_bytes = engine.weights_->own_bytes();
  const std::int32_t n_texts = engine.tokenizer_ ? engine.tokenizer_->vocab_size() : 0;
  if (n_texts > static_cast<std::int32_t>(engine.forward_->vocab_size())) {
    return fail(invalid_config("tokenizer", std::to_string(n_texts) +
                                                " tokens, but the model has rows for " +
                                                std::to_string(engine.forward_->vocab_size())));
  }
  return {};
}

Result<void> Engine::Loader::set_context() {
  const std::uint32_t trained = engine.forward_->max_positions();
  const ContextLimit limit = context_limit(engine.model_->config(), trained);
  if (options.ctx_tokens > limit.most) {
    return fail(invalid_config("ctx_tokens", std::to_string(options.ctx_tokens) +
                                                 " is more than the " + std::to_string(trained) +
                                                 " positions of the model: " + limit.reason));
  }
  if (options.ctx_tokens > trained) {
    report.notes.push_back("the context of " + std::to_string(options.ctx_tokens) +
                           " tokens is longer than the " + std::to_string(trained) +
                           " that the model states: " + limit.reason);
  }
  engine.ctx_tokens_ =
      options.ctx_tokens != 0 ? options.ctx_tokens : std::min(trained, kDefaultContext);
  return {};
}

Result<KvLayout> Engine::Loader::kv_layout() const {
  KvLayout layout;
  layout.layers = engine.forward_->kv_layers();
  layout.dtype =
      options.kv_dtype.value_or(options.exact ? DType::kF32 : engine.backend_->default_kv_dtype());
  const DType kinds[] = {DType::kF32, DType::kF16, DType::kQ8, DType::kQ4};
  if (std::ranges::find(kinds, layout.dtype) == std::end(kinds)) {
    return fail(invalid_config("kv_dtype", "\"" + std::string(dtype_name(layout.dtype)) +
                                               "\" is none of f32, f16, q8, q4"));
  }
  layout.page_tokens = kPageTokens;
  for (KvLayerShape& layer : layout.layers) {
    if (!options.rings) layer.window = 0;
  }
  return layout;
}

/// One page tells what all of them take.
Result<void> Engine::Loader::allocate_kv() {
  CYB_ASSIGN(const KvLayout layout, kv_layout());
  const std::uint32_t n_sequences = std::max(options.max_sequences, std::uint32_t{1});
  const std::uint64_t pages_each =
      (std::uint64_t{engine.ctx_tokens_} + kPageTokens - 1) / kPageTokens;
  n_pages = pages_each * n_sequences;
  const std::uint32_t roll_back = std::max(kRollBack, engine.forward_->max_outputs());
  CYB_ASSIGN(auto one, engine.backend_->alloc_kv(layout, 1));
  KvPool sample(engine.backend_, std::move(one), roll_back);
  const std::uint64_t windowed =
      sample.most_windowed(n_sequences, engine.forward_->max_tokens(), n_pages);
  report.kv_bytes = sample.bytes_of(n_pages, windowed);
  const std::string what = "KV cache of " + std::to_string(n_pages * kPageTokens) +
                           " tokens (a smaller context needs less)";
  if (!dry) CYB_TRY(check_memory(engine.backend_->name(), what, report.kv_bytes));
  if (!dry && n_pages > UINT32_MAX) return fail(invalid_config("ctx_tokens", "too many pages"));
  auto store = engine.backend_->alloc_kv(layout, dry ? 1 : static_cast<std::uint32_t>(n_pages));
  if (!store) return fail(std::move(store).error().in(what));
  engine.kv_ = std::make_shared<KvPool>(engine.backend_, *std::move(store), roll_back);
  return engine.forward_->reserve(limits());
}

/// The number of threads changes no bit.
std::string Engine::Loader::describe_numerics() const {
  std::string backend = engine.backend_->description();
  if (const std::size_t comma = backend.find(", "); comma != std::string::npos) {
    backend = backend.substr(0, comma) + ")";
  }
  std::string out(path_name(engine.path()));
  out += ", " + backend + ", kv " + std::string(dtype_name(engine.kv_dtype()));
  if (options.exact) out += ", exact";
  if (!options.fuse) out += ", not fused";
  if (engine.kv_->store().windowed_bytes() != 0) out += ", rings";
  for (const LoraUse& use : options.adapters) {
    if (use.weight == 0) continue;
    out += fmt::format(", adapter {} times {}", digest_text(use.adapter->content), use.weight);
  }
  return out;
}

Result<void> Engine::Loader::run() {
  const Clock::time_point start = Clock::now();
  CYB_TRY(check_sizes());
  CYB_TRY(load_text());
  collect_stops();
  CYB_TRY(pack());
  if (options.stop.stop_requested()) return fail(cancelled(0));
  CYB_TRY(build_forward());
  CYB_ASSIGN(engine.length_rule_, read_length_rule(engine.model_->config()));
  CYB_TRY(set_context());
  CYB_TRY(allocate_kv());
  if (dry) return {};
  CYB_ASSIGN(const Digest id, engine.model_->model_id());
  engine.model_id_ = digest_text(id);
  engine.numerics_ = describe_numerics();
  report.mapped_bytes = engine.model_->file_bytes();
  const std::size_t n_rows = engine.forward_->max_tokens();
  engine.ids_.reserve(n_rows);
  engine.positions_.reserve(n_rows);
  engine.output_rows_.reserve(engine.forward_->max_outputs());
  engine.spans_.reserve(n_rows);
  report.load_ms = ms_since(start);
  return {};
}

Result<MemoryPlan> Engine::Loader::memory_plan() const {
  MemoryPlan plan{.path = engine.path(),
                  .backend = std::string(engine.backend_->name()),
                  .ctx_tokens = engine.ctx_tokens_,
                  .n_sequences = std::max(options.max_sequences, std::uint32_t{1}),
                  .kv_dtype = engine.kv_dtype(),
                  .bytes = engine.memory(),
                  .notes = report.notes};
  plan.bytes.kv = report.kv_bytes;
  CYB_ASSIGN(plan.bytes.run, engine.forward_->most_bytes(limits()));
  // Panels that no file of the cache folder will hold are packed in memory.
  if (report.packed_bytes == 0) plan.bytes.weights_own += engine.weights_->cached_bytes();
  return plan;
}

Result<std::shared_ptr<Engine>> Engine::load(std::shared_ptr<const Model> model,
                                             std::shared_ptr<Backend> backend,
                                             const EngineOptions& options) {
  std::shared_ptr<Engine> engine(new Engine);
  HeldModel held = held_model(std::move(model), *backend);
  engine->model_ = std::move(held.model);
  engine->backend_ = std::move(backend);
  if (!held.note.empty()) engine->report_.notes.push_back(std::move(held.note));
  Loader loader{*engine, options};
  if (auto done = loader.run(); !done) {
    return fail(std::move(done).error().with("model", engine->model_->path()));
  }
  return engine;
}

namespace {

/// A wrong path or model type is told before a device is opened.
Result<std::shared_ptr<Backend>> backend_for(const Model& model, const EngineOptions& options) {
  CYB_TRY(choose_path(model, options.path));
  BackendOptions wanted;
  wanted.n_threads = options.n_threads;
  wanted.exact = options.exact;
  wanted.isa = options.isa;
  wanted.allow_fallback = options.allow_fallback;
  return create_backend(options.backend, wanted);
}

}  // namespace

Result<std::shared_ptr<Engine>> Engine::load(std::shared_ptr<const Model> model,
                                             const EngineOptions& options) {
  CYB_ASSIGN(std::shared_ptr<Backend> backend, backend_for(*model, options));
  return load(std::move(model), std::move(backend), options);
}

Result<MemoryPlan> Engine::plan(std::shared_ptr<const Model> model, const EngineOptions& options) {
  CYB_ASSIGN(std::shared_ptr<Backend> backend, backend_for(*model, options));
  return plan(std::move(model), std::move(backend), options);
}

Result<MemoryPlan> Engine::plan(std::shared_ptr<const Model> model,
                                std::shared_ptr<Backend> backend, const EngineOptions& options) {
  std::shared_ptr<Engine> engine(new Engine);
  HeldModel held = held_model(std::move(model), *backend, true);
  engine->model_ = std::move(held.model);
  engine->backend_ = std::move(backend);
  if (!held.note.empty()) engine->report_.notes.push_back(std::move(held.note));
  Loader loader{*engine, options, true};
  if (auto done = loader.run(); !done) {
    return fail(std::move(done).error().with("model", engine->model_->path()));
  }
  return loader.memory_plan();
}

}  // namespace cyb
