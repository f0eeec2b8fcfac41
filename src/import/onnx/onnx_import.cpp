// The draft of a lowered graph: weights streamed from where they lie, the graph part checked by the
// validator, and a report of inputs, outputs and ops.
#include "import/onnx/onnx_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/json_text.hpp"
#include "import/draft.hpp"
#include "import/onnx/lowering.hpp"
#include "import/onnx/tensor.hpp"
#include "import/onnx/wire.hpp"

namespace cyb::onnx {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{4} << 20;

Result<void> stream(std::span<const std::byte> bytes, const ByteSink& sink) {
  for (std::size_t at = 0; at < bytes.size(); at += kChunkBytes)
    CYB_TRY(sink(bytes.subspan(at, std::min(kChunkBytes, bytes.size() - at))));
  return {};
}

/// [..., K, N] written as [..., N, K], a few rows of the result at a time.
Result<void> stream_transposed(const HostTensor& tensor, const ByteSink& sink) {
  const std::size_t rank = tensor.shape.rank();
  const auto k = static_cast<std::size_t>(tensor.shape[rank - 2]);
  const auto n = static_cast<std::size_t>(tensor.shape[rank - 1]);
  const std::size_t unit = format_info(tensor.dtype).block_bytes, matrix = k * n * unit;
  if (matrix == 0) return {};
  const std::size_t rows = std::clamp<std::size_t>(kChunkBytes / (k * unit), 1, n);
  std::vector<std::byte> part;
  for (std::size_t base = 0; base < tensor.bytes.size(); base += matrix) {
    const std::byte* from = tensor.bytes.data() + base;
    for (std::size_t first = 0; first < n; first += rows) {
      const std::size_t count = std::min(rows, n - first);
      part.resize(count * k * unit);
      for (std::size_t i = 0; i < k; ++i) {
        for (std::size_t j = 0; j < count; ++j) {
          std::memcpy(part.data() + (j * k + i) * unit, from + (i * n + first + j) * unit, unit);
        }
      }
      CYB_TRY(sink(part));
    }
  }
  return {};
}

DraftTensor draft_tensor(const BuiltWeight& weight) {
  DraftTensor out;
  out.name = weight.name;
  out.dtype = weight.tensor.dtype;
  out.shape = weight.shape();
  out.produce = [weight](const ByteSink& sink) {
    return weight.transposed ? stream_transposed(weight.tensor, sink)
                             : stream(weight.tensor.bytes, sink);
  };
  return out;
}

ReportValue value_report(const std::string& name, const TensorSpec& spec,
                         const std::vector<std::string>& symbols) {
  return {name, std::string(dtype_name(spec.dtype)), dims_text(spec.dims, symbols)};
}

/// Specs of the outputs, from the validator's view of the graph.
Result<void> report_graph(const BuiltGraph& built, const Lowered& lowered, ImportReport& report) {
  std::map<std::string_view, TensorSpec> weights;
  for (const BuiltWeight& w : built.weights)
    weights.emplace(w.name, TensorSpec::of(w.tensor.dtype, w.shape()));
  const WeightLookup lookup = [&](std::string_view name) -> std::optional<TensorSpec> {
    const auto at = weights.find(name);
    return at == weights.end() ? std::nullopt : std::optional(at->second);
  };
  CYB_ASSIGN(const GraphTypes types, validate_graph(built.graph, lookup));
  std::map<std::string_view, const TensorSpec*> specs;
  for (std::size_t i = 0; i < built.graph.nodes.size(); ++i) {
    const GraphNode& node = built.graph.nodes[i];
    for (std::size_t k = 0; k < node.outputs.size(); ++k)
      specs.emplace(node.outputs[k], &types.node_outputs[i][k]);
  }
  ReportGraph out;
  for (const GraphInput& input : built.graph.inputs)
    out.inputs.push_back(value_report(input.name, input.spec, built.graph.symbols));
  for (const std::string& name : built.graph.outputs)
    out.outputs.push_back(value_report(name, *specs.at(name), built.graph.symbols));
  for (const auto& [op, count] : lowered.op_counts) out.ops.push_back({op, count});
  out.n_nodes = built.graph.nodes.size();
  report.graph = std::move(out);
  return {};
}

void report_weights(const ModelDraft& draft, ImportReport& report) {
  report.n_tensors = draft.tensors.size();
  std::map<std::string_view, ReportEncoding> rows;
  for (const DraftTensor& tensor : draft.tensors) {
    const std::uint64_t bytes = cyb::tensor_bytes(tensor.dtype, tensor.shape).value_or(0);
    ReportEncoding& row = rows[dtype_name(tensor.dtype)];
    ++row.count;
    row.bytes += bytes;
    report.weights_bytes += bytes;
    report.parameters += tensor.shape.elements().value_or(0);
  }
  for (auto& [name, row] : rows) {
    row.name = name;
    report.encodings.push_back(row);
  }
  std::ranges::sort(report.encodings, std::ranges::greater{}, &ReportEncoding::bytes);
}

Result<ModelDraft> build(Bytes bytes, const std::string& folder, const FixedDims& dims,
                         ImportReport& report) {
  CYB_ASSIGN(const ModelProto model, parse_model(bytes));
  ExternalFiles files(folder);
  CYB_ASSIGN(Lowered lowered, lower_model(model, files, dims));
  const BuiltGraph& built = lowered.built;
  CYB_TRY(report_graph(built, lowered, report));
  ModelDraft draft;
  draft.config.set("model_type", "onnx");
  draft.config.table("tokenizer").set("type", "none");
  for (const BuiltWeight& weight : built.weights) draft.tensors.push_back(draft_tensor(weight));
  draft.graph_hex = graph_to_hex(encode_graph(built.graph));
  report.source_format = fmt::format("ONNX opset {}", lowered.opset);
  report.model_type = "onnx";
  report.tokenizer = "none";
  report_weights(draft, report);
  for (const std::string& name : lowered.unused) report.skipped.push_back(one_line(name));
  for (const std::string& name : lowered.assumptions) report.assumptions.push_back(name);
  for (const auto& [from, to] : built.renamed) {
    report.assumptions.push_back(
        fmt::format("{} is called {} here", json_quote(from), json_quote(to)));
  }
  draft.lineage.set("method", fmt::format("onnx-import opset {}", lowered.opset));
  if (!model.producer.empty())
    draft.lineage.set("producer",
                      one_line(fmt::format("{} {}", model.producer, model.producer_version)));
  return draft;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
}

}  // namespace

