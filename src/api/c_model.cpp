// cyb.h: errors, models, tokens, logits, import.
#include <cyb/cyb.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "api/adapter_source.hpp"
#include "api/handles.hpp"
#include "api/model_source.hpp"
#include "api/version.hpp"
#include "import/import.hpp"
#include "paths/forward.hpp"
#include "runtime/logits.hpp"
#include "text/tokenizer.hpp"

namespace cyb::api {
namespace {

cyb_error g_no_memory{"OutOfMemory", "host: out of memory", R"({"code":"OutOfMemory"})", 4};

/// A copy for the caller, freed by cyb_free. Errors: OutOfMemory.
template <class T>
Result<T*> copy_out(const T* from, std::size_t n, std::size_t extra_zero) {
  auto* memory = static_cast<T*>(std::calloc(n + extra_zero + (n == 0 ? 1 : 0), sizeof(T)));
  if (memory == nullptr) return fail(out_of_memory("host", n * sizeof(T), 0));
  std::copy(from, from + n, memory);
  return memory;
}

/// Calls back with progress; a non-zero answer asks for a stop.
class ProgressCall {
 public:
  ProgressCall(cyb_progress_fn call, void* user) : call_(call), user_(user) {}
  void operator()(std::uint64_t done, std::uint64_t total, std::string_view what) {
    if (call_ != nullptr && call_(user_, done, total, std::string(what).c_str()) != 0)
      stop_.request_stop();
  }
  std::stop_token token() const { return stop_.get_token(); }

 private:
  cyb_progress_fn call_;
  void* user_;
  std::stop_source stop_;
};

Result<std::vector<AdapterName>> adapter_names(const cyb_model_options& options) {
  std::vector<AdapterName> out;
  if (options.n_adapters != 0) CYB_TRY(need(options.adapters, "adapters"));
  for (std::size_t i = 0; i < options.n_adapters; ++i) {
    CYB_TRY(need(options.adapters[i], "an adapter's path"));
    out.push_back({options.adapters[i],
                   options.adapter_weights != nullptr ? options.adapter_weights[i] : 1.0});
  }
  return out;
}

Result<void> open_into(const char* what, const cyb_model_options* given, cyb_model** model) {
  CYB_TRY(need(what, "what"));
  CYB_TRY(need(model, "model"));
  CYB_ASSIGN(const cyb_model_options options, read_options(given, &cyb_model_options_init));
  ProgressCall progress(options.progress, options.user);
  SourceOptions source;
  source.stop = progress.token();
  source.progress = [&](const ImportProgress& p) { progress(p.bytes_done, p.bytes_total, p.what); };
  CYB_ASSIGN(std::shared_ptr<const Model> file,
             open_model(what, {.verify_weights = options.verify != 0}, source));
  EngineOptions engine_options;
  engine_options.path = options.path != nullptr ? options.path : "auto";
  engine_options.backend = options.backend != nullptr ? options.backend : "auto";
  engine_options.n_threads = options.n_threads;
  engine_options.ctx_tokens = options.ctx_tokens;
  engine_options.max_sequences = std::max(options.max_sessions, 1u);
  engine_options.exact = options.exact != 0;
  engine_options.allow_fallback = options.no_fallback == 0;
  engine_options.verify = options.verify != 0;
  engine_options.fuse = options.no_fuse == 0;
  engine_options.max_outputs = std::max(engine_options.max_outputs, options.max_guesses + 1);
  if (options.kv_type != nullptr) {
    // A name that no format has is refused by the engine as any other type is.
    engine_options.kv_dtype = find_dtype(options.kv_type);
    if (!engine_options.kv_dtype) return fail(invalid_input("kv_type is none of f32, f16, q8, q4"));
  }
  CYB_ASSIGN(const std::vector<AdapterName> adapters, adapter_names(options));
  CYB_ASSIGN(engine_options.adapters, read_adapters(adapters, *file));
  engine_options.stop = progress.token();
  engine_options.progress = [&](const LoadProgress& p) {
    progress(p.bytes_done, p.bytes_total, p.what);
  };
  CYB_ASSIGN(std::shared_ptr<Engine> engine, Engine::load(std::move(file), engine_options));
  auto handle = std::make_unique<cyb_model>();
  handle->path = path_name(engine->path());
  handle->backend = engine->backend().name();
  handle->engine = std::move(engine);
  *model = handle.release();
  return {};
}

Result<void> logits_into(cyb_model* model, std::span<const std::int32_t> ids,
                         std::span<float> out) {
  const std::size_t vocab = model->engine->vocab_size();
  if (out.size() / vocab < ids.size()) {
    return fail(invalid_input("out holds fewer than n_ids * vocab_size floats"));
  }
  const auto sink = [&](std::uint32_t first_row, std::span<const float> rows) -> Result<void> {
    std::copy(rows.begin(), rows.end(),
              out.begin() + static_cast<std::ptrdiff_t>(first_row * vocab));
    return {};
  };
  return all_logits(*model->engine, ids, sink);
}

}  // namespace

cyb_error* to_handle(const Error& error) noexcept {
  try {
    return new cyb_error{error.code(), error.text(), error.json(), exit_code(error.kind())};
  } catch (const std::bad_alloc&) {
    return &g_no_memory;
  }
}

}  // namespace cyb::api

