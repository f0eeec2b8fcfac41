// The environment gives defaults (CYB_PATH, CYB_BACKEND, CYB_ISA, CYB_THREADS), options win.
#include "cli/model_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/adapter_source.hpp"
#include "api/model_source.hpp"
#include "base/file.hpp"
#include "cli/environment.hpp"
#include "cli/progress.hpp"
#include "cli/usage.hpp"
#include "runtime/context_limit.hpp"

namespace cyb::cli {
namespace {

constexpr std::uint64_t kMaxContext = std::uint64_t{1} << 24;

std::optional<DType> kv_type(std::string_view name) {
  for (const DType kind : {DType::kF32, DType::kF16, DType::kQ8, DType::kQ4}) {
    if (dtype_name(kind) == name) return kind;
  }
  return std::nullopt;
}

}  // namespace

ModelFlags::ModelFlags()
    : path_(environment("CYB_PATH", "auto")), backend_(environment("CYB_BACKEND", "auto")) {}

ModelFlags::ModelFlags(std::string name) : ModelFlags() {
  model_ = std::move(name);
}

void ModelFlags::declare_model(Options& options) {
  options.positional(
      "MODEL", model_,
      "A .model, a GGUF or ONNX file or a Hugging Face folder, or a name or id in the store");
}

void ModelFlags::declare_engine(Options& options, bool adapters) {
  options.text("--path", path_, "PATH", "auto, curated, graph or nox (default: auto)");
  options.text("--backend", backend_, "BACKEND",
               "auto, or one that `cyb-llm backends` lists (default: auto)");
  options.integer("--threads", threads_, {1, kMaxThreads}, "N",
                  "Threads (default: one per physical core)");
  options.flag("--exact", exact_, "f32 activations and KV: slower, closest to the reference");
  options.flag("--no-fallback", no_fallback_,
               "Fail where the backend has no kernel, instead of using another");
  options.flag("--no-fuse", no_fuse_, "Run every op as a step of its own: slower, to compare");
  if (!adapters) return;
  options.texts(
      "--lora", adapters_, "PATH[=WEIGHT]",
      "A LoRA adapter of the model (PEFT folder or GGUF), with a weight (default: 1); may "
      "be given again");
}

void ModelFlags::declare_context(Options& options) {
  options.integer("--ctx", ctx_, {1, kMaxContext}, "N",
                  "Context in tokens (default: what the model was trained for, at most 32768)");
  options.optional_text("--kv", kv_, "TYPE",
                        "K and V of the context as f32, f16, q8 or q4: less memory, less exact "
                        "(default: f16; f32 on reference and with --exact)");
}

void ModelFlags::declare_verify(Options& options) {
  options.flag("--verify", verify_, "Check the hashes of all weights before use");
}

EngineOptions ModelFlags::engine_options() const {
  EngineOptions options;
  options.path = path_;
  options.backend = backend_;
  options.isa = environment("CYB_ISA", "");
  options.n_threads = static_cast<unsigned>(
      threads_.value_or(parse_integer(environment("CYB_THREADS", "0")).value_or(0)));
  options.exact = exact_;
  options.allow_fallback = !no_fallback_;
  options.fuse = !no_fuse_;
  options.ctx_tokens = static_cast<std::uint32_t>(ctx_.value_or(0));
  options.verify = verify_;
  if (kv_) options.kv_dtype = kv_type(*kv_);
  return options;
}

Result<void> ModelFlags::add_adapters(const Model& model, EngineOptions& options) const {
  std::vector<api::AdapterName> names;
  for (const std::string& text : adapters_) {
    auto name = api::adapter_name(text);
    if (!name) return fail(usage_error(fmt::format("--lora: {}", name.error().message())));
    names.push_back(*std::move(name));
  }
  CYB_ASSIGN(options.adapters, api::read_adapters(names, model));
  return {};
}

Result<std::shared_ptr<const Model>> ModelFlags::open(Context& context,
                                                      std::stop_token stop) const {
  Progress progress(context.output, "importing");
  api::SourceOptions source;
  source.stop = stop;
  source.progress = [&](const ImportProgress& p) {
    progress.update(p.bytes_done, p.bytes_total, p.what);
  };
  source.note = [&](const std::string& text) { context.output.note(text); };
  source.on_imported = [&](const ImportReport& report) {
    progress.clear();
    show_import(context.output, report, false);
  };
  return api::open_model(model_, ModelOptions{.verify_weights = verify_}, source);
}

Result<void> ModelFlags::check_kv() const {
  if (!kv_ || kv_type(*kv_)) return {};
  return fail(usage_error(fmt::format("--kv: \"{}\" is none of f32, f16, q8, q4", *kv_)));
}

Result<std::shared_ptr<Engine>> ModelFlags::load(Context& context, std::stop_token stop,
                                                 EngineOptions options) const {
  CYB_ASSIGN(std::shared_ptr<const Model> model, open(context, stop));
  return load(context, std::move(model), stop, std::move(options));
}

Result<std::shared_ptr<Engine>> ModelFlags::load(Context& context,
                                                 std::shared_ptr<const Model> model,
                                                 std::stop_token stop,
                                                 EngineOptions options) const {
  if (ctx_) CYB_TRY(check_positions(*model, *ctx_, "--ctx"));
  CYB_TRY(check_kv());
  CYB_TRY(add_adapters(*model, options));
  Progress progress(context.output, "packing weights");
  options.stop = stop;
  options.progress = [&](const LoadProgress& p) {
    progress.update(p.bytes_done, p.bytes_total, p.what);
  };
  auto loaded = Engine::load(std::move(model), options);
  if (!loaded) return fail(with_origin(std::move(loaded).error(), options));
  std::shared_ptr<Engine> engine = *std::move(loaded);
  progress.clear();
  const LoadReport& report = engine->report();
  if (report.pack_ms > 0 && report.packed_bytes > 0) {
    context.output.note(
        fmt::format("packed weights are kept in {}: {} (once; CYB_CACHE moves them)",
                    cache_folder(), size_text(report.packed_bytes)));
  }
  for (const std::string& note : report.notes) context.output.warning(note);
  return engine;
}

Error with_origin(Error error, const EngineOptions& options) {
  const bool isa = error.kind() == ErrorKind::kBackendInit && !options.isa.empty();
  return isa ? std::move(error).in("CYB_ISA") : std::move(error);
}

Result<void> check_positions(const Model& model, std::uint64_t n_tokens, std::string_view option) {
  const auto positions = model.config().integer_or("architecture.max_position_embeddings", 0);
  if (!positions || *positions <= 0) return {};
  const auto trained =
      static_cast<std::uint32_t>(std::min<std::int64_t>(*positions, std::int64_t{1} << 30));
  const ContextLimit limit = context_limit(model.config(), trained);
  if (n_tokens <= limit.most) return {};
  return fail(usage_error(fmt::format("{} {} is more than the {} positions of the model: {}",
                                      option, n_tokens, *positions, limit.reason)));
}

Result<void> check_context(const Engine& engine, std::uint64_t n_tokens, std::string_view what) {
  if (n_tokens <= engine.ctx_tokens()) return {};
  const std::string advice =
      engine.ctx_tokens() < engine.trained_tokens()
          ? fmt::format("--ctx N gives more, up to {}", engine.trained_tokens())
          : "the model has no more (--ctx)";
  return fail(Error(ErrorKind::kContextOverflow,
                    fmt::format("context overflow: {} has {} tokens, the context holds {}; {}",
                                what, n_tokens, engine.ctx_tokens(), advice))
                  .with("position", std::to_string(n_tokens))
                  .with("limit", std::to_string(engine.ctx_tokens())));
}

void show_import(Output& output, const ImportReport& report, bool whole) {
  if (whole) {
    output.note(report_text(report));
  } else if (report.graph) {
    output.note(fmt::format("imported {}: a graph of {} nodes, {} parameters", report.name,
                            report.graph->n_nodes, report.parameters));
  } else {
    output.note(fmt::format("imported {}: {}, {} parameters, context {}, tokenizer {}", report.name,
                            report.family, report.parameters, report.context_tokens,
                            report.tokenizer));
  }
  for (const std::string& warning : report.warnings) output.warning(warning);
}

}  // namespace cyb::cli