Result<ModelDraft> parse_onnx(Bytes bytes, const std::string& folder, ImportReport& report) {
  return build(bytes, folder, {}, report);
}

Result<ModelDraft> read_onnx(const std::string& path, ImportReport& report,
                             const ImportOptions& options) {
  CYB_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  auto draft = build(file->bytes(), folder_of(path), options.dims, report);
  if (!draft) return fail(std::move(draft).error().in(path));
  std::string named = path;
  if (named.ends_with(".onnx") && named.size() > 5) named.resize(named.size() - 5);
  CYB_ASSIGN(draft->name, draft_name(options.name, named, report));
  report.name = draft->name;
  const std::string base = one_line(path.substr(path.rfind('/') + 1));
  draft->lineage.set("source", base);
  draft->card = fmt::format("# {}\n\nImported from the ONNX file `{}`.\n", draft->name, base);
  // The weights are views into the mapping: each keeps it open.
  for (DraftTensor& tensor : draft->tensors) {
    tensor.produce = [file, produce = std::move(tensor.produce)](const ByteSink& sink) {
      return produce(sink);
    };
  }
  return draft;
}

Result<std::vector<std::string>> onnx_files(const std::string& path) {
  CYB_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  const auto model = parse_model(file->bytes());
  if (!model) return fail(Error(model.error()).in(path));
  std::set<std::string> out;
  for (const TensorProto& tensor : model->graph.initializers) {
    if (!tensor.external) continue;
    CYB_ASSIGN(const std::string location, external_location(tensor));
    out.insert(folder_of(path) + "/" + location);
  }
  std::vector<std::string> files(out.begin(), out.end());
  files.insert(files.begin(), path);
  return files;
}

bool is_onnx(const std::string& path) {
  if (path.ends_with(".onnx")) return true;
  const auto file = MappedFile::open(path);
  return file && looks_like_model((*file)->bytes()) && parse_model((*file)->bytes()).has_value();
}

}  // namespace cyb::onnx
