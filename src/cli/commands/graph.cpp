// graph: the graph part of a model, as a list, as TOML, as Graphviz text or as a drawing.
#include <fmt/format.h>

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "cli/command.hpp"
#include "cli/model_flags.hpp"
#include "cli/output_file.hpp"
#include "cli/usage.hpp"
#include "model/graph_bodies.hpp"
#include "model/graph_boxes.hpp"
#include "ops/control/control.hpp"
#include "paths/forward.hpp"
#include "paths/tensor_source.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm graph model.onnx                        inputs, outputs and how often each op occurs
  cyb-llm graph smollm2 --svg smollm2.svg         a drawing; open it in a browser
  cyb-llm graph smollm2 --toml - | less           every node, as text
A model of a language family that stores no graph is shown as its family records it.)";

class GraphCommand final : public Command {
 public:
  void declare(Options& options) override {
    model_.declare_model(options);
    options.optional_text("--toml", toml_, "FILE", "Write the graph as TOML (-: standard output)");
    options.optional_text("--dot", dot_, "FILE", "Write Graphviz text (-: standard output)");
    options.optional_text("--svg", svg_, "FILE", "Write a drawing (-: standard output)");
    options.flag("--force", force_, "Overwrite FILE where it exists");
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    CYB_ASSIGN(const std::shared_ptr<const Model> model,
               model_.open(context, context.interrupts.begin()));
    std::vector<std::string> outputs;
    for (const auto& file : {toml_, dot_, svg_}) {
      if (file) outputs.push_back(*file);
    }
    CYB_TRY(check_apart(outputs, std::array{model_.name(), model->path()}));
    CYB_ASSIGN(const Graph graph, model_graph(*model));
    if (toml_) CYB_TRY(write(context, *toml_, write_graph_toml(graph)));
    if (dot_ || svg_ || !toml_) {
      const ModelTensors tensors(*model);
      const WeightLookup weights = [&](std::string_view name) { return tensors.find(name); };
      CYB_ASSIGN(const GraphTypes types, validate_graph(graph, weights));
      const Picture picture = graph_picture(graph, types, weights);
      const std::string title = fmt::format("{}: {} nodes", model->name(), graph.nodes.size());
      if (dot_) CYB_TRY(write(context, *dot_, write_graph_dot(picture, title)));
      if (svg_) CYB_TRY(write(context, *svg_, write_graph_svg(picture, title)));
      if (!dot_ && !svg_ && !toml_) list(context, graph, types);
    }
    return kExitOk;
  }

 private:
  Result<void> write(Context& context, const std::string& path, const std::string& text) const {
    if (path == "-") {
      context.output.print(text);
      return {};
    }
    CYB_TRY(check_output_file(path, force_));
    CYB_ASSIGN(AtomicFile file, AtomicFile::create(path));
    CYB_TRY(file.write(text));
    return file.commit();
  }

  static void list(Context& context, const Graph& graph, const GraphTypes& types) {
    for (const GraphInput& input : graph.inputs)
      context.output.line(fmt::format("input   {} {}", input.name, input.spec.text(graph.symbols)));
    std::map<std::string_view, std::pair<std::string, std::size_t>> specs;
    std::map<std::string_view, std::size_t> counts;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      ++counts[op_info(graph.nodes[i].op.tag).name];
      for (std::size_t k = 0; k < graph.nodes[i].outputs.size(); ++k)
        specs[graph.nodes[i].outputs[k]] = {types.node_outputs[i][k].text(graph.symbols), i};
    }
    for (const std::string& name : graph.outputs) {
      const auto spec = specs.find(name);
      context.output.line(
          fmt::format("output  {} {}", name, spec == specs.end() ? "" : spec->second.first));
    }
    for (const auto& [op, n] : counts) context.output.line(fmt::format("{:>7} {}", n, op));
    list_bodies(context, graph);
  }

  /// The bodies of If and Loop, those inside them after them.
  static void list_bodies(Context& context, const Graph& graph) {
    std::deque<std::pair<std::string, Graph>> work = {{"", graph}};
    while (!work.empty()) {
      const auto [place, around] = std::move(work.front());
      work.pop_front();
      for (const GraphNode& node : around.nodes) {
        for (std::size_t k = 0; k < body_attrs(node.op.tag).size(); ++k) {
          auto body = decode_body(node, k);
          if (!body) continue;  // the validator has said it
          const std::string name = fmt::format("{}{} {} {}", place, op_info(node.op.tag).name,
                                               node.id, body_name(node, k));
          std::map<std::string_view, std::size_t> counts;
          for (const GraphNode& inner : body->nodes) ++counts[op_info(inner.op.tag).name];
          std::string text;
          for (const auto& [op, n] : counts)
            text += fmt::format("{} {} {}", text.empty() ? "" : ",", n, op);
          context.output.line(
              fmt::format("body    {}: {} nodes:{}", name, body->nodes.size(), text));
          work.emplace_back(name + ", ", *std::move(body));
        }
      }
    }
  }

  ModelFlags model_;
  std::optional<std::string> toml_, dot_, svg_;
  bool force_ = false;
};

}  // namespace

std::unique_ptr<Command> make_graph_command() {
  return std::make_unique<GraphCommand>();
}

}  // namespace cyb::cli
