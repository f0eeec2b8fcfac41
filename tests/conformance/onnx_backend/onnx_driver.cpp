// Runs ONNX cases in one process, as the program does: imported, stored, opened and run through
// TensorForward. Each line of stdin names a folder with model.onnx and in_<k>.npy; the answer is
// one line: "<folder> ok" with out_<k>.npy written, "<folder> refused <reason>" if the import said
// no, or
// "<folder> failed <reason>". Run by run.py.
//
//     onnx_driver [BACKEND [passes]]
//
// BACKEND: reference (default) or cpu. passes: also runs with fusion and memory in place off and
// fails a case whose bits differ (on the reference).
#include <cstring>
#include <iostream>
#include <string>

#include "base/file.hpp"
#include "conformance/onnx_backend/npy.hpp"
#include "import/onnx/onnx_import.hpp"
#include "model/model.hpp"
#include "model/writer.hpp"
#include "paths/graph/tensor_forward.hpp"

namespace cyb::test {
namespace {

struct Way {
  std::string backend = "reference";
  bool passes = false;
};

Result<std::vector<NpyArray>> read_inputs(const std::string& folder, const Graph& graph) {
  std::vector<NpyArray> arrays;
  for (std::size_t k = 0; k < graph.inputs.size(); ++k) {
    auto array = read_npy(folder + "/in_" + std::to_string(k) + ".npy");
    if (!array) return fail(invalid_input("no readable in_" + std::to_string(k) + ".npy"));
    arrays.push_back(*std::move(array));
  }
  return arrays;
}

Result<void> write_outputs(const std::string& folder, const TensorForward& forward) {
  for (std::size_t k = 0; k < forward.outputs().size(); ++k) {
    CYB_ASSIGN(const TensorView out, forward.output(k));
    if (!write_npy(folder + "/out_" + std::to_string(k) + ".npy", out.dtype, out.shape, out.data))
      return fail(io_error(folder, "write", "an output"));
  }
  return {};
}

/// The outputs of the run with all passes are those of the run without any.
Result<void> compare(const TensorForward& forward, const TensorForward& plain) {
  for (std::size_t k = 0; k < forward.outputs().size(); ++k) {
    CYB_ASSIGN(const TensorView got, forward.output(k));
    CYB_ASSIGN(const TensorView want, plain.output(k));
    const std::size_t bytes = tensor_bytes(want.dtype, want.shape).value_or(0);
    const bool same = got.dtype == want.dtype && got.shape == want.shape &&
                      (bytes == 0 || std::memcmp(got.data, want.data, bytes) == 0);
    if (!same) return fail(internal_error("passes change output " + std::to_string(k)));
  }
  return {};
}

Result<void> run_case(const std::string& folder, const ModelDraft& draft, const Way& way) {
  const std::string path = folder + "/case.model";
  CYB_TRY(write_model(path, draft));
  CYB_ASSIGN(const std::shared_ptr<const Model> model, Model::open(path));
  CYB_ASSIGN(const Graph graph, model->graph());
  CYB_ASSIGN(const std::vector<NpyArray> arrays, read_inputs(folder, graph));
  std::vector<TensorView> inputs;
  for (const NpyArray& array : arrays)
    inputs.push_back(present_tensor({array.dtype, array.shape, array.bytes.data()}));
  BackendOptions options;
  options.n_threads = 2;
  CYB_ASSIGN(const std::shared_ptr<Backend> backend, create_backend(way.backend, options));
  WeightTable weights(model, backend);
  CYB_ASSIGN(const std::unique_ptr<TensorForward> forward, TensorForward::make(graph, weights));
  CYB_TRY(forward->run(inputs));
  CYB_TRY(write_outputs(folder, *forward));
  if (!way.passes || way.backend != "reference") return {};
  CYB_ASSIGN(const std::unique_ptr<TensorForward> plain,
             TensorForward::make(graph, weights, {.fuse = false, .in_place = false}));
  CYB_TRY(plain->run(inputs));
  return compare(*forward, *plain);
}

std::string answer(const std::string& folder, const Way& way) {
  const auto file = MappedFile::open(folder + "/model.onnx");
  if (!file) return "failed " + file.error().text();
  ImportReport report;
  auto draft = onnx::parse_onnx((*file)->bytes(), folder, report);
  if (!draft) return "refused " + draft.error().text();
  draft->name = "case";
  const auto done = run_case(folder, *draft, way);
  return done ? "ok" : "failed " + done.error().text();
}

}  // namespace
}  // namespace cyb::test

int main(int argc, char** argv) {
  cyb::test::Way way;
  if (argc > 1) way.backend = argv[1];
  way.passes = argc > 2 && std::string(argv[2]) == "passes";
  std::string folder;
  while (std::getline(std::cin, folder)) {
    std::string text = cyb::test::answer(folder, way);
    for (char& c : text) c = c == '\n' ? ' ' : c;
    std::cout << folder << ' ' << text << std::endl;
  }
  return 0;
}