using namespace cyb;  // NOLINT(google-build-using-namespace): this file only defines C functions
                      // below
using namespace cyb::api;  // NOLINT(google-build-using-namespace)

extern "C" {

const char* cyb_version(void) {
  return kVersion;
}
uint32_t cyb_abi_version(void) {
  return CYB_ABI_VERSION;
}
void cyb_free(void* memory) {
  std::free(memory);
}

const char* cyb_error_code(const cyb_error* error) {
  return error->code.c_str();
}
const char* cyb_error_text(const cyb_error* error) {
  return error->text.c_str();
}
const char* cyb_error_json(const cyb_error* error) {
  return error->json.c_str();
}
int cyb_error_exit_code(const cyb_error* error) {
  return error->exit_code;
}
void cyb_error_free(cyb_error* error) {
  if (error != &g_no_memory) delete error;
}

void cyb_model_options_init(cyb_model_options* options) {
  *options = cyb_model_options{};
  options->struct_size = sizeof(*options);
  options->path = "auto";
  options->backend = "auto";
  options->max_sessions = 1;
}

cyb_error* cyb_model_open(const char* what, const cyb_model_options* options, cyb_model** model) {
  return guarded([&] { return open_into(what, options, model); });
}

void cyb_model_free(cyb_model* model) {
  delete model;
}
const char* cyb_model_name(const cyb_model* model) {
  return model->engine->model().name().c_str();
}
const char* cyb_model_id(const cyb_model* model) {
  return model->engine->model_id().c_str();
}
const char* cyb_model_path(const cyb_model* model) {
  return model->path.c_str();
}
const char* cyb_model_backend(const cyb_model* model) {
  return model->backend.c_str();
}
uint32_t cyb_model_vocab_size(const cyb_model* model) {
  return model->engine->vocab_size();
}
uint32_t cyb_model_ctx_tokens(const cyb_model* model) {
  return model->engine->ctx_tokens();
}

cyb_error* cyb_import(const char* source, const char* out_path, const char* name,
                      cyb_progress_fn progress, void* user, char** report) {
  return guarded([&]() -> Result<void> {
    CYB_TRY(need(source, "source"));
    ProgressCall call(progress, user);
    SourceOptions options;
    options.stop = call.token();
    options.progress = [&](const ImportProgress& p) { call(p.bytes_done, p.bytes_total, p.what); };
    CYB_ASSIGN(const ImportedModel imported, import_to(source, out_path != nullptr ? out_path : "",
                                                       name != nullptr ? name : "", options));
    if (report == nullptr) return {};
    const std::string json = cyb::report_json(imported.report);
    CYB_ASSIGN(*report, copy_out(json.data(), json.size(), 1));
    return {};
  });
}

cyb_error* cyb_tokenize(const cyb_model* model, const char* text, size_t n_bytes, uint32_t flags,
                        int32_t** ids, size_t* n_ids) {
  return guarded([&]() -> Result<void> {
    CYB_TRY(need(model, "model"));
    CYB_TRY(need(ids, "ids"));
    CYB_TRY(need(n_ids, "n_ids"));
    if (n_bytes != 0) CYB_TRY(need(text, "text"));
    CYB_ASSIGN(const Tokenizer* tokenizer, model->engine->need_tokenizer());
    const EncodeOptions how{.parse_special = (flags & CYB_PARSE_SPECIAL) != 0,
                            .add_special = (flags & CYB_NO_BOS) == 0};
    CYB_ASSIGN(const std::vector<std::int32_t> found,
               tokenizer->encode(std::string_view(text, n_bytes), how));
    CYB_ASSIGN(*ids, copy_out(found.data(), found.size(), 0));
    *n_ids = found.size();
    return {};
  });
}

cyb_error* cyb_detokenize(const cyb_model* model, const int32_t* ids, size_t n_ids, char** text) {
  return guarded([&]() -> Result<void> {
    CYB_TRY(need(model, "model"));
    CYB_TRY(need(text, "text"));
    if (n_ids != 0) CYB_TRY(need(ids, "ids"));
    CYB_ASSIGN(const Tokenizer* tokenizer, model->engine->need_tokenizer());
    CYB_ASSIGN(const std::string found, tokenizer->decode(std::span(ids, n_ids)));
    CYB_ASSIGN(*text, copy_out(found.data(), found.size(), 1));
    return {};
  });
}

cyb_error* cyb_logits(cyb_model* model, const int32_t* ids, size_t n_ids, float* out,
                      size_t n_out) {
  return guarded([&]() -> Result<void> {
    CYB_TRY(need(model, "model"));
    CYB_TRY(need(ids, "ids"));
    CYB_TRY(need(out, "out"));
    return logits_into(model, std::span(ids, n_ids), std::span(out, n_out));
  });
}

}  // extern "C"
