// Dispatch: which path runs a model, and why not (D codes of spec execution section 2; the texts
// are exact).
#include <fmt/format.h>

#include "paths/family.hpp"
#include "paths/forward.hpp"
#include "paths/graph/graph_emit.hpp"
#include "paths/graph/graph_forward.hpp"
#include "paths/graph/lora_graph.hpp"
#include "paths/graph/record.hpp"
#include "paths/plan/plan_forward.hpp"

namespace cyb {
namespace {

Error dispatch_error(std::string code, std::string text) {
  return Error(ErrorKind::kDispatch, std::move(code), std::move(text));
}

Error no_graph() {
  return dispatch_error("D3", "model has no graph section");
}

std::uint32_t graph_positions(const Model& model) {
  const auto positions = model.config().integer_or("architecture.max_position_embeddings", 2048);
  return positions && *positions > 0 && *positions < (std::int64_t{1} << 30)
             ? static_cast<std::uint32_t>(*positions)
             : 2048u;
}

Result<std::unique_ptr<Forward>> graph_forward(WeightTable& weights,
                                               const ForwardOptions& options) {
  CYB_ASSIGN(Graph graph, model_graph(weights.model()));
  if (!weights.lora().empty()) CYB_TRY(add_branches(weights.lora(), graph));
  CYB_ASSIGN(GraphProgram program, GraphProgram::prepare(graph, weights));
  return std::make_unique<GraphForward>(std::move(program), weights,
                                        graph_positions(weights.model()), options);
}

Result<std::unique_ptr<Forward>> curated_forward(WeightTable& weights,
                                                 const ForwardOptions& options) {
  const Model& model = weights.model();
  const FamilyRow* family = find_family(model.model_type());
  CYB_ASSIGN(const std::unique_ptr<FamilyModel> bound,
             family->bind(model.config(), ModelTensors(model)));
  CYB_ASSIGN(std::unique_ptr<PlanForward> forward, PlanForward::build(*bound, weights, options));
  return std::unique_ptr<Forward>(std::move(forward));
}

}  // namespace

std::string_view path_name(Path path) noexcept {
  switch (path) {
    case Path::kCurated:
      return "curated";
    case Path::kGraph:
      return "graph";
    case Path::kNox:
      return "nox";
  }
  return "?";
}

Result<Path> choose_path(const Model& model, std::string_view requested) {
  const std::string& type = model.model_type();
  const bool curated = find_family(type) != nullptr;
  if (requested == "auto") {
    if (curated) return Path::kCurated;
    if (model.has_graph()) return Path::kGraph;
    return fail(dispatch_error(
        "D1",
        fmt::format("unrecognized model_type, no graph section; try reimport (model_type \"{}\")",
                    type)));
  }
  if (requested == "curated") {
    if (curated) return Path::kCurated;
    return fail(dispatch_error("D2", fmt::format("model_type {} has no curated codepath", type)));
  }
  if (requested == "graph") {
    if (curated || model.has_graph()) return Path::kGraph;
    return fail(no_graph());
  }
  if (requested == "nox") {
    return fail(
        dispatch_error("D4", fmt::format("program section is {}: no nox formula to run",
                                         model.program().empty() ? "empty" : "trident source")));
  }
  return fail(dispatch_error(
      "D7",
      fmt::format("unknown path \"{}\"; choose one of auto, curated, graph, nox", requested)));
}

Result<std::unique_ptr<Forward>> make_forward(std::string_view requested, WeightTable& weights,
                                              const ForwardOptions& options, std::string& warning) {
  CYB_ASSIGN(const Path path, choose_path(weights.model(), requested));
  if (path == Path::kGraph) return graph_forward(weights, options);
  auto forward = curated_forward(weights, options);
  if (forward || requested != "auto" || !weights.model().has_graph()) return forward;
  warning = fmt::format("curated unavailable ({}); using graph", forward.error().text());
  return graph_forward(weights, options);
}

Result<Graph> model_graph(const Model& model) {
  if (model.has_graph()) return model.graph();
  if (find_family(model.model_type()) == nullptr) return fail(no_graph());
  return record_graph(model.config(), ModelTensors(model));
}

Result<std::vector<WeightNeed>> weight_needs(const Model& model) {
  const FamilyRow* family = find_family(model.model_type());
  if (family == nullptr) return std::vector<WeightNeed>{};
  const ModelTensors tensors(model);
  CYB_ASSIGN(const std::unique_ptr<FamilyModel> bound, family->bind(model.config(), tensors));
  GraphEmit emit(tensors);
  CYB_TRY(bound->body(emit));
  return emit.needs();
}

}  // namespace cyb
