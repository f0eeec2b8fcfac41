// Slice (tag 280): one axis by attributes; SliceBy (372): any axes by tensors, negative steps.
// Bounds count from the end where negative and are clamped, as in NumPy.
#include <algorithm>
#include <limits>

#include "ops/layout/reshape.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

/// Elements first, first + step, ... of a dimension.
struct Cut {
  std::int64_t first = 0, step = 1, count = 0;
};

Cut cut_of(std::int64_t n, std::int64_t start, std::int64_t end, std::int64_t step) {
  const auto from_end = [n](std::int64_t v) { return v < 0 ? v + n : v; };
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  start = std::clamp(from_end(start), low, high);
  // An end below -n means "before the first element", which clamping finds.
  end = std::clamp(from_end(end), low, high);
  const std::int64_t gap = step > 0 ? end - start : start - end;
  if (gap <= 0) return {0, step, 0};
  const auto stride = step > 0 ? static_cast<std::uint64_t>(step)
                               : std::uint64_t{0} - static_cast<std::uint64_t>(step);
  return {start, step,
          static_cast<std::int64_t>((static_cast<std::uint64_t>(gap) - 1) / stride + 1)};
}

/// Length of [start, end) with step 1 of a symbolic dimension, where it has a form: bounds that
/// count from one side, with both ends known not to be clamped by anything but the dimension
/// itself.
Dim symbolic_length(const Dim& n, std::int64_t start, const Dim& end, std::int64_t step) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int32_t>::max();
  if (step == -1 && start == -1 && end.is_constant() && end.constant() <= -kFar) return n;
  if (step != 1) return Dim::anonymous();
  if (start == 0 && (end == n || (end.is_constant() && end.constant() >= kFar))) return n;
  return Dim::anonymous();
}

Dim cut_length(const Dim& n, const Dim& start, const Dim& end, std::int64_t step) {
  if (!start.is_constant()) return Dim::anonymous();
  if (n.is_constant() && end.is_constant()) {
    return cut_of(n.constant(), start.constant(), end.constant(), step).count;
  }
  return symbolic_length(n, start.constant(), end, step);
}

constexpr std::array kAttrs = {AttrSpec{"axis", AttrKind::kI32}, AttrSpec{"start", AttrKind::kI64},
                               AttrSpec{"end", AttrKind::kI64}, AttrSpec{"step", AttrKind::kI64}};

/// The elements of x's value that a constant cut keeps.
void cut_value(const TensorSpec& x, const Cut& cut, TensorSpec& out) {
  if (!x.value || x.rank() != 1) return;
  out.value.emplace();
  for (std::int64_t i = 0; i < cut.count; ++i) {
    out.value->push_back((*x.value)[static_cast<std::size_t>(cut.first + i * cut.step)]);
  }
}

Result<std::vector<TensorSpec>> infer_slice(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(0), in[0].rank(), "axis"));
  if (attrs.i(3) < 1) return fail(rules::bad_payload("step"));
  TensorSpec out{in[0].dtype, in[0].dims};
  out.dims[axis] = cut_length(in[0].dims[axis], attrs.i(1), attrs.i(2), attrs.i(3));
  if (in[0].dims[axis].is_constant()) {
    cut_value(in[0], cut_of(in[0].dims[axis].constant(), attrs.i(1), attrs.i(2), attrs.i(3)), out);
  }
  return std::vector{std::move(out)};
}

using Cuts = std::array<Cut, Shape::kMaxRank>;

void copy_cuts(const TensorView& x, const MutableTensorView& y, const Cuts& cuts) {
  const auto strides = ref::strides_of(x.shape);
  ref::visit_size(x.dtype, [&]<class T>(ref::Type<T>) {
    ref::for_each_index(y.shape, [&](std::size_t i, const ref::Index& index) {
      std::int64_t at = 0;
      for (std::size_t d = 0; d < x.shape.rank(); ++d) {
        const std::int64_t k = cuts[d].first + static_cast<std::int64_t>(index[d]) * cuts[d].step;
        at += k * static_cast<std::int64_t>(strides[d]);
      }
      y.as<T>()[i] = x.as<T>()[at];
    });
  });
}

