// Model: opened from a file, folder or the store; tokens, logits, import.
#pragma once

#include <cyb/error.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cyb {
inline namespace v1 {

/// Return true to cancel.
using Progress =
    std::function<bool(std::uint64_t done, std::uint64_t total, std::string_view what)>;

struct ModelOptions {
  std::string path = "auto", backend = "auto";
  std::uint32_t n_threads = 0;     // 0: one per physical core
  std::uint32_t ctx_tokens = 0;    // 0: what the model was trained for, at most 32768
  std::uint32_t max_sessions = 1;  // full contexts that the KV memory is for
  bool exact = false, no_fallback = false, verify = false, no_fuse = false;
  Progress progress{};
  std::string kv_type{};          // K and V as f32, f16, q8 or q4; empty: the backend's own
  std::uint32_t max_guesses = 0;  // most tokens that an answer may guess ahead
  // LoRA adapters (PEFT folder or GGUF file) with their weights, applied in this order.
  std::vector<std::pair<std::string, double>> adapters{};
};

struct EncodeOptions {
  bool parse_special = false;  // control tokens written in the text are matched
  bool bos = true;             // where the model wants one
};

/// Shared and immutable; copies are cheap and name the same model.
class Model {
 public:
  /// A .model, GGUF file or Hugging Face folder (imported into the store once), or a name or id in
  /// the store.
  static Result<Model> open(const std::string& what, const ModelOptions& options = {}) {
    cyb_model_options c;
    cyb_model_options_init(&c);
    c.path = options.path.c_str();
    c.backend = options.backend.c_str();
    c.n_threads = options.n_threads;
    c.ctx_tokens = options.ctx_tokens;
    c.max_sessions = options.max_sessions;
    c.exact = options.exact ? 1 : 0;
    c.no_fallback = options.no_fallback ? 1 : 0;
    c.verify = options.verify ? 1 : 0;
    c.no_fuse = options.no_fuse ? 1 : 0;
    c.kv_type = options.kv_type.empty() ? nullptr : options.kv_type.c_str();
    c.max_guesses = options.max_guesses;
    std::vector<const char*> adapters;
    std::vector<double> weights;
    for (const auto& [path, weight] : options.adapters) {
      adapters.push_back(path.c_str());
      weights.push_back(weight);
    }
    c.adapters = adapters.data();
    c.adapter_weights = weights.data();
    c.n_adapters = adapters.size();
    c.progress = options.progress ? &call_progress : nullptr;
    c.user = const_cast<Progress*>(&options.progress);
    cyb_model* model = nullptr;
    if (cyb_error* error = cyb_model_open(what.c_str(), &c, &model))
      return std::unexpected(Error(error));
    return Model(model);
  }

  std::string_view name() const { return cyb_model_name(handle()); }
  std::string_view id() const { return cyb_model_id(handle()); }
  std::string_view path() const { return cyb_model_path(handle()); }
  std::string_view backend() const { return cyb_model_backend(handle()); }
  std::uint32_t vocab_size() const { return cyb_model_vocab_size(handle()); }
  std::uint32_t ctx_tokens() const { return cyb_model_ctx_tokens(handle()); }

  Result<std::vector<std::int32_t>> encode(std::string_view text,
                                           const EncodeOptions& options = {}) const {
    const std::uint32_t flags =
        (options.parse_special ? CYB_PARSE_SPECIAL : 0u) | (options.bos ? 0u : CYB_NO_BOS);
    std::int32_t* ids = nullptr;
    std::size_t n_ids = 0;
    if (cyb_error* error = cyb_tokenize(handle(), text.data(), text.size(), flags, &ids, &n_ids)) {
      return std::unexpected(Error(error));
    }
    const std::unique_ptr<void, decltype(&cyb_free)> owner(ids, &cyb_free);
    return std::vector<std::int32_t>(ids, ids + n_ids);
  }

  Result<std::string> decode(std::span<const std::int32_t> ids) const {
    char* text = nullptr;
    if (cyb_error* error = cyb_detokenize(handle(), ids.data(), ids.size(), &text))
      return std::unexpected(Error(error));
    const std::unique_ptr<void, decltype(&cyb_free)> owner(text, &cyb_free);
    return std::string(text);
  }

  /// f32 [ids, vocab_size], row-major: row t after the first t + 1 ids.
  Result<std::vector<float>> logits(std::span<const std::int32_t> ids) const {
    std::vector<float> out(ids.size() * vocab_size());
    if (cyb_error* error = cyb_logits(handle(), ids.data(), ids.size(), out.data(), out.size())) {
      return std::unexpected(Error(error));
    }
    return out;
  }

  cyb_model* handle() const { return model_.get(); }

 private:
  explicit Model(cyb_model* model) : model_(model, &cyb_model_free) {}
  static int call_progress(void* user, std::uint64_t done, std::uint64_t total, const char* what) {
    return (*static_cast<const Progress*>(user))(done, total, what) ? 1 : 0;
  }
  std::shared_ptr<cyb_model> model_;
};

/// Imports a GGUF file or Hugging Face folder to `out_path` (empty: into the store); the report as
/// JSON.
inline Result<std::string> import_model(const std::string& source, const std::string& out_path = {},
                                        const std::string& name = {},
                                        const Progress& progress = {}) {
  const auto call = [](void* user, std::uint64_t done, std::uint64_t total, const char* what) {
    return (*static_cast<const Progress*>(user))(done, total, what) ? 1 : 0;
  };
  char* report = nullptr;
  cyb_error* error = cyb_import(source.c_str(), out_path.empty() ? nullptr : out_path.c_str(),
                                name.empty() ? nullptr : name.c_str(), progress ? +call : nullptr,
                                const_cast<Progress*>(&progress), &report);
  if (error != nullptr) return std::unexpected(Error(error));
  const std::unique_ptr<void, decltype(&cyb_free)> owner(report, &cyb_free);
  return std::string(report);
}

}  // namespace v1
}  // namespace cyb
