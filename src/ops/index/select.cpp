// Ops whose output length depends on data: NonZero (tag 381), Unique (386), Compress (390).
#include <algorithm>
#include <numeric>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

/// Flat indices of the elements that are not 0 (NaN counts).
std::vector<std::size_t> non_zero(const TensorView& x) {
  std::vector<std::size_t> out;
  const auto n = static_cast<std::size_t>(x.shape.count());
  for (std::size_t i = 0; i < n; ++i) {
    if (ref::number_at(x, i) != 0.0) out.push_back(i);
  }
  return out;
}

Result<std::vector<TensorSpec>> infer_non_zero(const Attrs&, Specs in) {
  if (!rules::is_element(in[0].dtype)) return fail(rules::bad_dtype(0, in[0].dtype));
  return rules::one(DType::kI64, {Dim(static_cast<std::int64_t>(in[0].rank())), Dim::anonymous()});
}

Result<std::vector<Shape>> non_zero_shapes(const Attrs&, std::span<const TensorView> in) {
  return std::vector{Shape{static_cast<std::int64_t>(in[0].shape.rank()),
                           static_cast<std::int64_t>(non_zero(in[0]).size())}};
}

Result<void> reference_non_zero(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const std::vector<std::size_t> found = non_zero(call.inputs[0]);
  auto* out = call.outputs[0].as<std::int64_t>();
  for (std::size_t k = 0; k < found.size(); ++k) {
    std::size_t rest = found[k];
    for (std::size_t d = shape.rank(); d-- > 0;) {
      out[d * found.size() + k] = static_cast<std::int64_t>(rest % ref::extent(shape, d));
      rest /= ref::extent(shape, d);
    }
  }
  return {};
}

constexpr std::array kCompressAttrs = {AttrSpec{"has_axis", AttrKind::kU8},
                                       AttrSpec{"axis", AttrKind::kI32}};

/// Positions below `n` that the condition keeps.
std::vector<std::size_t> kept(const TensorView& condition, std::size_t n) {
  std::vector<std::size_t> out;
  const auto length = std::min(n, static_cast<std::size_t>(condition.shape.count()));
  for (std::size_t i = 0; i < length; ++i) {
    if (condition.as<std::uint8_t>()[i] != 0) out.push_back(i);
  }
  return out;
}

Result<std::vector<TensorSpec>> infer_compress(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_dtype(in, 1, DType::kBool));
  CYB_TRY(rules::want_rank(in, 1, 1));
  if (attrs.i(0) == 0) return rules::one(in[0].dtype, {Dim::anonymous()});
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(1), in[0].rank(), "axis"));
  std::vector<Dim> dims = in[0].dims;
  dims[axis] = Dim::anonymous();
  return rules::one(in[0].dtype, std::move(dims));
}

Result<std::vector<Shape>> compress_shapes(const Attrs& attrs, std::span<const TensorView> in) {
  const Shape& x = in[0].shape;
  const bool has_axis = attrs.i(0) != 0;
  const std::size_t axis = has_axis ? ref::axis_of(attrs.i(1), x.rank()) : 0;
  const std::size_t n = has_axis ? ref::extent(x, axis) : static_cast<std::size_t>(x.count());
  const auto length = static_cast<std::int64_t>(kept(in[1], n).size());
  if (!has_axis) return std::vector{Shape{length}};
  Shape out = x;
  out[axis] = length;
  return std::vector{out};
}

Result<void> reference_compress(const RefCall& call) {
  const TensorView& x = call.inputs[0];
  const bool has_axis = call.attrs.i(0) != 0;
  const Shape shape = has_axis ? x.shape : Shape{x.shape.count()};
  const ref::AxisView view(shape, has_axis ? ref::axis_of(call.attrs.i(1), shape.rank()) : 0);
  const std::vector<std::size_t> rows = kept(call.inputs[1], view.n);
  const std::size_t bytes = view.inner * ref::element_bytes(x.dtype);
  for (std::size_t o = 0; o < view.outer; ++o) {
    for (std::size_t k = 0; k < rows.size() && bytes != 0; ++k) {
      std::memcpy(call.outputs[0].data + (o * rows.size() + k) * bytes,
                  x.data + (o * view.n + rows[k]) * bytes, bytes);
    }
  }
  return {};
}

constexpr std::array kUniqueAttrs = {AttrSpec{"has_axis", AttrKind::kU8},
                                     AttrSpec{"axis", AttrKind::kI32},
                                     AttrSpec{"sorted", AttrKind::kU8}};

/// Groups of equal slices of x [outer, n, inner] along its axis.
struct Groups {
  std::vector<std::size_t> first;    // [groups] first slice of each, in output order
  std::vector<std::size_t> group;    // [n] group of each slice
  std::vector<std::int64_t> counts;  // [groups]
};

