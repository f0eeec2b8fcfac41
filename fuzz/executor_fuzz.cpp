// Fuzz target: validator and executor on graphs made from the input. Every graph is valid by
// construction. Run node by node through the references it gives the truth; planned, in place and
// fused it must give the same bits on the reference, and on cpu fused and unfused differ within
// class F. The first byte 0xFF: the rest is the binary form of a graph, hostile, which must be
// refused or run without a crash.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "model/writer.hpp"
#include "ops/elementwise.hpp"
#include "paths/graph/tensor_forward.hpp"

namespace {

using cyb::DType;
using cyb::OpTag;
using cyb::Shape;
using cyb::TensorSpec;
using Ints = std::vector<std::int64_t>;

constexpr std::size_t kMaxNodes = 24;
constexpr std::int64_t kMaxElements = 4096;
constexpr float kTame = 64.0f;  // cpu is compared where no value is larger

[[noreturn]] void broken(const std::string& what) {
  std::fprintf(stderr, "executor fuzz: %s\n", what.c_str());
  std::abort();
}

/// Bytes as choices; zeros when they are used up.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> data) : data_(data) {}
  std::size_t below(std::size_t n) {
    const std::size_t v = at_ < data_.size() ? data_[at_++] : 0;
    return n == 0 ? 0 : v % n;
  }
  float number(bool special) {
    static constexpr float kSpecial[] = {0.0f,      -0.0f, 1e-40f, INFINITY,
                                         -INFINITY, NAN,   3e38f,  -1.0f};
    const std::size_t v = below(256);
    if (special && v >= 248) return kSpecial[v - 248];
    return (static_cast<float>(v) - 124.0f) / 64.0f;
  }
  bool empty() const { return at_ >= data_.size(); }

 private:
  std::span<const std::uint8_t> data_;
  std::size_t at_ = 0;
};

/// One model with a few weights; the graphs come from the input.
struct Weights {
  std::shared_ptr<const cyb::Model> model;
  std::map<std::string, std::vector<float>> values;

  Weights() {
    cyb::ModelDraft draft;
    draft.name = "fuzz";
    draft.card = "# fuzz\n";
    draft.config.set("model_type", "onnx");
    draft.config.table("tokenizer").set("type", "none");
    add(draft, "w4", {4, 4});
    add(draft, "w43", {4, 3});
    add(draft, "b4", {4});
    add(draft, "k1", {4, 4, 1, 1});
    add(draft, "k3", {4, 4, 3, 3});
    add(draft, "kd", {4, 1, 3, 3});
    add(draft, "c411", {4, 1, 1});
    const std::string path =
        (std::filesystem::temp_directory_path() / ("cyb-executor-fuzz-" + std::to_string(getpid())))
            .string();
    if (!cyb::write_model(path, draft)) broken("no model");
    auto opened = cyb::Model::open(path);
    std::filesystem::remove(path);
    if (!opened) broken("no model");
    model = *std::move(opened);
  }

  void add(cyb::ModelDraft& draft, const std::string& name, const Shape& shape) {
    std::vector<float>& data = values[name];
    for (std::int64_t i = 0; i < shape.count(); ++i)
      data.push_back(static_cast<float>((i * 29 + 7) % 41) / 40.0f - 0.5f);
    draft.tensors.push_back({name, DType::kF32, shape, [&data](const cyb::ByteSink& sink) {
                               return sink(std::as_bytes(std::span(data)));
                             }});
  }
};

const Weights& weights() {
  static const Weights all;
  return all;
}

std::optional<TensorSpec> weight_spec(std::string_view name) {
  const cyb::TensorEntry* entry = weights().model->find_tensor(name);
  if (entry == nullptr) return std::nullopt;
  return TensorSpec::of(entry->dtype, entry->shape);
}

struct Tensor {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::uint64_t> data;  // aligned
  cyb::TensorView view() const {
    return {dtype, shape, reinterpret_cast<const std::byte*>(data.data())};
  }
  cyb::MutableTensorView out() { return {dtype, shape, reinterpret_cast<std::byte*>(data.data())}; }
};

Tensor make_tensor(DType dtype, const Shape& shape) {
  const std::size_t bytes = cyb::tensor_bytes(dtype, shape).value_or(0);
  return {dtype, shape, std::vector<std::uint64_t>(bytes / 8 + 1)};
}

/// A graph that grows node by node together with the values of its tensors.
class Maker {
 public:
  explicit Maker(std::span<const std::uint8_t> data) : bytes_(data) {
    graph_.symbols = {"B", "S", "P"};
    tame_ = bytes_.below(2) == 0;
    const std::size_t n_inputs = 1 + bytes_.below(3);
    for (std::size_t i = 0; i < n_inputs; ++i) add_input(i);
    while (!bytes_.empty() && graph_.nodes.size() < kMaxNodes && tries_++ < 200) add_node();
    add_outputs();
  }

