// Attributes by name, and the concrete shapes of one run: infer with the values that the tensors
// hold, or the op's own look at the data.
#include <fmt/format.h>

#include <algorithm>

#include "ops/op.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

AttrValue zero_of(AttrKind kind) {
  switch (kind) {
    case AttrKind::kF32:
      return 0.0F;
    case AttrKind::kBytes:
    case AttrKind::kGraph:
      return std::vector<std::byte>{};
    case AttrKind::kU32List:
    case AttrKind::kI32List:
    case AttrKind::kI64List:
      return std::vector<std::int64_t>{};
    default:
      return std::int64_t{0};
  }
}

}  // namespace

Result<Op> make_op(OpTag tag, std::span<const NamedAttr> attrs) {
  const std::span<const AttrSpec> schema = op_info(tag).attrs;
  Op op{tag, {}};
  for (const AttrSpec& field : schema) op.attrs.values.push_back(zero_of(field.kind));
  for (const NamedAttr& attr : attrs) {
    const auto field = std::ranges::find(schema, attr.name, &AttrSpec::name);
    if (field == schema.end()) return fail(rules::bad_payload(attr.name));
    op.attrs.values[static_cast<std::size_t>(field - schema.begin())] = attr.value;
  }
  CYB_TRY(check_attr_kinds(op));
  return op;
}

Result<Op> make_op(OpTag tag, std::initializer_list<NamedAttr> attrs) {
  return make_op(tag, std::span(attrs.begin(), attrs.size()));
}

TensorSpec spec_with_value(const TensorView& view) {
  if (!view.present()) return TensorSpec::none();
  TensorSpec spec = TensorSpec::of(view.dtype, view.shape);
  const bool small = view.shape.rank() <= 1 && view.shape.count() <= rules::kMaxValues;
  if (!small || !rules::is_int(view.dtype)) return spec;
  spec.value.emplace();
  for (std::int64_t i = 0; i < view.shape.count(); ++i) {
    spec.value->emplace_back(ref::integer_at(view, static_cast<std::size_t>(i)));
  }
  return spec;
}

bool has_data_dims(std::span<const TensorSpec> outputs) noexcept {
  return std::ranges::any_of(outputs, [](const TensorSpec& spec) {
    return std::ranges::any_of(spec.dims, [](const Dim& dim) { return dim.is_anonymous(); });
  });
}

Result<std::vector<TensorSpec>> run_specs(const Op& op, std::span<const TensorView> inputs) {
  std::vector<TensorSpec> specs;
  for (const TensorView& view : inputs) specs.push_back(spec_with_value(view));
  CYB_ASSIGN(std::vector<TensorSpec> outputs, infer(op, specs));
  const OpInfo& info = op_info(op.tag);
  if (has_data_dims(outputs) && info.run_shapes != nullptr) {
    auto shapes = info.run_shapes(op.attrs, inputs);
    if (!shapes) return fail(std::move(shapes).error().in(fmt::format("Op::{}", info.name)));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      outputs[i] = TensorSpec::of(outputs[i].dtype, (*shapes)[i]);
    }
  }
  for (const TensorSpec& spec : outputs) {
    if (!spec.bind({})) {
      return fail(rules::bad_shape(dims_text(spec.dims), "known dimensions")
                      .in(fmt::format("Op::{}", info.name)));
    }
  }
  return outputs;
}

}  // namespace cyb
