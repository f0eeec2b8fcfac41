// OpImpl: what one op's file gives to the registry. Each ops/<group>/<op>.cpp defines
// `OpImpl impl_<Name>()`; op.cpp declares and collects them from op_list.inc.
#pragma once

#include "ops/op.hpp"

namespace cyb {

struct OpImpl {
  std::span<const AttrSpec> attrs = {};
  InferFn infer = nullptr;
  ReferenceFn reference = nullptr;
  DecomposeFn decompose = nullptr;
  EncodedInputFn encoded_input = nullptr;
  RunShapesFn run_shapes = nullptr;
  InferFn state = nullptr;
  std::size_t (*count)(const Attrs&) = nullptr;  // for ops whose attributes give the outputs
};

}  // namespace cyb
