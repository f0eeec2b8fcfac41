// Tensors made from parameters: Range, Iota, ConstantOfShape, EyeLike, Tile, OneHot.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/layout/reshape.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::int64_t kMaxRange = std::int64_t{1} << 40;

/// ceil((limit - start) / delta), at least 0.
Result<std::int64_t> range_length(const TensorView& start, const TensorView& limit,
                                  const TensorView& delta) {
  if (rules::is_int(start.dtype)) {
    const std::int64_t a = ref::integer_at(start, 0), b = ref::integer_at(limit, 0),
                       d = ref::integer_at(delta, 0);
    if (d == 0) return fail(invalid_input("Op::Range: delta is 0"));
    __extension__ typedef __int128 Wide;
    const Wide gap = static_cast<Wide>(b) - a;
    if ((gap > 0) != (d > 0) || gap == 0) return 0;
    const Wide n = (gap + d + (d > 0 ? -1 : 1)) / d;
    if (n > kMaxRange) return fail(invalid_input("Op::Range: too long"));
    return static_cast<std::int64_t>(n);
  }
  const double n =
      std::ceil((ref::number_at(limit, 0) - ref::number_at(start, 0)) / ref::number_at(delta, 0));
  if (n != n || n > static_cast<double>(kMaxRange))
    return fail(invalid_input("Op::Range: no length"));
  return n < 0.0 ? 0 : static_cast<std::int64_t>(n);
}

Result<std::vector<TensorSpec>> infer_range(const Attrs&, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_TRY(rules::want_same_dtype(in));
  for (const TensorSpec& spec : in) {
    if (!(rules::product(spec.dims) == Dim(1)))
      return fail(rules::bad_shape(dims_text(spec.dims), "one value"));
  }
  TensorSpec out{in[0].dtype, {Dim::anonymous()}};
  const auto start = rules::constants_of(in, 0), delta = rules::constants_of(in, 2);
  const auto* limit = rules::value_of(in, 1);
  if (!start || !delta || limit == nullptr) return std::vector{std::move(out)};
  const std::int64_t a = (*start)[0], d = (*delta)[0];
  if (a == 0 && d == 1 && !(*limit)[0].is_constant()) out.dims[0] = (*limit)[0];
  const auto end = rules::constants_of(in, 1);
  if (!end || d == 0) return std::vector{std::move(out)};
  std::vector<Dim> value;
  for (std::int64_t v = a; d > 0 ? v < (*end)[0] : v > (*end)[0]; v += d) {
    if (static_cast<std::int64_t>(value.size()) == rules::kMaxValues)
      return std::vector{std::move(out)};
    value.emplace_back(v);
  }
  out.dims[0] = static_cast<std::int64_t>(value.size());
  out.value = std::move(value);
  return std::vector{std::move(out)};
}

Result<std::vector<Shape>> range_shapes(const Attrs&, std::span<const TensorView> in) {
  CYB_ASSIGN(const std::int64_t n, range_length(in[0], in[1], in[2]));
  return std::vector{Shape{n}};
}

Result<void> reference_range(const RefCall& call) {
  return ref::visit_number(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> start(call.inputs[0]), delta(call.inputs[2]);
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      y[i] = static_cast<C>(start[0] + ref::multiply(static_cast<C>(i), delta[0]));
    }
    y.finish();
    return {};
  });
}

constexpr std::array kIotaAttrs = {AttrSpec{"start", AttrKind::kI64},
                                   AttrSpec{"dim", AttrKind::kI64}};

/// A dimension as graph files store it.
Dim stored_dim(std::int64_t d) {
  if (d >= 0) return d;
  return d == -1 ? Dim::anonymous() : Dim::symbol(static_cast<std::uint32_t>(-(d + 2)));
}

Result<std::vector<TensorSpec>> infer_iota(const Attrs& attrs, Specs) {
  const std::int64_t d = attrs.i(1);
  if (d == -1 || d < -1 - std::int64_t{std::numeric_limits<std::uint16_t>::max()})
    return fail(rules::bad_payload("dim"));
  return rules::one(DType::kI32, {stored_dim(d)});
}