struct Slices {
  const TensorView& x;
  ref::AxisView view;
  double at(std::size_t slice, std::size_t k) const {
    return ref::number_at(
        x, k / view.inner * view.n * view.inner + slice * view.inner + k % view.inner);
  }
  /// <0, 0, >0; NaN is the largest and equal to itself.
  int compare(std::size_t a, std::size_t b) const {
    for (std::size_t k = 0; k < view.outer * view.inner; ++k) {
      const double u = at(a, k), v = at(b, k);
      if (u < v || (u == u && v != v)) return -1;
      if (v < u || (v == v && u != u)) return 1;
    }
    return 0;
  }
};

Shape flat_or_axis(const Attrs& attrs, const Shape& shape) {
  return attrs.i(0) != 0 ? shape : Shape{shape.count()};
}
std::size_t unique_axis(const Attrs& attrs, const Shape& shape) {
  return attrs.i(0) != 0 ? ref::axis_of(attrs.i(1), shape.rank()) : 0;
}

Groups group_slices(const Attrs& attrs, const TensorView& x) {
  const Shape shape = flat_or_axis(attrs, x.shape);
  const Slices slices{x, ref::AxisView(shape, unique_axis(attrs, shape))};
  std::vector<std::size_t> order(slices.view.n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return slices.compare(a, b) < 0; });
  Groups out;
  out.group.resize(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    if (k == 0 || slices.compare(order[k - 1], order[k]) != 0) {
      out.first.push_back(order[k]);
      out.counts.push_back(0);
    }
    out.group[order[k]] = out.first.size() - 1;
    ++out.counts.back();
  }
  if (attrs.i(2) != 0) return out;
  std::vector<std::size_t> by_first(out.first.size()), place(out.first.size());
  std::iota(by_first.begin(), by_first.end(), std::size_t{0});
  std::ranges::sort(by_first, {}, [&](std::size_t g) { return out.first[g]; });
  Groups sorted{{}, out.group, {}};
  for (std::size_t k = 0; k < by_first.size(); ++k) {
    place[by_first[k]] = k;
    sorted.first.push_back(out.first[by_first[k]]);
    sorted.counts.push_back(out.counts[by_first[k]]);
  }
  for (std::size_t& g : sorted.group) g = place[g];
  return sorted;
}

Result<std::vector<TensorSpec>> infer_unique(const Attrs& attrs, Specs in) {
  if (!rules::is_element(in[0].dtype)) return fail(rules::bad_dtype(0, in[0].dtype));
  TensorSpec y{in[0].dtype, {Dim::anonymous()}};
  Dim n = rules::product(in[0].dims);
  if (attrs.i(0) != 0) {
    CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(1), in[0].rank(), "axis"));
    y.dims = in[0].dims;
    n = y.dims[axis];
    y.dims[axis] = Dim::anonymous();
  }
  const TensorSpec some{DType::kI64, {Dim::anonymous()}};
  return std::vector{std::move(y), some, TensorSpec{DType::kI64, {n}}, some};
}

Result<std::vector<Shape>> unique_shapes(const Attrs& attrs, std::span<const TensorView> in) {
  const Groups groups = group_slices(attrs, in[0]);
  const auto m = static_cast<std::int64_t>(groups.first.size());
  Shape y = flat_or_axis(attrs, in[0].shape);
  y[unique_axis(attrs, y)] = m;
  return std::vector{y, Shape{m}, Shape{static_cast<std::int64_t>(groups.group.size())}, Shape{m}};
}

Result<void> reference_unique(const RefCall& call) {
  const TensorView& x = call.inputs[0];
  const Groups groups = group_slices(call.attrs, x);
  const Shape shape = flat_or_axis(call.attrs, x.shape);
  const ref::AxisView view(shape, unique_axis(call.attrs, shape));
  const std::size_t bytes = view.inner * ref::element_bytes(x.dtype), m = groups.first.size();
  for (std::size_t o = 0; o < view.outer; ++o) {
    for (std::size_t k = 0; k < m && bytes != 0; ++k) {
      std::memcpy(call.outputs[0].data + (o * m + k) * bytes,
                  x.data + (o * view.n + groups.first[k]) * bytes, bytes);
    }
  }
  for (std::size_t k = 0; k < m; ++k) {
    call.outputs[1].as<std::int64_t>()[k] = static_cast<std::int64_t>(groups.first[k]);
    call.outputs[3].as<std::int64_t>()[k] = groups.counts[k];
  }
  for (std::size_t i = 0; i < groups.group.size(); ++i) {
    call.outputs[2].as<std::int64_t>()[i] = static_cast<std::int64_t>(groups.group[i]);
  }
  return {};
}

}  // namespace

OpImpl impl_NonZero() {
  return {.infer = infer_non_zero, .reference = reference_non_zero, .run_shapes = non_zero_shapes};
}
OpImpl impl_Compress() {
  return {.attrs = kCompressAttrs,
          .infer = infer_compress,
          .reference = reference_compress,
          .run_shapes = compress_shapes};
}
OpImpl impl_Unique() {
  return {.attrs = kUniqueAttrs,
          .infer = infer_unique,
          .reference = reference_unique,
          .run_shapes = unique_shapes};
}

}  // namespace cyb
