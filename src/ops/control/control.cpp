// Rules of If and Loop. Their outputs are declared: a body is a graph, which this layer does not
// read; the validator holds the declaration against it.
#include "ops/control/control.hpp"

#include <array>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::array kIfAttrs = {AttrSpec{"then", AttrKind::kGraph},
                                 AttrSpec{"else", AttrKind::kGraph},
                                 AttrSpec{"outputs", AttrKind::kI64List}};
constexpr std::array kLoopAttrs = {AttrSpec{"body", AttrKind::kGraph},
                                   AttrSpec{"carried", AttrKind::kU32},
                                   AttrSpec{"outputs", AttrKind::kI64List}};
constexpr std::array<std::size_t, 2> kIfBodies = {0, 1};
constexpr std::array<std::size_t, 1> kLoopBodies = {0};
constexpr std::size_t kOutputs = 2;       // index of the field
constexpr std::size_t kMaxOutputs = 256;  // of one node

std::size_t declared_count(const Attrs& attrs) {
  const auto specs = declared_specs(attrs);
  return specs ? specs->size() : 0;
}

Result<std::vector<TensorSpec>> infer_if(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_dtype(in, 0, DType::kBool));
  CYB_TRY(rules::want_rank(in, 0, 0));
  for (std::size_t k = 1; k < in.size(); ++k) CYB_TRY(rules::want_elements(in, k));
  return declared_specs(attrs);
}

/// Inputs: count i64 []?, condition bool []?, the carried values, then what else the body reads.
Result<std::vector<TensorSpec>> infer_loop(const Attrs& attrs, Specs in) {
  const std::size_t carried = attrs.u32(1);
  if (in.size() < 2 || in.size() - 2 < carried)
    return fail(rules::bad_count(in.size(), "the count, the condition and the carried values"));
  if (!in[0].absent) {
    CYB_TRY(rules::want_dtype(in, 0, DType::kI64));
    CYB_TRY(rules::want_rank(in, 0, 0));
  }
  if (!in[1].absent) {
    CYB_TRY(rules::want_dtype(in, 1, DType::kBool));
    CYB_TRY(rules::want_rank(in, 1, 0));
  }
  for (std::size_t k = 2; k < in.size(); ++k) {
    if (in[k].absent) return fail(rules::bad_count(k, "every value that the body reads"));
    CYB_TRY(rules::want_elements(in, k));
  }
  CYB_ASSIGN(std::vector<TensorSpec> out, declared_specs(attrs));
  if (out.size() < carried) return fail(rules::bad_payload("carried"));
  for (std::size_t k = 0; k < carried; ++k) {
    if (out[k].dtype != in[2 + k].dtype) return fail(rules::bad_dtype(2 + k, in[2 + k].dtype));
    if (out[k].rank() != in[2 + k].rank()) {
      return fail(rules::bad_shape(dims_text(in[2 + k].dims), dims_text(out[k].dims)));
    }
  }
  for (std::size_t k = carried; k < out.size(); ++k) {
    if (out[k].rank() == 0) return fail(rules::bad_payload("outputs"));
  }
  return out;
}

}  // namespace

Result<std::vector<TensorSpec>> declared_specs(const Attrs& attrs) {
  const std::vector<std::int64_t>& list = attrs.list(kOutputs);
  std::vector<TensorSpec> out;
  for (std::size_t at = 0; at < list.size();) {
    if (out.size() == kMaxOutputs || at + 2 > list.size())
      return fail(rules::bad_payload("outputs"));
    const std::int64_t tag = list[at], rank = list[at + 1];
    const auto dtype =
        tag < 0 || tag > UINT8_MAX ? std::nullopt : dtype_from_tag(static_cast<std::uint8_t>(tag));
    at += 2;
    if (!dtype || !rules::is_element(*dtype) || rank < 0 ||
        rank > static_cast<std::int64_t>(Shape::kMaxRank) ||
        static_cast<std::size_t>(rank) > list.size() - at)
      return fail(rules::bad_payload("outputs"));
    TensorSpec spec{*dtype, {}};
    for (std::int64_t i = 0; i < rank; ++i, ++at) {
      if (list[at] < -1) return fail(rules::bad_payload("outputs"));
      spec.dims.push_back(list[at] < 0 ? Dim::anonymous() : Dim(list[at]));
    }
    out.push_back(std::move(spec));
  }
  if (out.empty()) return fail(rules::bad_payload("outputs"));
  return out;
}

std::span<const std::size_t> body_attrs(OpTag tag) noexcept {
  if (tag == OpTag::kIf) return kIfBodies;
  if (tag == OpTag::kLoop) return kLoopBodies;
  return {};
}

std::vector<std::int64_t> declared_outputs(std::span<const TensorSpec> specs) {
  std::vector<std::int64_t> out;
  for (const TensorSpec& spec : specs) {
    out.push_back(static_cast<std::int64_t>(spec.dtype));
    out.push_back(static_cast<std::int64_t>(spec.rank()));
    for (const Dim& dim : spec.dims) out.push_back(dim.is_constant() ? dim.constant() : -1);
  }
  return out;
}

BodyTypes body_types(const Op& op, std::span<const TensorSpec> inputs,
                     std::span<const TensorSpec> outputs) {
  BodyTypes out;
  if (op.tag == OpTag::kIf) {
    out.inputs.assign(inputs.begin() + 1, inputs.end());
    out.outputs.assign(outputs.begin(), outputs.end());
    return out;
  }
  const std::size_t carried = op.attrs.u32(1);
  out.inputs = {TensorSpec{DType::kI64, {}}, TensorSpec{DType::kBool, {}}};
  // The carried values as every round sees them: as declared.
  out.inputs.insert(out.inputs.end(), outputs.begin(),
                    outputs.begin() + static_cast<std::ptrdiff_t>(carried));
  out.inputs.insert(out.inputs.end(), inputs.begin() + static_cast<std::ptrdiff_t>(2 + carried),
                    inputs.end());
  out.outputs = {TensorSpec{DType::kBool, {}}};
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    TensorSpec spec = outputs[k];
    if (k >= carried) spec.dims.erase(spec.dims.begin());  // stacked along a new first axis
    out.outputs.push_back(std::move(spec));
  }
  return out;
}

OpImpl impl_If() {
  return {.attrs = kIfAttrs, .infer = infer_if, .count = declared_count};
}
OpImpl impl_Loop() {
  return {.attrs = kLoopAttrs, .infer = infer_loop, .count = declared_count};
}

}  // namespace cyb
