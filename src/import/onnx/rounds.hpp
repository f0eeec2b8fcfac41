// Rounds: a Scan or Loop whose number of rounds is known at import, as its rounds one after the
// other.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "import/onnx/builder.hpp"
#include "import/onnx/proto.hpp"

namespace cyb::onnx {

struct Scanned {
  Val value = 0;  // an input that is cut, 0 for an output
  std::int64_t axis = 0;
  bool reverse = false;
};

struct Rounds {
  const NodeProto* node = nullptr;
  std::vector<Val> given;  // inputs of the node
  std::shared_ptr<const GraphProto> body;
  bool is_loop = false;
  std::int64_t count = 0, done = 0;
  std::vector<Val> carried;  // the state
  std::vector<Scanned> in, out;
  std::vector<std::vector<Val>> collected;  // for each scan output, of each round
};

/// State and cut inputs of a Scan. Errors: Format.
struct ScanShape {
  std::vector<Val> state;
  std::vector<Scanned> in;
};
Result<ScanShape> scan_shape(const NodeProto& node, std::span<const Val> inputs,
                             const Builder& builder);
/// How the `n` stacked outputs of a Scan or Loop lie.
std::vector<Scanned> scan_outputs(const NodeProto& node, std::size_t n);
/// `axis` in 0..rank-1. Error: Format.
Result<std::int64_t> axis_place(std::int64_t axis, std::size_t rank);

/// Nullopt where the run decides how many rounds there are, or where they are too many nodes to be
/// put one after the other. Errors: Format.
Result<std::optional<Rounds>> begin_rounds(const NodeProto& node, std::span<const Val> inputs,
                                           Builder& builder);
/// What the body's inputs are in the next round.
Result<std::vector<std::pair<std::string_view, Val>>> round_inputs(const Rounds& rounds,
                                                                   Builder& builder);
/// True for a round of a Loop after which the run decides whether another follows.
bool run_decides(const Rounds& rounds, std::span<const Val> outputs, const Builder& builder);
/// Takes the outputs of a round; true if another one follows.
Result<bool> end_round(Rounds& rounds, std::span<const Val> outputs, const Builder& builder);
/// The outputs of the node.
Result<std::vector<Val>> finish_rounds(const Rounds& rounds, Builder& builder);

}  // namespace cyb::onnx