  const cyb::Graph& graph() const { return graph_; }
  const std::map<std::string, Tensor>& values() const { return values_; }
  std::vector<cyb::TensorView> inputs() const {
    std::vector<cyb::TensorView> out;
    for (const cyb::GraphInput& input : graph_.inputs) out.push_back(values_.at(input.name).view());
    return out;
  }
  bool has_data_shapes() const {
    return std::ranges::any_of(
        graph_.nodes, [](const cyb::GraphNode& node) { return node.op.tag == OpTag::kNonZero; });
  }
  /// No op whose small differences grow, and no large value.
  bool comparable() const {
    if (!tame_) return false;
    for (const auto& [name, tensor] : values_) {
      if (tensor.dtype != DType::kF32) continue;
      for (std::int64_t i = 0; i < tensor.shape.count(); ++i) {
        if (!(std::fabs(tensor.view().as<float>()[i]) <= kTame)) return false;
      }
    }
    return true;
  }

 private:
  void add_input(std::size_t i) {
    static const std::vector<Shape> kShapes = {{1, 4, 3, 3}, {2, 4, 5, 4}, {6, 4}, {4},
                                               {4, 1, 1},    {1},          {},     {3, 1, 4}};
    const std::string name = "x" + std::to_string(i);
    const Shape shape = i == 0 ? kShapes[bytes_.below(3)] : kShapes[bytes_.below(kShapes.size())];
    Tensor tensor = make_tensor(DType::kF32, shape);
    for (std::int64_t k = 0; k < shape.count(); ++k)
      tensor.out().as<float>()[k] = bytes_.number(!tame_);
    graph_.inputs.push_back({name, TensorSpec::of(DType::kF32, shape)});
    values_[name] = std::move(tensor);
    names_.push_back(name);
  }

  std::string any() {
    // The last ones more often: chains.
    const std::size_t n = std::min<std::size_t>(names_.size(), bytes_.below(4) == 0 ? 64 : 3);
    return names_[names_.size() - 1 - bytes_.below(n)];
  }

  static const std::vector<OpTag>& elementwise(bool tame) {
    static const std::vector<OpTag> all = [] {
      std::vector<OpTag> tags;
      for (const cyb::OpInfo& op : cyb::all_ops()) {
        if (cyb::is_elementwise(op.tag)) tags.push_back(op.tag);
      }
      return tags;
    }();
    static const std::vector<OpTag> smooth = {
        OpTag::kAdd,  OpTag::kMul,      OpTag::kSub,         OpTag::kMax,       OpTag::kMin,
        OpTag::kSilu, OpTag::kRelu,     OpTag::kLeakyRelu,   OpTag::kSigmoid,   OpTag::kTanh,
        OpTag::kNeg,  OpTag::kAbs,      OpTag::kHardSigmoid, OpTag::kHardSwish, OpTag::kClip,
        OpTag::kErf,  OpTag::kSoftplus, OpTag::kGelu,        OpTag::kPRelu,     OpTag::kSin};
    return tame ? smooth : all;
  }

  /// An op with attributes within [-1, 1].
  cyb::Result<cyb::Op> op_of(OpTag tag, std::initializer_list<cyb::NamedAttr> attrs = {}) {
    CYB_ASSIGN(cyb::Op op, cyb::make_op(tag, attrs));
    if (attrs.size() != 0) return op;
    for (cyb::AttrValue& value : op.attrs.values) {
      if (std::holds_alternative<float>(value)) value = bytes_.number(!tame_) / 2.0f;
      if (std::holds_alternative<std::int64_t>(value))
        value = static_cast<std::int64_t>(bytes_.below(3));
    }
    return op;
  }

