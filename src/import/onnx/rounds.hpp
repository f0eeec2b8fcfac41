// Rounds: a Scan or Loop whose number of rounds is known at import, as its rounds one after the
// other.
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

namespace cyb::onnx {

struct Scanned {
  Val value = 0;  // an input that is cut, 0 for an output
  std::int64_t axis = 0;
  bool reverse = false;
};

struct Rounds {
  const NodeProto* node = nullptr;
  std::shared_ptr<const GraphProto> body;
  bool is_loop = false;
  std::int64_t count = 0, done = 0;
  std::vector<Val> carried;  // the state
  std::vector<Scanned> in, out;
  std::vector<std::vector<Val>> collected;  // for each scan output, of each round
};

/// Errors: NotBuilt where the number of rounds is not known, or more than kMaxRounds.
Result<Rounds> begin_rounds(const NodeProto& node, std::span<const Val> inputs, Builder& builder);
/// What the body's inputs are in the next round.
Result<std::vector<std::pair<std::string_view, Val>>> round_inputs(const Rounds& rounds,
                                                                   Builder& builder);
/// Takes the outputs of a round; true if another one follows. Errors: NotBuilt for a Loop whose
/// condition is not known after the round.
Result<bool> end_round(Rounds& rounds, std::span<const Val> outputs, const Builder& builder);
/// The outputs of the node.
Result<std::vector<Val>> finish_rounds(const Rounds& rounds, Builder& builder);

}  // namespace cyb::onnx
