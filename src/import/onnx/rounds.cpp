// Scan (from opset 9) cuts its inputs along an axis; Loop counts. Both stack what each round gives.
#include "import/onnx/rounds.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "import/onnx/wire.hpp"

namespace cyb::onnx {
namespace {

// Nodes that rounds become at most, one round after the other; with more the Loop stays one.
constexpr std::int64_t kMaxUnrolled = 4096;

const AttributeProto* find(const NodeProto& node, std::string_view name) {
  const auto at = std::ranges::find(node.attributes, name, &AttributeProto::name);
  return at == node.attributes.end() ? nullptr : &*at;
}

std::int64_t item(const NodeProto& node, std::string_view name, std::size_t k) {
  const AttributeProto* list = find(node, name);
  return list == nullptr || k >= list->ints.size() ? 0 : list->ints[k];
}

Result<std::shared_ptr<const GraphProto>> body_of(const NodeProto& node) {
  const AttributeProto* body = find(node, "body");
  if (body == nullptr || body->type != AttributeType::kGraph) return fail(onnx_error("no body"));
  CYB_ASSIGN(GraphProto graph, parse_graph(body->message));
  return std::make_shared<const GraphProto>(std::move(graph));
}

/// The number of rounds; nullopt where it is not known.
Result<std::optional<std::int64_t>> scan_count(const Rounds& out, const Builder& builder) {
  std::optional<std::int64_t> count;
  for (const Scanned& cut : out.in) {
    const Dim& length = builder.spec(cut.value).dims[static_cast<std::size_t>(cut.axis)];
    if (!length.is_constant()) return std::nullopt;
    if (count && length.constant() != *count)
      return fail(onnx_error("scan inputs of different lengths"));
    count = length.constant();
  }
  return count;
}

std::optional<std::int64_t> loop_count(std::span<const Val> inputs, const Builder& builder) {
  if (inputs[0] == 0) return std::nullopt;
  const HostTensor* count = builder.known(inputs[0]);
  const auto values = count == nullptr ? std::nullopt : count->ints();
  if (!values || values->size() != 1) return std::nullopt;
  if (inputs[1] != 0) {
    const HostTensor* condition = builder.known(inputs[1]);
    if (condition == nullptr || condition->bytes.size() != 1) return std::nullopt;
    if (condition->bytes[0] == std::byte{0}) return 0;
  }
  return std::max<std::int64_t>((*values)[0], 0);
}

Result<Val> one(Builder& builder, std::string_view op, std::vector<NamedAttr> attrs,
                std::vector<Val> inputs) {
  CYB_ASSIGN(const std::vector<Val> out, builder.emit(op, std::move(attrs), std::move(inputs)));
  return out[0];
}

Result<Val> axis_list(Builder& builder, std::int64_t axis) {
  CYB_ASSIGN(HostTensor axes, HostTensor::of_ints(std::span(&axis, 1), Shape{1}));
  return builder.constant(std::move(axes));
}

}  // namespace

Result<std::int64_t> axis_place(std::int64_t axis, std::size_t rank) {
  const auto n = static_cast<std::int64_t>(rank);
  if (axis < -n || axis >= n)
    return fail(onnx_error(fmt::format("axis {} of rank {}", axis, rank)));
  return axis < 0 ? axis + n : axis;
}

Result<ScanShape> scan_shape(const NodeProto& node, std::span<const Val> inputs,
                             const Builder& builder) {
  const AttributeProto* number = find(node, "num_scan_inputs");
  const std::int64_t n = number == nullptr ? 0 : number->i;
  if (n < 1 || n > static_cast<std::int64_t>(inputs.size()))
    return fail(onnx_error(fmt::format("num_scan_inputs {}", n)));
  const std::size_t states = inputs.size() - static_cast<std::size_t>(n);
  ScanShape out;
  out.state.assign(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(states));
  for (std::size_t k = 0; k < static_cast<std::size_t>(n); ++k) {
    Scanned cut{inputs[states + k], 0, item(node, "scan_input_directions", k) != 0};
    CYB_ASSIGN(cut.axis,
               axis_place(item(node, "scan_input_axes", k), builder.spec(cut.value).rank()));
    out.in.push_back(cut);
  }
  return out;
}

std::vector<Scanned> scan_outputs(const NodeProto& node, std::size_t n) {
  std::vector<Scanned> out;
  for (std::size_t k = 0; k < n; ++k)
    out.push_back(
        {0, item(node, "scan_output_axes", k), item(node, "scan_output_directions", k) != 0});
  return out;
}

Result<std::optional<Rounds>> begin_rounds(const NodeProto& node, std::span<const Val> inputs,
                                           Builder& builder) {
  Rounds out;
  out.node = &node;
  out.given.assign(inputs.begin(), inputs.end());
  out.is_loop = node.op_type == "Loop";
  CYB_ASSIGN(out.body, body_of(node));
  std::optional<std::int64_t> count;
  if (out.is_loop) {
    if (inputs.size() < 2) return fail(onnx_error("a Loop without its count and condition"));
    count = loop_count(inputs, builder);
    out.carried.assign(inputs.begin() + 2, inputs.end());
  } else {
    CYB_ASSIGN(ScanShape shape, scan_shape(node, inputs, builder));
    out.carried = std::move(shape.state);
    out.in = std::move(shape.in);
    CYB_ASSIGN(count, scan_count(out, builder));
  }
  const std::size_t given = out.carried.size() + (out.is_loop ? 2 : out.in.size());
  const std::size_t first = out.carried.size() + (out.is_loop ? 1 : 0);
  if (out.body->inputs.size() != given || out.body->outputs.size() < first)
    return fail(onnx_error("a body with another number of inputs or outputs"));
  out.out = scan_outputs(node, out.body->outputs.size() - first);
  out.collected.resize(out.out.size());
  const auto nodes = static_cast<std::int64_t>(out.body->nodes.size());
  if (!count || *count > kMaxUnrolled / std::max<std::int64_t>(nodes, 1)) return std::nullopt;
  if (*count == 0 && !out.out.empty()) return std::nullopt;  // outputs of no round
  out.count = *count;
  return out;
}

bool run_decides(const Rounds& rounds, std::span<const Val> outputs, const Builder& builder) {
  if (!rounds.is_loop) return false;
  const HostTensor* condition = builder.known(outputs[0]);
  return condition == nullptr || condition->bytes.size() != 1;
}

Result<std::vector<std::pair<std::string_view, Val>>> round_inputs(const Rounds& rounds,
                                                                   Builder& builder) {
  std::vector<std::pair<std::string_view, Val>> out;
  std::size_t k = 0;
  const auto give = [&](Val value) { out.emplace_back(rounds.body->inputs[k++].name, value); };
  if (rounds.is_loop) {
    CYB_ASSIGN(HostTensor round, HostTensor::of_ints(std::span(&rounds.done, 1), Shape{}));
    give(builder.constant(std::move(round)));
    std::byte* data = nullptr;
    CYB_ASSIGN(HostTensor yes, HostTensor::allocate(DType::kBool, Shape{}, data));
    *data = std::byte{1};
    give(builder.constant(std::move(yes)));
  }
  for (const Val value : rounds.carried) give(value);
  for (const Scanned& cut : rounds.in) {
    const std::int64_t at = cut.reverse ? rounds.count - 1 - rounds.done : rounds.done;
    CYB_ASSIGN(const Val slice,
               one(builder, "Slice",
                   {{"axis", cut.axis}, {"start", at}, {"end", at + 1}, {"step", std::int64_t{1}}},
                   {cut.value}));
    CYB_ASSIGN(const Val axes, axis_list(builder, cut.axis));
    CYB_ASSIGN(const Val row, one(builder, "Squeeze", {}, {slice, axes}));
    give(row);
  }
  return out;
}

Result<bool> end_round(Rounds& rounds, std::span<const Val> outputs, const Builder& builder) {
  const std::size_t first = rounds.is_loop ? 1 : 0;
  for (std::size_t k = 0; k < rounds.carried.size(); ++k) rounds.carried[k] = outputs[first + k];
  for (std::size_t k = 0; k < rounds.collected.size(); ++k)
    rounds.collected[k].push_back(outputs[first + rounds.carried.size() + k]);
  ++rounds.done;
  if (!rounds.is_loop) return rounds.done < rounds.count;
  const HostTensor* condition = builder.known(outputs[0]);
  if (condition == nullptr) return fail(internal_error("a round that the run decides"));
  return condition->bytes[0] != std::byte{0} && rounds.done < rounds.count;
}

Result<std::vector<Val>> finish_rounds(const Rounds& rounds, Builder& builder) {
  std::vector<Val> out = rounds.carried;
  for (std::size_t k = 0; k < rounds.out.size(); ++k) {
    std::vector<Val> parts = rounds.collected[k];
    if (rounds.out[k].reverse) std::ranges::reverse(parts);
    const std::size_t rank = parts.empty() ? 0 : builder.spec(parts[0]).rank();
    CYB_ASSIGN(const std::int64_t axis, axis_place(rounds.out[k].axis, rank + 1));
    CYB_ASSIGN(const Val axes, axis_list(builder, axis));
    for (Val& part : parts) {
      CYB_ASSIGN(part, one(builder, "Unsqueeze", {}, {part, axes}));
    }
    CYB_ASSIGN(const Val stacked, one(builder, "Concat", {{"axis", axis}}, std::move(parts)));
    out.push_back(stacked);
  }
  return out;
}

}  // namespace cyb::onnx
