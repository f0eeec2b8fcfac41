// Options that several commands share: which path and backend, how much context, and the loading
// itself with its progress.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.hpp"
#include "model/model.hpp"
#include "runtime/engine.hpp"

namespace cyb {
struct ImportReport;
}

namespace cyb::cli {

class ModelFlags {
 public:
  ModelFlags();
  /// Of a model that is named by another option.
  explicit ModelFlags(std::string name);

  /// MODEL.
  void declare_model(Options& options);
  /// --path, --backend, --threads, --exact, --no-fallback, --no-fuse; --lora where `adapters`.
  void declare_engine(Options& options, bool adapters = true);
  /// --ctx, --kv.
  void declare_context(Options& options);
  /// --verify.
  void declare_verify(Options& options);

  const std::string& name() const noexcept { return model_; }
  void set_name(std::string name) { model_ = std::move(name); }
  bool has_threads() const noexcept { return threads_.has_value(); }
  bool has_context() const noexcept { return ctx_.has_value(); }
  bool has_kv_type() const noexcept { return kv_.has_value(); }
  bool has_adapters() const noexcept { return !adapters_.empty(); }
  /// Without the adapters, which are read for a model.
  EngineOptions engine_options() const;
  /// Reads the adapters. Errors: as api::read_adapters; Usage for a weight that is none.
  Result<void> add_adapters(const Model& model, EngineOptions& options) const;
  /// Errors: Usage for a --kv that is none.
  Result<void> check_kv() const;

  /// Finds or imports the model and opens it, with notes and a progress bar on stderr.
  Result<std::shared_ptr<const Model>> open(Context& context, std::stop_token stop) const;
  /// Engine::load of an opened model with `options` and the adapters; its notes become warnings.
  /// Errors: Usage for a
  /// --ctx that the model does not have, for a --kv that is none.
  Result<std::shared_ptr<Engine>> load(Context& context, std::shared_ptr<const Model> model,
                                       std::stop_token stop, EngineOptions options) const;
  /// open(), then load() of it.
  Result<std::shared_ptr<Engine>> load(Context& context, std::stop_token stop,
                                       EngineOptions options) const;
  Result<std::shared_ptr<Engine>> load(Context& context, std::stop_token stop) const {
    return load(context, std::move(stop), engine_options());
  }

 private:
  std::string model_, path_, backend_;
  std::optional<std::uint64_t> threads_, ctx_;
  std::optional<std::string> kv_;
  std::vector<std::string> adapters_;
  bool exact_ = false, no_fallback_ = false, no_fuse_ = false, verify_ = false;
};

/// What a load says, with the name of the variable that chose the instruction set where that is
/// what cannot start: no option names it.
Error with_origin(Error error, const EngineOptions& options);

/// Errors: Usage naming `option` where the model has fewer than `n_tokens` positions.
Result<void> check_positions(const Model& model, std::uint64_t n_tokens, std::string_view option);

/// ContextOverflow in words that say what to do, where `n_tokens` tokens of `what` do not fit.
Result<void> check_context(const Engine& engine, std::uint64_t n_tokens, std::string_view what);

/// What an import says: the report for people as notes, its warnings as warnings.
void show_import(Output& output, const ImportReport& report, bool whole);

}  // namespace cyb::cli