  void add_node() {
    const std::string x = any();
    const auto axis = static_cast<std::int64_t>(bytes_.below(3)) - 1;
    switch (bytes_.below(tame_ ? 15 : 18)) {
      case 0: {
        const Ints pads(4, static_cast<std::int64_t>(bytes_.below(2)));
        const char* kernels[] = {"k1", "k3", "kd"};
        const std::size_t kind = bytes_.below(3);
        std::vector<std::string> in = {x, kernels[kind]};
        if (bytes_.below(2) == 0) in.push_back("b4");
        return emit(cyb::make_op(OpTag::kConv, {{"strides", Ints{1, 1}},
                                                {"dilations", Ints{1, 1}},
                                                {"pads", pads},
                                                {"groups", std::int64_t{kind == 2 ? 4 : 1}}}),
                    std::move(in));
      }
      case 1:
        return emit(op_of(OpTag::kMatmul), {x, "w4", "b4"});
      case 2:
        return emit(cyb::make_op(OpTag::kReshape, {{"shape", Ints{-1, bytes_.below(2) ? 4 : 2}}}),
                    {x});
      case 3:
        return emit(op_of(OpTag::kTranspose), {x});
      case 4:
        return emit(cyb::make_op(OpTag::kSoftmax, {{"dim", axis}}), {x});
      case 5:
        return emit(cyb::make_op(OpTag::kConcat, {{"axis", axis}}), {x, any()});
      case 6:
        return emit(
            cyb::make_op(OpTag::kReduceMean, {{"axes", Ints{axis}}, {"keep", std::int64_t{1}}}),
            {x});
      case 7:
        return emit(cyb::make_op(OpTag::kSlice, {{"axis", axis},
                                                 {"start", std::int64_t{1}},
                                                 {"end", std::int64_t{3}},
                                                 {"step", std::int64_t{1}}}),
                    {x});
      case 15:
        return emit(op_of(OpTag::kNonZero), {x});
      case 16:
        return emit(cyb::make_op(OpTag::kCast,
                                 {{"dtype", static_cast<std::int64_t>(
                                                bytes_.below(2) ? DType::kF32 : DType::kI32)}}),
                    {x});
      case 17:
        return emit(cyb::make_op(OpTag::kChunk, {{"axis", axis}, {"chunks", std::int64_t{2}}}),
                    {x});
      default: {
        const auto& tags = elementwise(tame_);
        const OpTag tag = tags[bytes_.below(tags.size())];
        std::vector<std::string> in = {x};
        const std::size_t n = std::min<std::size_t>(cyb::op_info(tag).max_inputs, 3);
        while (in.size() < n) {
          const bool stored = bytes_.below(4) == 0;
          in.push_back(stored ? (bytes_.below(2) ? "c411" : "b4") : any());
        }
        if (bytes_.below(2) == 1) std::swap(in.front(), in.back());
        return emit(op_of(tag), std::move(in));
      }
    }
  }

  cyb::TensorView view_of(const std::string& name) const {
    const auto found = values_.find(name);
    if (found != values_.end()) return found->second.view();
    const cyb::TensorEntry& entry = *weights().model->find_tensor(name);
    return {entry.dtype, entry.shape, weights().model->tensor_bytes(entry).data()};
  }

  /// Adds the node if its op takes these inputs and its reference gives a result.
  void emit(cyb::Result<cyb::Op> op, std::vector<std::string> inputs) {
    if (!op) return;
    std::vector<cyb::TensorView> views;
    for (const std::string& name : inputs) views.push_back(view_of(name));
    const auto specs = cyb::run_specs(*op, views);
    if (!specs) return;
    std::vector<Tensor> results;
    std::vector<cyb::MutableTensorView> outputs;
    for (const TensorSpec& spec : *specs) {
      const auto shape = spec.bind({});
      if (!shape || shape->count() > kMaxElements || shape->count() == 0) return;
      results.push_back(make_tensor(spec.dtype, *shape));
    }
    for (Tensor& tensor : results) outputs.push_back(tensor.out());
    const auto done =
        cyb::op_info(op->tag).reference({.attrs = op->attrs, .inputs = views, .outputs = outputs});
    if (!done) return;
    const auto id = static_cast<std::uint32_t>(graph_.nodes.size());
    cyb::GraphNode node{id, *op, 255, std::move(inputs), {}};
    for (std::size_t k = 0; k < results.size(); ++k) {
      const std::string name = "v" + std::to_string(id) + "_" + std::to_string(k);
      node.outputs.push_back(name);
      values_[name] = std::move(results[k]);
      names_.push_back(name);
    }
    graph_.nodes.push_back(std::move(node));
  }

  void add_outputs() {
    graph_.outputs = {names_.back()};
    const std::size_t more = bytes_.below(4);
    for (std::size_t i = 0; i < more; ++i) {
      const std::string& name = names_[bytes_.below(names_.size())];
      if (std::ranges::find(graph_.outputs, name) == graph_.outputs.end())
        graph_.outputs.push_back(name);
    }
  }

  Bytes bytes_;
  bool tame_ = false;
  std::size_t tries_ = 0;
  cyb::Graph graph_;
  std::map<std::string, Tensor> values_;
  std::vector<std::string> names_;
};

std::shared_ptr<cyb::Backend> backend(const char* name) {
  cyb::BackendOptions options;
  options.n_threads = 2;
  return cyb::create_backend(name, options).value();
}

