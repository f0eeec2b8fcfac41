// Graphs built node by node, and their runs through TensorForward.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "model/writer.hpp"
#include "paths/graph/tensor_forward.hpp"
#include "support/process.hpp"

namespace cyb::test {

inline BackendOptions threads(unsigned n) {
  BackendOptions options;
  options.n_threads = n;
  return options;
}

template <class T>
DraftTensor weight(std::string name, DType dtype, const Shape& shape,
                   const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {std::move(name), dtype, shape,
          [bytes = std::move(bytes)](const ByteSink& sink) { return sink(bytes); }};
}

/// A graph under construction.
struct GraphMaker {
  Graph graph;
  std::vector<DraftTensor> weights;

  GraphMaker() { graph.symbols = {"B", "S", "P"}; }
  std::string input(std::string name, DType dtype, std::vector<Dim> dims) {
    graph.inputs.push_back({name, {dtype, std::move(dims)}});
    return name;
  }
  std::string node(OpTag tag, std::initializer_list<NamedAttr> attrs,
                   std::vector<std::string> inputs) {
    return node(make_op(tag, attrs).value(), std::move(inputs));
  }
  std::string node(Op op, std::vector<std::string> inputs) {
    const auto id = static_cast<std::uint32_t>(graph.nodes.size());
    std::string out = "v" + std::to_string(id);
    graph.nodes.push_back({id, std::move(op), 255, std::move(inputs), {out}});
    return out;
  }
};

class GraphRunner {
 public:
  GraphRunner(const GraphMaker& maker, std::shared_ptr<Backend> backend,
              const TensorOptions& options = {}) {
    ModelDraft draft;
    draft.name = "graph";
    draft.card = "# graph\n";
    draft.config.set("model_type", "onnx");
    draft.config.table("tokenizer").set("type", "none");
    draft.tensors = maker.weights;
    draft.graph_hex = graph_to_hex(encode_graph(maker.graph));
    const std::string path = folder_.path() + "/graph.model";
    auto written = write_model(path, draft);
    if (!written) error = written.error().text();
    if (!written) return;
    auto model = Model::open(path);
    if (!model) error = model.error().text();
    if (!model) return;
    weights_ = std::make_unique<WeightTable>(*model, std::move(backend));
    auto made = TensorForward::make(maker.graph, *weights_, options);
    if (!made) error = made.error().text();
    if (made) forward = *std::move(made);
  }

  std::string error;
  std::unique_ptr<TensorForward> forward;

 private:
  TemporaryFolder folder_;
  std::unique_ptr<WeightTable> weights_;
};

template <class T>
TensorView view(DType dtype, const Shape& shape, const std::vector<T>& values) {
  return {dtype, shape, reinterpret_cast<const std::byte*>(values.data())};
}

template <class T>
std::vector<T> values(const TensorView& tensor) {
  return {tensor.as<T>(), tensor.as<T>() + tensor.shape.count()};
}

}  // namespace cyb::test