Result<void> reference_iota(const RefCall& call) {
  const std::int64_t start = call.attrs.i(0), n = call.outputs[0].shape.count();
  using Limits = std::numeric_limits<std::int32_t>;
  const bool fits =
      start >= Limits::lowest() && start <= Limits::max() && start + n - 1 <= Limits::max();
  if (n > 0 && !fits) return fail(invalid_input("Op::Iota: values beyond i32"));
  for (std::int64_t i = 0; i < n; ++i)
    call.outputs[0].as<std::int32_t>()[i] = static_cast<std::int32_t>(start + i);
  return {};
}

constexpr std::array kFillAttrs = {AttrSpec{"dtype", AttrKind::kU8},
                                   AttrSpec{"value", AttrKind::kBytes}};

Result<std::vector<TensorSpec>> infer_fill(const Attrs& attrs, Specs in) {
  const auto dtype = dtype_from_tag(static_cast<std::uint8_t>(attrs.i(0)));
  if (!dtype || !rules::is_element(*dtype)) return fail(rules::bad_payload("dtype"));
  if (attrs.bytes(1).size() != ref::element_bytes(*dtype)) return fail(rules::bad_payload("value"));
  CYB_TRY(rules::want_list(in, 0));
  TensorSpec out{*dtype, {}};
  CYB_ASSIGN(out.dims, layout::listed_dims(in, 0));
  const bool vector = out.rank() <= 1 && (out.rank() == 0 || out.dims[0].is_constant());
  const std::int64_t n = out.rank() == 0 ? 1 : out.dims[0].constant();
  if (vector && n <= rules::kMaxValues && rules::is_int(*dtype)) {
    const TensorView one{*dtype, Shape{}, attrs.bytes(1).data()};
    out.value.emplace(static_cast<std::size_t>(n), Dim(ref::integer_at(one, 0)));
  }
  return std::vector{std::move(out)};
}

Result<void> reference_fill(const RefCall& call) {
  const std::vector<std::byte>& value = call.attrs.bytes(1);
  const auto n = static_cast<std::size_t>(call.outputs[0].shape.count());
  for (std::size_t i = 0; i < n; ++i)
    std::memcpy(call.outputs[0].data + i * value.size(), value.data(), value.size());
  return {};
}

constexpr std::array kEyeAttrs = {AttrSpec{"dtype", AttrKind::kU8}, AttrSpec{"k", AttrKind::kI32}};

Result<std::vector<TensorSpec>> infer_eye(const Attrs& attrs, Specs in) {
  const auto dtype = dtype_from_tag(static_cast<std::uint8_t>(attrs.i(0)));
  if (!dtype || !rules::is_element(*dtype)) return fail(rules::bad_payload("dtype"));
  CYB_TRY(rules::want_rank(in, 0, 2));
  return rules::one(*dtype, in[0].dims);
}

Result<void> reference_eye(const RefCall& call) {
  const Shape& shape = call.outputs[0].shape;
  const DType dtype = call.outputs[0].dtype == DType::kBool ? DType::kU8 : call.outputs[0].dtype;
  return ref::visit_number(dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    ref::Outputs<C> y(call.outputs[0]);
    for (std::int64_t i = 0; i < shape.count(); ++i) {
      const bool on = i % shape[1] == i / shape[1] + call.attrs.i(1);
      y[static_cast<std::size_t>(i)] = on ? C{1} : C{0};
    }
    y.finish();
    return {};
  });
}

Result<std::vector<TensorSpec>> infer_tile(const Attrs&, Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_list(in, 1));
  std::vector<Dim> dims(in[0].rank(), Dim::anonymous());
  if (const auto* repeats = rules::value_of(in, 1)) {
    if (repeats->size() != dims.size())
      return fail(rules::bad_shape(dims_text(in[1].dims), "one repeat per dimension"));
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if ((*repeats)[i].is_constant() && (*repeats)[i].constant() < 0)
        return fail(rules::bad_payload("repeats"));
      dims[i] = rules::product(std::array{in[0].dims[i], (*repeats)[i]});
    }
  }
  return rules::one(in[0].dtype, std::move(dims));
}

