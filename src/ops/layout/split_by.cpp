// Chunk (tag 10): equal parts of ceil(d / chunks), the last smaller. SplitBy (373): n parts, of
// sizes that a tensor gives or of ceil(d / n).
#include <algorithm>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

Result<void> reference_parts(const RefCall& call) {
  const TensorView& x = call.inputs[0];
  const std::size_t rank = x.shape.rank(), axis = ref::axis_of(call.attrs.i(0), rank);
  const std::size_t outer = ref::extent(x.shape, 0, axis), bytes = ref::element_bytes(x.dtype);
  const std::size_t row = ref::extent(x.shape, axis, rank) * bytes;
  std::size_t offset = 0;
  for (const MutableTensorView& y : call.outputs) {
    const std::size_t part = ref::extent(y.shape, axis, rank) * bytes;
    if (outer != 0 && offset + part > row)
      return fail(shape_mismatch("Split", x.shape.text(), "larger parts"));
    for (std::size_t o = 0; o < outer && part != 0; ++o) {
      std::memcpy(y.data + o * part, x.data + o * row + offset, part);
    }
    offset += part;
  }
  if (outer != 0 && offset != row)
    return fail(shape_mismatch("Split", x.shape.text(), "smaller parts"));
  return {};
}

std::vector<TensorSpec> parts(const TensorSpec& x, std::size_t axis, std::span<const Dim> sizes) {
  std::vector<TensorSpec> out;
  for (const Dim& size : sizes) {
    out.push_back({x.dtype, x.dims});
    out.back().dims[axis] = size;
  }
  return out;
}

constexpr std::array kChunkAttrs = {AttrSpec{"axis", AttrKind::kI32},
                                    AttrSpec{"chunks", AttrKind::kU32}};
constexpr std::int64_t kMaxParts = 4096;

Result<std::vector<TensorSpec>> infer_chunk(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(0), in[0].rank(), "axis"));
  const std::int64_t chunks = attrs.i(1);
  if (chunks < 1 || chunks > kMaxParts) return fail(rules::bad_payload("chunks"));
  const Dim& dim = in[0].dims[axis];
  std::vector<Dim> sizes;
  if (!dim.is_constant()) {
    const auto part = dim.divided_by(chunks);  // a symbol that is a multiple
    if (!part) return fail(rules::bad_shape(dims_text(in[0].dims), "a constant to cut"));
    sizes.assign(static_cast<std::size_t>(chunks), *part);
  } else {
    const std::int64_t n = dim.constant(),
                       each = std::max<std::int64_t>((n + chunks - 1) / chunks, 1);
    for (std::int64_t at = 0; at < n || at == 0; at += each)
      sizes.emplace_back(std::min(each, n - at));
  }
  return parts(in[0], axis, sizes);
}

constexpr std::array kByAttrs = {AttrSpec{"axis", AttrKind::kI32}, AttrSpec{"n", AttrKind::kU32}};

Result<std::vector<TensorSpec>> infer_split_by(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(0), in[0].rank(), "axis"));
  const std::int64_t n = attrs.i(1);
  if (n < 1 || n > kMaxParts) return fail(rules::bad_payload("n"));
  std::vector<Dim> sizes(static_cast<std::size_t>(n), Dim::anonymous());
  const Dim& dim = in[0].dims[axis];
  if (!rules::at(in, 1).absent) {
    CYB_TRY(rules::want_list(in, 1));
    if (const auto* value = rules::value_of(in, 1)) sizes = *value;
    const bool known = rules::constants_of(in, 1).has_value();
    Dim total;
    for (const Dim& size : sizes) {
      if (size.is_constant() && size.constant() < 0) return fail(rules::bad_payload("sizes"));
      total = total + size;
    }
    const bool wrong =
        static_cast<std::int64_t>(sizes.size()) != n || (known && certainly_differ(total, dim));
    if (wrong) return fail(rules::bad_shape(dims_text(in[0].dims), dims_text(sizes)));
  } else if (dim.is_constant()) {
    const std::int64_t each = (dim.constant() + n - 1) / n;
    for (std::int64_t i = 0; i < n; ++i) {
      sizes[static_cast<std::size_t>(i)] =
          std::clamp<std::int64_t>(dim.constant() - i * each, 0, each);
    }
  } else if (const auto part = dim.divided_by(n)) {
    sizes.assign(static_cast<std::size_t>(n), *part);
  }
  return parts(in[0], axis, sizes);
}

}  // namespace

OpImpl impl_Chunk() {
  return {.attrs = kChunkAttrs,
          .infer = infer_chunk,
          .reference = reference_parts,
          .count = [](const Attrs& a) { return std::size_t{a.u32(1)}; }};
}
OpImpl impl_SplitBy() {
  return {.attrs = kByAttrs,
          .infer = infer_split_by,
          .reference = reference_parts,
          .count = [](const Attrs& a) { return std::size_t{a.u32(1)}; }};
}

}  // namespace cyb
