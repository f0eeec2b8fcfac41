// Fuzzes ONNX files: parsing, lowering to the graph and everything that it folds; a graph that the
// importer accepts is also encoded and decoded.
#include <cstddef>
#include <cstdint>
#include <span>

#include "import/onnx/onnx_import.hpp"
#include "model/graph.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cyb;
  ImportReport report;
  const auto draft = onnx::parse_onnx(std::as_bytes(std::span(data, size)), "", report);
  std::uint64_t sum = 0;
  if (draft) {
    const auto bytes = graph_from_hex(*draft->graph_hex);
    const auto graph = bytes ? decode_graph(*bytes) : Result<Graph>(fail(bytes.error()));
    if (!graph) __builtin_trap();  // what the importer wrote must be readable
    sum += graph->nodes.size() + report_text(report).size();
    for (const DraftTensor& tensor : draft->tensors) {
      const auto done = tensor.produce([&](std::span<const std::byte> part) -> Result<void> {
        sum += part.size();
        return {};
      });
      if (!done) __builtin_trap();
    }
  }
  return sum == UINT64_MAX ? 1 : 0;
}
