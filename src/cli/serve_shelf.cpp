#include "cli/serve_shelf.hpp"

#include <algorithm>
#include <utility>

#include "api/model_source.hpp"
#include "cli/progress.hpp"

namespace cyb::cli {
namespace {

using Starting = std::shared_ptr<std::atomic<bool>>;

/// While the server starts, an import shows its progress; later the shelf tells who waits.
Result<std::shared_ptr<const Model>> open(const std::string& source, const ServeOptions& options,
                                          Context* context, const std::stop_token& stop,
                                          const ShelfModel::Progress& progress) {
  if (context != nullptr) {
    ModelFlags flags = options.engine;
    flags.set_name(source);
    return flags.open(*context, stop);
  }
  api::SourceOptions from;
  from.stop = stop;
  from.progress = [&](const ImportProgress& p) { progress(p.bytes_done, p.bytes_total); };
  return api::open_model(source, ModelOptions{.verify_weights = options.engine_options().verify},
                         from);
}

ShelfModel shelf_model(const ServedModel& served, const ServeOptions& options, Context* context,
                       const Starting& starting) {
  ShelfModel out;
  out.name = served.name;
  out.pinned = std::ranges::find(options.pins, served.name) != options.pins.end();
  out.engine = options.engine_options();
  out.open = [source = served.source, &options, context, starting](
                 const std::stop_token& stop,
                 const ShelfModel::Progress& progress) -> Result<std::shared_ptr<const Model>> {
    Context* shown = starting->load() ? context : nullptr;
    CYB_ASSIGN(std::shared_ptr<const Model> model, open(source, options, shown, stop, progress));
    const std::uint32_t ctx = options.engine_options().ctx_tokens;
    if (ctx != 0) CYB_TRY(check_positions(*model, ctx, "--ctx"));
    return model;
  };
  return out;
}

std::function<Result<std::vector<LoraUse>>(const Model&)> reader(
    std::vector<api::AdapterName> adapters) {
  if (adapters.empty()) return {};
  return [adapters = std::move(adapters)](const Model& model) {
    return api::read_adapters(adapters, model);
  };
}

/// Each model, then those that are one of them with an adapter.
Result<std::vector<ShelfModel>> shelf_models(const ServeOptions& options, Context& context,
                                             const Starting& starting) {
  CYB_ASSIGN(const std::vector<ServedModel> served, options.served_models());
  CYB_ASSIGN(const std::vector<ServedAdapter> adapters, options.served_adapters());
  std::vector<ShelfModel> out;
  const auto always_on = [&](const std::string& model) {
    std::vector<api::AdapterName> names;
    for (const ServedAdapter& one : adapters) {
      if (one.model == model && one.name.empty()) names.push_back(one.source);
    }
    return names;
  };
  for (const ServedModel& model : served) {
    out.push_back(shelf_model(model, options, &context, starting));
    out.back().adapters = reader(always_on(model.name));
  }
  for (const ServedAdapter& adapter : adapters) {
    if (adapter.name.empty()) continue;
    const auto parent = std::ranges::find(served, adapter.model, &ServedModel::name);
    ShelfModel model = shelf_model(*parent, options, &context, starting);
    model.parent = parent->name;
    model.name = parent->name + ":" + adapter.name;
    std::vector<api::AdapterName> names = always_on(parent->name);
    names.push_back(adapter.source);
    model.adapters = reader(std::move(names));
    model.pinned = false;
    out.push_back(std::move(model));
  }
  return out;
}

}  // namespace

ShelfModel added_model(const ServedModel& served, const ServeOptions& options) {
  return shelf_model(served, options, nullptr, std::make_shared<std::atomic<bool>>(false));
}

Result<std::unique_ptr<ModelShelf>> make_shelf(const ServeOptions& options, Context& context,
                                               const std::stop_token& stop,
                                               std::function<void(const std::string&)> log) {
  constexpr std::string_view kWarning = "warning: ";
  const auto starting = std::make_shared<std::atomic<bool>>(true);
  CYB_ASSIGN(std::vector<ShelfModel> models, shelf_models(options, context, starting));
  CYB_ASSIGN(ShelfOptions shelf_options, options.shelf_options());
  const auto packing = std::make_shared<Progress>(context.output, "packing weights");
  shelf_options.progress = [starting, packing](const LoadProgress& p) {
    if (starting->load()) packing->update(p.bytes_done, p.bytes_total, p.what);
  };
  shelf_options.note = [starting, &context, log = std::move(log),
                        kWarning](const std::string& line) {
    if (!starting->load()) return log(line);
    if (line.starts_with(kWarning)) context.output.warning(line.substr(kWarning.size()));
  };
  CYB_ASSIGN(std::unique_ptr<ModelShelf> shelf,
             ModelShelf::create(std::move(models), std::move(shelf_options)));
  const auto told = [&](Result<void> done) -> Result<void> {
    if (!done) return fail(with_origin(std::move(done).error(), options.engine_options()));
    return {};
  };
  for (std::size_t i = 1; i < shelf->size() && !options.lazy; ++i) {
    CYB_TRY(told(shelf->describe(i, stop)));
  }
  if (!options.lazy) CYB_TRY(told(shelf->load(0, stop)));
  packing->clear();
  starting->store(false);
  return shelf;
}

}  // namespace cyb::cli