Result<void> reference_tile(const RefCall& call) {
  const TensorView& x = call.inputs[0];
  const auto strides = ref::strides_of(x.shape);
  return ref::visit_size(x.dtype, [&]<class T>(ref::Type<T>) -> Result<void> {
    ref::for_each_index(call.outputs[0].shape, [&](std::size_t i, const ref::Index& index) {
      std::size_t at = 0;
      for (std::size_t d = 0; d < x.shape.rank(); ++d)
        at += index[d] % ref::extent(x.shape, d) * strides[d];
      call.outputs[0].as<T>()[i] = x.as<T>()[at];
    });
    return {};
  });
}

Result<std::vector<TensorSpec>> infer_one_hot(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_TRY(rules::want_number(in, 1));
  if (!rules::is_element(in[2].dtype)) return fail(rules::bad_dtype(2, in[2].dtype));
  CYB_TRY(rules::want_dims(in, 2, std::array{Dim(2)}));
  CYB_ASSIGN(const std::size_t axis, rules::axis(attrs.i(0), in[0].rank() + 1, "axis"));
  std::vector<Dim> dims = in[0].dims;
  const auto* depth = rules::value_of(in, 1);
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis),
              depth != nullptr ? (*depth)[0] : Dim::anonymous());
  return rules::one(in[2].dtype, std::move(dims));
}

Result<std::vector<Shape>> one_hot_shapes(const Attrs& attrs, std::span<const TensorView> in) {
  const double depth = ref::number_at(in[1], 0);
  if (!(depth >= 0.0 && depth < 0x1p40)) return fail(invalid_input("Op::OneHot: bad depth"));
  const std::size_t rank = in[0].shape.rank() + 1, axis = ref::axis_of(attrs.i(0), rank);
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  for (std::size_t i = 0, from = 0; i < rank; ++i) {
    dims[i] = i == axis ? static_cast<std::int64_t>(depth) : in[0].shape[from++];
  }
  return std::vector{Shape(std::span(dims.data(), rank))};
}

Result<void> reference_one_hot(const RefCall& call) {
  const Shape& out = call.outputs[0].shape;
  const std::size_t axis = ref::axis_of(call.attrs.i(0), out.rank());
  const ref::AxisView view(out, axis);
  return ref::visit_size(call.outputs[0].dtype, [&]<class T>(ref::Type<T>) -> Result<void> {
    const T* values = call.inputs[2].as<T>();  // off, on
    for (std::size_t line = 0; line < view.lines(); ++line) {
      double index = std::trunc(ref::number_at(call.inputs[0], line));
      if (index < 0.0) index += static_cast<double>(view.n);
      for (std::size_t k = 0; k < view.n; ++k) {
        const bool on = index == static_cast<double>(k);
        call.outputs[0].as<T>()[view.base(line) + k * view.inner] = values[on ? 1 : 0];
      }
    }
    return {};
  });
}

constexpr std::array kAxisAttrs = {AttrSpec{"axis", AttrKind::kI32}};

}  // namespace

OpImpl impl_Range() {
  return {.infer = infer_range, .reference = reference_range, .run_shapes = range_shapes};
}
OpImpl impl_Iota() {
  return {.attrs = kIotaAttrs, .infer = infer_iota, .reference = reference_iota};
}
OpImpl impl_ConstantOfShape() {
  return {.attrs = kFillAttrs, .infer = infer_fill, .reference = reference_fill};
}
OpImpl impl_EyeLike() {
  return {.attrs = kEyeAttrs, .infer = infer_eye, .reference = reference_eye};
}
OpImpl impl_Tile() {
  return {.infer = infer_tile, .reference = reference_tile};
}
OpImpl impl_OneHot() {
  return {.attrs = kAxisAttrs,
          .infer = infer_one_hot,
          .reference = reference_one_hot,
          .run_shapes = one_hot_shapes};
}

}  // namespace cyb
