// The models of `serve` as a shelf: how each is opened and what is said meanwhile.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "cli/serve_options.hpp"
#include "runtime/model_shelf.hpp"

namespace cyb::cli {

/// A shelf whose first model is loaded, and whose others were opened and planned; nothing of that
/// with --lazy. Until it returns, progress and warnings go to `context`; afterwards lines about
/// models go to `log`, from any thread. `options` and `context` must outlive the shelf. Errors:
/// Usage, those of opening and loading.
Result<std::unique_ptr<ModelShelf>> make_shelf(const ServeOptions& options, Context& context,
                                               const std::stop_token& stop,
                                               std::function<void(const std::string&)> log);

/// A model that comes while the server runs. `options` must outlive the shelf.
ShelfModel added_model(const ServedModel& served, const ServeOptions& options);

}  // namespace cyb::cli
