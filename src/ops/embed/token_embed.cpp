// TokenEmbed (tag 120): ids i32 [...], W [V, E] of any weight dtype -> [..., E] f32; rows are
// copied, decoded if they are encoded. An id outside 0..V-1 is an error.
#include <fmt/format.h>

#include <algorithm>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

Result<std::vector<TensorSpec>> infer_token_embed(const Attrs&, rules::Specs in) {
  CYB_TRY(rules::want_dtype(in, 0, DType::kI32));
  CYB_TRY(rules::want_weight(in, 1));
  CYB_TRY(rules::want_rank(in, 1, 2));
  std::vector<Dim> dims = in[0].dims;
  dims.push_back(in[1].dims[1]);
  return rules::one(DType::kF32, std::move(dims));
}

Result<void> reference_token_embed(const RefCall& call) {
  const TensorView& ids = call.inputs[0];
  const ref::Rows table(call.inputs[1]);
  const std::size_t e = table.length();
  const auto n = static_cast<std::size_t>(ids.shape.count());
  auto* out = call.outputs[0].as<float>();
  for (std::size_t i = 0; i < n; ++i) {
    const std::int32_t id = ids.as<std::int32_t>()[i];
    if (id < 0 || static_cast<std::size_t>(id) >= table.count()) {
      return fail(
          invalid_input(fmt::format("token id {} is outside 0..{}", id, table.count() - 1)));
    }
    float* row = out + i * e;
    const float* source = table.read(static_cast<std::size_t>(id), row);
    if (source != row) std::copy_n(source, e, row);
  }
  return {};
}

bool encoded(const Attrs&, std::size_t input) {
  return input == 1;
}

}  // namespace

OpImpl impl_TokenEmbed() {
  return {.infer = infer_token_embed, .reference = reference_token_embed, .encoded_input = encoded};
}

}  // namespace cyb
