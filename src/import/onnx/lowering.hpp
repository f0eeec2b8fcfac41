// From a ModelProto to a graph of ours: names resolved, functions put in place, every node lowered
// by the row of its op. Ops without a row are named all at once.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "import/onnx/builder.hpp"
#include "import/onnx/proto.hpp"

namespace cyb::onnx {

struct Lowered {
  BuiltGraph built;
  std::int64_t opset = 0;                          // of the default domain
  std::map<std::string, std::uint64_t> op_counts;  // "Conv", "com.microsoft.Gelu"
  std::vector<std::string> unused;                 // initializers that nothing reads
  std::vector<std::string> assumptions;
};

/// Errors: NotBuilt (unknown ops with their counts; a node that is refused, by name and reason),
/// Format (names that are not defined, bad tensors), those of the shape rules.
/// `dims`: named dimensions of the inputs that have this size. InvalidInput for a name that no
/// input has.
using FixedDims = std::vector<std::pair<std::string, std::int64_t>>;
Result<Lowered> lower_model(const ModelProto& model, ExternalFiles& files,
                            const FixedDims& dims = {});

}  // namespace cyb::onnx
