// The op registry, built from op_list.inc, and the checks that hold for every op.
#include "ops/op.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"

namespace cyb {

#define CYB_OP(name, tag, min_inputs, max_inputs, n_outputs, cls, fused) OpImpl impl_##name();
#include "ops/op_list.inc"
#undef CYB_OP

namespace {

struct OpRow {
  OpTag tag;
  std::string_view name;
  std::uint8_t min_inputs, max_inputs, n_outputs;
  ToleranceClass cls;
  bool fused;
};

OpInfo make_info(const OpRow& row, const OpImpl& impl) {
  return {row.tag,        row.name,           row.min_inputs,  row.max_inputs, row.n_outputs,
          row.cls,        row.fused,          impl.attrs,      impl.infer,     impl.reference,
          impl.decompose, impl.encoded_input, impl.run_shapes, impl.state,     impl.count};
}

#define CYB_OP(name, tag, min_inputs, max_inputs, n_outputs, cls, fused) \
  static_assert(static_cast<unsigned>(OpTag::k##name) == tag);
#include "ops/op_list.inc"
#undef CYB_OP

constexpr std::size_t kOpCount = 0
#define CYB_OP(name, tag, min_inputs, max_inputs, n_outputs, cls, fused) +1
#include "ops/op_list.inc"
#undef CYB_OP
    ;

using Registry = std::array<OpInfo, kOpCount>;

const Registry& registry() noexcept {
  static const Registry ops = [] {
    Registry rows = {{
#define CYB_OP(name, tag, min_inputs, max_inputs, n_outputs, cls, fused)                      \
  make_info(                                                                                  \
      {OpTag::k##name, #name, min_inputs, max_inputs, n_outputs, ToleranceClass::cls, fused}, \
      impl_##name()),
#include "ops/op_list.inc"
#undef CYB_OP
    }};
    std::ranges::sort(rows, {}, &OpInfo::tag);
    return rows;
  }();
  return ops;
}

bool integer_in_range(AttrKind kind, std::int64_t value) noexcept {
  switch (kind) {
    case AttrKind::kU8:
      return value >= 0 && value <= std::numeric_limits<std::uint8_t>::max();
    case AttrKind::kU32:
    case AttrKind::kU32List:
      return value >= 0 && value <= std::numeric_limits<std::uint32_t>::max();
    case AttrKind::kI32:
    case AttrKind::kI32List:
      return value >= std::numeric_limits<std::int32_t>::min() &&
             value <= std::numeric_limits<std::int32_t>::max();
    default:
      return true;
  }
}

bool value_fits(AttrKind kind, const AttrValue& value) noexcept {
  switch (kind) {
    case AttrKind::kF32:
      return std::holds_alternative<float>(value);
    case AttrKind::kBytes:
    case AttrKind::kGraph:
      return std::holds_alternative<std::vector<std::byte>>(value);
    case AttrKind::kU32List:
    case AttrKind::kI32List:
    case AttrKind::kI64List: {
      const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
      return list != nullptr &&
             std::ranges::all_of(*list, [kind](auto v) { return integer_in_range(kind, v); });
    }
    default: {
      const auto* number = std::get_if<std::int64_t>(&value);
      return number != nullptr && integer_in_range(kind, *number);
    }
  }
}

Result<void> check_input_count(const OpInfo& info, std::span<const TensorSpec> inputs) {
  std::size_t required = 0;  // leading inputs that are given
  while (required < inputs.size() && !inputs[required].absent) ++required;
  const bool any = info.max_inputs == 255;
  if (required >= info.min_inputs && (any || inputs.size() <= info.max_inputs)) return {};
  std::string needs = fmt::format("{}", info.min_inputs);
  if (any) needs += " or more";
  if (!any && info.max_inputs != info.min_inputs) needs += fmt::format(" to {}", info.max_inputs);
  return fail(rules::bad_count(std::min(required, inputs.size()), needs));
}

}  // namespace

const OpInfo* find_op(std::uint16_t tag) noexcept {
  const auto& ops = registry();
  const auto it = std::ranges::lower_bound(ops, static_cast<OpTag>(tag), {}, &OpInfo::tag);
  return it != ops.end() && it->tag == static_cast<OpTag>(tag) ? &*it : nullptr;
}

const OpInfo* find_op(std::string_view name) noexcept {
  const auto it = std::ranges::find(registry(), name, &OpInfo::name);
  return it == registry().end() ? nullptr : &*it;
}

const OpInfo& op_info(OpTag tag) noexcept {
  return *find_op(static_cast<std::uint16_t>(tag));
}

std::span<const OpInfo> all_ops() noexcept {
  return registry();
}

bool takes_encoded(const Op& op, std::size_t input) noexcept {
  const OpInfo& info = op_info(op.tag);
  return info.encoded_input != nullptr && info.encoded_input(op.attrs, input);
}

Result<void> check_attr_kinds(const Op& op) {
  const OpInfo& info = op_info(op.tag);
  if (op.attrs.values.size() != info.attrs.size()) return fail(rules::bad_payload("length"));
  for (std::size_t k = 0; k < info.attrs.size(); ++k) {
    if (!value_fits(info.attrs[k].kind, op.attrs.values[k])) {
      return fail(rules::bad_payload(info.attrs[k].name));
    }
  }
  return {};
}

Result<std::vector<TensorSpec>> infer(const Op& op, std::span<const TensorSpec> inputs) {
  const OpInfo& info = op_info(op.tag);
  const auto run = [&]() -> Result<std::vector<TensorSpec>> {
    CYB_TRY(check_attr_kinds(op));
    CYB_TRY(check_input_count(info, inputs));
    CYB_ASSIGN(std::vector<TensorSpec> outputs, info.infer(op.attrs, inputs));
    for (const TensorSpec& output : outputs) {
      if (output.rank() > Shape::kMaxRank) {
        return fail(rules::bad_shape(dims_text(output.dims), "at most 8 dimensions"));
      }
    }
    return outputs;
  };
  auto result = run();
  if (!result) {
    return fail(std::move(result).error().in(fmt::format("Op::{}", info.name)));
  }
  return result;
}

Result<std::vector<TensorSpec>> state_specs(const Op& op, std::span<const TensorSpec> inputs) {
  const OpInfo& info = op_info(op.tag);
  if (info.state == nullptr) return std::vector<TensorSpec>{};
  CYB_TRY(infer(op, inputs));
  return info.state(op.attrs, inputs);
}

Result<std::size_t> output_count(const Op& op) {
  const OpInfo& info = op_info(op.tag);
  if (info.n_outputs != 0) return info.n_outputs;
  CYB_TRY(check_attr_kinds(op));
  return info.count(op.attrs);
}

Result<ValueId> OpSink::positions() {
  return fail(internal_error("this sink has no positions"));
}

Result<std::vector<ValueId>> decompose(const Op& op, std::span<const ValueId> inputs,
                                       OpSink& sink) {
  const OpInfo& info = op_info(op.tag);
  if (info.decompose == nullptr) {
    return fail(internal_error(fmt::format("Op::{} has no decomposition", info.name)));
  }
  return info.decompose(op.attrs, inputs, sink);
}

}  // namespace cyb
