// The environment gives defaults (CYB_PATH, CYB_BACKEND, CYB_ISA, CYB_THREADS), options win.
#include "cli/model_flags.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "api/model_source.hpp"
#include "cli/progress.hpp"

namespace cyb::cli {
namespace {

std::string environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

constexpr std::uint64_t kMaxThreads = 1024;
constexpr std::uint64_t kMaxContext = std::uint64_t{1} << 24;

}  // namespace

ModelFlags::ModelFlags()
    : path_(environment("CYB_PATH", "auto")), backend_(environment("CYB_BACKEND", "auto")) {}

void ModelFlags::declare_model(Options& options) {
  options.positional("MODEL", model_,
                     "A .model, a GGUF file or a Hugging Face folder, or a name or id in the store",
                     true);
}

void ModelFlags::declare_engine(Options& options) {
  options.text("--path", path_, "PATH", "auto, curated, graph or nox (default: auto)");
  options.text("--backend", backend_, "BACKEND",
               "auto, or one that `cyb-llm backends` lists (default: auto)");
  options.integer("--threads", threads_, {1, kMaxThreads}, "N",
                  "Threads (default: one per physical core)");
  options.flag("--exact", exact_, "f32 activations and KV: slower, closest to the reference");
  options.flag("--no-fallback", no_fallback_,
               "Fail where the backend has no kernel, instead of using another");
}

void ModelFlags::declare_context(Options& options) {
  options.integer("--ctx", ctx_, {1, kMaxContext}, "N",
                  "Context in tokens (default: what the model was trained for, at most 32768)");
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
  options.ctx_tokens = static_cast<std::uint32_t>(ctx_.value_or(0));
  options.verify = verify_;
  return options;
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

Result<std::shared_ptr<Engine>> ModelFlags::load(Context& context, std::stop_token stop,
                                                 EngineOptions options) const {
  CYB_ASSIGN(std::shared_ptr<const Model> model, open(context, stop));
  Progress progress(context.output, "packing weights");
  options.stop = stop;
  options.progress = [&](const LoadProgress& p) {
    progress.update(p.bytes_done, p.bytes_total, p.what);
  };
  CYB_ASSIGN(std::shared_ptr<Engine> engine, Engine::load(std::move(model), options));
  progress.clear();
  for (const std::string& note : engine->report().notes) context.output.warning(note);
  return engine;
}

void show_import(Output& output, const ImportReport& report, bool whole) {
  if (whole) {
    output.note(report_text(report));
  } else {
    output.note(fmt::format("imported {}: {}, {} parameters, context {}, tokenizer {}", report.name,
                            report.family, report.parameters, report.context_tokens,
                            report.tokenizer));
  }
  for (const std::string& warning : report.warnings) output.warning(warning);
}

}  // namespace cyb::cli
