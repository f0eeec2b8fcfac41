// Control: an If, Loop or Scan that the run decides, while its bodies are lowered into regions.
// A Scan becomes a Loop over the length of its inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "import/onnx/builder.hpp"
#include "import/onnx/proto.hpp"
#include "import/onnx/rounds.hpp"

namespace cyb::onnx {

struct Control {
  const NodeProto* node = nullptr;
  OpTag tag = OpTag::kIf;
  std::vector<std::shared_ptr<const GraphProto>> graphs;  // the bodies
  std::vector<Val> inputs;                                // condition; or count, condition, carried
  std::vector<std::uint32_t> regions;                     // lowered, or being lowered
  std::vector<std::vector<TensorSpec>> outputs;           // of each body, as lowered
  std::vector<TensorSpec> carried;                        // what each round may rely on
  std::vector<Scanned> cut, stacked;                      // of a Scan
  std::size_t tries = 0;
};

/// Errors: Format (no body, another number of inputs), NotBuilt.
Result<Control> begin_control(const NodeProto& node, std::span<const Val> inputs, Builder& builder);
/// The body that is lowered next: names and values of its inputs, in a region of its own.
Result<std::vector<std::pair<std::string_view, Val>>> open_body(Control& control, Builder& builder);
inline const std::shared_ptr<const GraphProto>& open_graph(const Control& control) {
  return control.graphs[control.outputs.size()];
}
/// Takes the outputs of the body; true if one is to be lowered (a Loop's again, where its state
/// does not keep its shape).
Result<bool> close_body(Control& control, std::span<const Val> outputs, Builder& builder);
/// The outputs of the node.
Result<std::vector<Val>> finish_control(Control& control, Builder& builder);

}  // namespace cyb::onnx