struct Runs {
  cyb::WeightTable table;
  std::unique_ptr<cyb::TensorForward> forward;
  Runs(const cyb::Graph& graph, std::shared_ptr<cyb::Backend> on, const cyb::TensorOptions& options)
      : table(weights().model, std::move(on)) {
    auto made = cyb::TensorForward::make(graph, table, options);
    if (made) forward = *std::move(made);
  }
};

void check_reference(const Maker& made, const std::shared_ptr<cyb::Backend>& reference) {
  const auto inputs = made.inputs();
  for (const cyb::TensorOptions options :
       {cyb::TensorOptions{.fuse = false, .in_place = false}, cyb::TensorOptions{.fuse = false},
        cyb::TensorOptions{.in_place = false}, cyb::TensorOptions{}}) {
    Runs runs(made.graph(), reference, options);
    if (runs.forward == nullptr) broken("a valid graph was refused");
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto done = runs.forward->run(inputs);
      if (!done) broken("a graph that runs node by node failed: " + done.error().text());
      for (std::size_t i = 0; i < made.graph().outputs.size(); ++i) {
        const cyb::TensorView got = runs.forward->output(i).value();
        const cyb::TensorView want = made.values().at(made.graph().outputs[i]).view();
        if (got.dtype != want.dtype || got.shape != want.shape) broken("another shape");
        const std::size_t bytes = cyb::tensor_bytes(want.dtype, want.shape).value_or(0);
        if (std::memcmp(got.data, want.data, bytes) != 0) broken("other bits");
      }
    }
  }
}

void check_cpu(const Maker& made, const std::shared_ptr<cyb::Backend>& cpu) {
  Runs plain(made.graph(), cpu, {.fuse = false, .in_place = false}), fused(made.graph(), cpu, {});
  const auto inputs = made.inputs();
  if (!plain.forward || !fused.forward || !plain.forward->run(inputs) ||
      !fused.forward->run(inputs))
    broken("cpu failed");
  if (!made.comparable()) return;
  for (std::size_t i = 0; i < made.graph().outputs.size(); ++i) {
    const cyb::TensorView a = fused.forward->output(i).value(),
                          b = plain.forward->output(i).value();
    if (a.shape != b.shape || a.dtype != b.dtype) broken("another shape on cpu");
    if (a.dtype != DType::kF32) continue;
    float largest = 1.0f, difference = 0.0f;
    for (std::int64_t k = 0; k < a.shape.count(); ++k) {
      largest = std::fmax(largest, std::fabs(b.as<float>()[k]));
      difference = std::fmax(difference, std::fabs(a.as<float>()[k] - b.as<float>()[k]));
    }
    if (!(difference <= 1e-4f * largest)) broken("fused on cpu is not within class F");
  }
}

void run_hostile(std::span<const std::uint8_t> data, const std::shared_ptr<cyb::Backend>& on) {
  const auto raw = std::as_bytes(data);
  std::vector<std::byte> bytes(raw.begin(), raw.end());
  const std::uint32_t crc = cyb::crc32c(bytes);
  const auto trailer = std::as_bytes(std::span(&crc, 1));
  bytes.insert(bytes.end(), trailer.begin(), trailer.end());
  const auto graph = cyb::decode_graph(bytes);
  if (!graph) return;
  const Runs runs(*graph, on, {});
  if (runs.forward == nullptr) return;
  std::vector<Tensor> held;
  std::vector<cyb::TensorView> inputs;
  for (const cyb::GraphInput& input : runs.forward->inputs()) {
    const std::vector<std::int64_t> symbols(runs.forward->symbols().size(), 2);
    const auto shape = input.spec.bind(symbols);
    if (!shape || shape->elements().value_or(UINT64_MAX) > kMaxElements) return;
    held.push_back(make_tensor(input.spec.dtype, *shape));
  }
  for (const Tensor& tensor : held) inputs.push_back(tensor.view());
  static_cast<void>(runs.forward->run(inputs));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::shared_ptr<cyb::Backend> reference = backend("reference"), cpu = backend("cpu");
  if (size == 0) return 0;
  const auto rest = std::span(data, size).subspan(1);
  if (data[0] == 0xFF) {
    run_hostile(rest, reference);
    run_hostile(rest, cpu);
    return 0;
  }
  const Maker made(rest);
  const auto types = cyb::validate_graph(made.graph(), weight_spec);
  // Some ops need to know at load what a shape of data only says in the run.
  if (!types && made.has_data_shapes()) return 0;
  if (!types) broken("the validator refuses a valid graph: " + types.error().text());
  check_reference(made, reference);
  check_cpu(made, cpu);
  return 0;
}
