// GatherElements (tag 376) and GatherNd (377): elements and slices picked by index tensors.
// Negative indices count from the end; others outside are an error.
#include <fmt/format.h>

#include "ops/index/index.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {

Result<std::size_t> checked_index(std::string_view op, std::int64_t index, std::int64_t n) {
  if (index >= -n && index < n) return static_cast<std::size_t>(index < 0 ? index + n : index);
  return fail(invalid_input(fmt::format("Op::{}: index {} is outside 0..{}", op, index, n - 1)));
}

namespace {

using rules::Specs;

constexpr std::array kAxisAttrs = {AttrSpec{"axis", AttrKind::kI32}};

Result<std::vector<TensorSpec>> infer_gather_elements(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_index(in, 1));
  CYB_TRY(rules::want_rank(in, 1, in[0].rank()));
  CYB_TRY(rules::axis(attrs.i(0), in[0].rank(), "axis"));
  return rules::one(in[0].dtype, in[1].dims);
}

Result<void> reference_gather_elements(const RefCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1];
  const std::size_t rank = x.shape.rank(), axis = ref::axis_of(call.attrs.i(0), rank);
  const auto strides = ref::strides_of(x.shape);
  for (std::size_t d = 0; d < rank; ++d) {
    if (d != axis && indices.shape[d] > x.shape[d])
      return fail(shape_mismatch("GatherElements", x.shape.text(), indices.shape.text()));
  }
  Result<void> done;
  ref::visit_size(x.dtype, [&]<class T>(ref::Type<T>) {
    ref::for_each_index(indices.shape, [&](std::size_t i, const ref::Index& index) {
      const auto k = checked_index("GatherElements", ref::integer_at(indices, i), x.shape[axis]);
      if (!k) {
        done = fail(k.error());
        return;
      }
      ref::Index at = index;
      at[axis] = *k;
      call.outputs[0].as<T>()[i] = x.as<T>()[ref::dot(at, strides, rank)];
    });
  });
  return done;
}

constexpr std::array kNdAttrs = {AttrSpec{"batch_dims", AttrKind::kU32}};

Result<std::vector<TensorSpec>> infer_gather_nd(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_index(in, 1));
  CYB_TRY(rules::want_min_rank(in, 1, 1));
  const std::size_t batch = attrs.u32(0);
  const Dim& last = in[1].dims.back();
  if (batch >= in[1].rank() || batch > in[0].rank()) return fail(rules::bad_payload("batch_dims"));
  const bool fits = last.is_constant() && last.constant() + static_cast<std::int64_t>(batch) <=
                                              static_cast<std::int64_t>(in[0].rank());
  if (!fits)
    return fail(
        rules::bad_shape(dims_text(in[1].dims), "a last dimension of at most the rank of input 0"));
  std::vector<Dim> dims(in[1].dims.begin(), in[1].dims.end() - 1);
  const auto depth = batch + static_cast<std::size_t>(last.constant());
  dims.insert(dims.end(), in[0].dims.begin() + static_cast<std::ptrdiff_t>(depth),
              in[0].dims.end());
  return rules::one(in[0].dtype, std::move(dims));
}

Result<void> reference_gather_nd(const RefCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1];
  const std::size_t batch = call.attrs.u32(0),
                    depth = ref::extent(indices.shape, indices.shape.rank() - 1);
  const std::size_t rank = x.shape.rank();
  const std::size_t tuples = ref::extent(indices.shape, 0, indices.shape.rank() - 1);
  const std::size_t batches = ref::extent(indices.shape, 0, batch),
                    per_batch = batches == 0 ? 0 : tuples / batches;
  const std::size_t row = ref::extent(x.shape, batch + depth, rank) * ref::element_bytes(x.dtype);
  for (std::size_t d = 0; d < batch; ++d) {
    if (x.shape[d] != indices.shape[d])
      return fail(shape_mismatch("GatherNd", x.shape.text(), indices.shape.text()));
  }
  if (per_batch == 0) return {};  // nothing is asked for
  for (std::size_t t = 0; t < tuples; ++t) {
    std::size_t at = t / per_batch;
    for (std::size_t k = 0; k < depth; ++k) {
      CYB_ASSIGN(
          const std::size_t i,
          checked_index("GatherNd", ref::integer_at(indices, t * depth + k), x.shape[batch + k]));
      at = at * ref::extent(x.shape, batch + k) + i;
    }
    if (row != 0) std::memcpy(call.outputs[0].data + t * row, x.data + at * row, row);
  }
  return {};
}

}  // namespace

OpImpl impl_GatherElements() {
  return {
      .attrs = kAxisAttrs, .infer = infer_gather_elements, .reference = reference_gather_elements};
}
OpImpl impl_GatherNd() {
  return {.attrs = kNdAttrs, .infer = infer_gather_nd, .reference = reference_gather_nd};
}

}  // namespace cyb
