// Runs ONNX backend cases in one process. Each line of stdin names a folder with model.onnx and
// in_<k>.npy; the answer is one line: "<folder> ok" with out_<k>.npy written, "<folder> refused
// <reason>" if the import said no, or "<folder> failed <reason>". Run by run.py.
#include <iostream>
#include <string>

#include "conformance/onnx_backend/graph_run.hpp"
#include "conformance/onnx_backend/npy.hpp"

namespace cyb::test {
namespace {

Result<void> run_case(const std::string& folder, const Graph& graph, const Tensors& weights) {
  Tensors values;
  for (std::size_t k = 0; k < graph.inputs.size(); ++k) {
    const auto array = read_npy(folder + "/in_" + std::to_string(k) + ".npy");
    if (!array) return fail(invalid_input("no readable in_" + std::to_string(k) + ".npy"));
    if (array->dtype != graph.inputs[k].spec.dtype) return fail(invalid_input("input dtype"));
    CYB_ASSIGN(HostTensor tensor, copied(array->dtype, array->shape, array->bytes));
    values.emplace(graph.inputs[k].name, std::move(tensor));
  }
  CYB_TRY(run_nodes(graph, weights, values));
  for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
    const HostTensor& out = values.at(graph.outputs[k]);
    if (!write_npy(folder + "/out_" + std::to_string(k) + ".npy", out.dtype, out.shape,
                   out.bytes.data()))
      return fail(io_error(folder, "write", "an output"));
  }
  return {};
}

std::string answer(const std::string& folder) {
  const auto file = MappedFile::open(folder + "/model.onnx");
  if (!file) return "failed " + file.error().text();
  const auto lowered = import_case((*file)->bytes(), folder);
  if (!lowered) return "refused " + lowered.error().text();
  const auto weights = weights_of(lowered->built);
  if (!weights) return "failed " + weights.error().text();
  const auto graph = stored(lowered->built, *weights);
  if (!graph) return "failed " + graph.error().text();
  const auto done = run_case(folder, *graph, *weights);
  return done ? "ok" : "failed " + done.error().text();
}

}  // namespace
}  // namespace cyb::test

int main() {
  std::string folder;
  while (std::getline(std::cin, folder)) {
    std::string text = cyb::test::answer(folder);
    for (char& c : text) c = c == '\n' ? ' ' : c;
    std::cout << folder << ' ' << text << std::endl;
  }
  return 0;
}