Cuts whole(const Shape& shape) {
  Cuts cuts{};
  for (std::size_t d = 0; d < shape.rank(); ++d) cuts[d] = {0, 1, shape[d]};
  return cuts;
}

Result<void> reference_slice(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const std::size_t axis = ref::axis_of(call.attrs.i(0), shape.rank());
  Cuts cuts = whole(shape);
  cuts[axis] = cut_of(shape[axis], call.attrs.i(1), call.attrs.i(2), call.attrs.i(3));
  copy_cuts(call.inputs[0], call.outputs[0], cuts);
  return {};
}

/// Checks of the four lists: rank, equal lengths; the number of cuts.
Result<std::size_t> check_lists(Specs in) {
  const auto n = rules::length_of(in, 1);
  for (std::size_t k = 1; k < in.size(); ++k) {
    if (in[k].absent) continue;
    CYB_TRY(rules::want_list(in, k));
    const auto length = rules::length_of(in, k);
    if (n && length && *n != *length)
      return fail(rules::bad_shape(dims_text(in[k].dims), dims_text(in[1].dims)));
  }
  return static_cast<std::size_t>(n.value_or(0));
}

Result<std::vector<TensorSpec>> infer_slice_by(const Attrs&, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_ASSIGN(const std::size_t n, check_lists(in));
  TensorSpec out{in[0].dtype, in[0].dims};
  std::vector<std::int64_t> axes(n), steps(n, 1);
  for (std::size_t i = 0; i < n; ++i) axes[i] = static_cast<std::int64_t>(i);
  const bool has_axes = !rules::at(in, 3).absent, has_steps = !rules::at(in, 4).absent;
  const auto given_axes = rules::constants_of(in, 3), given_steps = rules::constants_of(in, 4);
  const auto *starts = rules::value_of(in, 1), *ends = rules::value_of(in, 2);
  if (has_axes && !given_axes) {  // any axis may be cut
    out.dims.assign(out.dims.size(), Dim::anonymous());
    return std::vector{std::move(out)};
  }
  if (has_axes) axes = *given_axes;
  if (given_steps) steps = *given_steps;
  const bool known = starts != nullptr && ends != nullptr && (!has_steps || given_steps);
  Cuts cuts = {};
  std::vector<bool> seen(in[0].rank(), false);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    CYB_ASSIGN(const std::size_t axis, rules::axis(axes[i], in[0].rank(), "axes"));
    if (seen[axis]) return fail(rules::bad_payload("axes"));
    seen[axis] = true;
    if (steps[i] == 0) return fail(rules::bad_payload("steps"));
    if (!known) {
      out.dims[axis] = Dim::anonymous();
      continue;
    }
    const Dim& dim = in[0].dims[axis];
    out.dims[axis] = cut_length(dim, (*starts)[i], (*ends)[i], steps[i]);
    const bool constant =
        dim.is_constant() && (*starts)[i].is_constant() && (*ends)[i].is_constant();
    if (constant && in[0].rank() == 1) {
      cuts[0] = cut_of(dim.constant(), (*starts)[i].constant(), (*ends)[i].constant(), steps[i]);
      cut_value(in[0], cuts[0], out);
    }
  }
  return std::vector{std::move(out)};
}

Result<void> reference_slice_by(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const auto starts = ref::integers(call.inputs[1]), ends = ref::integers(call.inputs[2]);
  const auto axes = ref::integers(ref::input(call, 3)), steps = ref::integers(ref::input(call, 4));
  Cuts cuts = whole(shape);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = axes.empty() ? i : ref::axis_of(axes[i], shape.rank());
    cuts[axis] = cut_of(shape[axis], starts[i], ends[i], steps.empty() ? 1 : steps[i]);
  }
  copy_cuts(call.inputs[0], call.outputs[0], cuts);
  return {};
}

}  // namespace

OpImpl impl_Slice() {
  return {.attrs = kAttrs, .infer = infer_slice, .reference = reference_slice};
}
OpImpl impl_SliceBy() {
  return {.infer = infer_slice_by, .reference = reference_slice_by};
}

}  // namespace cyb
