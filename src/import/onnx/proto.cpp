// The messages of onnx.proto3, field by field. Fields that the schema has and we do not use (and
// those that it does not have) are passed over, as protobuf demands.
#include "import/onnx/proto.hpp"

#include <fmt/format.h>

#include "base/json_text.hpp"
#include "base/limits.hpp"
#include "import/onnx/wire.hpp"

namespace cyb::onnx {
namespace {

/// Calls body(field) for each field of a message.
template <class F>
Result<void> each_field(Bytes message, F body) {
  WireReader in(message);
  while (!in.done()) {
    CYB_ASSIGN(const WireField field, in.next());
    CYB_TRY(body(field));
  }
  return {};
}

Result<void> set(std::string_view& out, const WireField& field) {
  CYB_ASSIGN(out, as_text(field));
  return {};
}
Result<void> set(Bytes& out, const WireField& field) {
  CYB_ASSIGN(out, as_bytes(field));
  return {};
}
Result<void> set(std::int64_t& out, const WireField& field) {
  CYB_ASSIGN(out, as_int(field));
  return {};
}
Result<void> set(std::int32_t& out, const WireField& field) {
  CYB_ASSIGN(out, as_small(field));
  return {};
}
Result<void> set(float& out, const WireField& field) {
  CYB_ASSIGN(out, as_float(field));
  return {};
}
Result<void> add(std::vector<std::string_view>& out, const WireField& field) {
  CYB_ASSIGN(const std::string_view text, as_text(field));
  out.push_back(text);
  return {};
}

/// Appends what `parse` makes of the field, at most `limit` times.
template <class T>
Result<void> add(std::vector<T>& out, const WireField& field, Result<T> (*parse)(Bytes),
                 std::uint64_t limit, std::string_view what) {
  CYB_ASSIGN(const Bytes bytes, as_bytes(field));
  if (out.size() >= limit) return fail(onnx_error(fmt::format("more than {} {}", limit, what)));
  CYB_ASSIGN(T item, parse(bytes));
  out.push_back(std::move(item));
  return {};
}

Result<StringPair> parse_pair(Bytes bytes) {
  StringPair out;
  CYB_TRY(each_field(bytes, [&](const WireField& f) -> Result<void> {
    if (f.number == 1) return set(out.key, f);
    if (f.number == 2) return set(out.value, f);
    return {};
  }));
  return out;
}

Result<OpsetId> parse_opset(Bytes bytes) {
  OpsetId out;
  CYB_TRY(each_field(bytes, [&](const WireField& f) -> Result<void> {
    if (f.number == 1) return set(out.domain, f);
    if (f.number == 2) return set(out.version, f);
    return {};
  }));
  return out;
}

Result<DimProto> parse_dim(Bytes bytes) {
  DimProto out;
  CYB_TRY(each_field(bytes, [&](const WireField& f) -> Result<void> {
    if (f.number == 1) {
      CYB_ASSIGN(out.value, as_int(f));
    }
    if (f.number == 2) return set(out.param, f);
    return {};
  }));
  return out;
}

Result<void> parse_shape(Bytes bytes, ValueInfo& out) {
  out.has_shape = true;
  return each_field(bytes, [&](const WireField& f) -> Result<void> {
    if (f.number == 1) return add(out.dims, f, parse_dim, kMaxGraphRank, "dimensions");
    return {};
  });
}

Result<void> parse_tensor_type(Bytes bytes, ValueInfo& out) {
  out.is_tensor = true;
  return each_field(bytes, [&](const WireField& f) -> Result<void> {
    if (f.number == 1) return set(out.type, f);
    if (f.number != 2) return {};
    CYB_ASSIGN(const Bytes shape, as_bytes(f));
    return parse_shape(shape, out);
  });
}

Result<ValueInfo> parse_value(Bytes bytes) {
  ValueInfo out;
  CYB_TRY(each_field(bytes, [&](const WireField& f) -> Result<void> {
    if (f.number == 1) return set(out.name, f);
    if (f.number != 2) return {};
    CYB_ASSIGN(const Bytes type, as_bytes(f));
    return each_field(type, [&](const WireField& t) -> Result<void> {
      if (t.number != 1) return {};
      CYB_ASSIGN(const Bytes tensor, as_bytes(t));
      return parse_tensor_type(tensor, out);
    });
  }));
  if (out.name.empty()) return fail(onnx_error("an input, output or value without a name"));
  return out;
}

Result<AttributeType> attribute_type(const WireField& field) {
  CYB_ASSIGN(const std::int32_t type, as_small(field));
  if (type > 14) return fail(onnx_error(fmt::format("attribute type {}", type)));
  return static_cast<AttributeType>(type);
}

Result<void> read_attribute(const WireField& f, AttributeProto& out) {
  switch (f.number) {
    case 1:
      return set(out.name, f);
    case 2:
      return set(out.f, f);
    case 3:
      return set(out.i, f);
    case 4:
      return set(out.s, f);
    case 5:
    case 6:
      return set(out.message, f);
    case 7:
      return append_floats(f, out.floats);
    case 8:
      return append_ints(f, out.ints);
    case 9: {
      CYB_ASSIGN(const Bytes text, as_bytes(f));
      out.strings.push_back(text);
      return {};
    }
    case 20: {
      CYB_ASSIGN(out.type, attribute_type(f));
      return {};
    }
    case 21:
      return set(out.ref_name, f);
    default:
      return {};
  }
}

/// The type of an attribute whose `type` field is missing (IR version 1): from the field that is
/// there.
AttributeType type_of_field(std::uint32_t number) {
  switch (number) {
    case 2:
      return AttributeType::kFloat;
    case 3:
      return AttributeType::kInt;
    case 4:
      return AttributeType::kString;
    case 5:
      return AttributeType::kTensor;
    case 6:
      return AttributeType::kGraph;
    case 7:
      return AttributeType::kFloats;
    case 8:
      return AttributeType::kInts;
    case 9:
      return AttributeType::kStrings;
    default:
      return AttributeType::kNone;
  }
}

Result<AttributeProto> parse_attribute(Bytes bytes) {
  AttributeProto out;
  AttributeType seen = AttributeType::kNone;
  CYB_TRY(each_field(bytes, [&](const WireField& f) -> Result<void> {
    const AttributeType type = type_of_field(f.number);
    if (type != AttributeType::kNone) seen = type;
    return read_attribute(f, out);
  }));
  if (out.name.empty()) return fail(onnx_error("an attribute without a name"));
  if (out.type == AttributeType::kNone) out.type = seen;
  return out;
}

Result<NodeProto> parse_node(Bytes bytes) {
  NodeProto out;
  CYB_TRY(each_field(bytes, [&](const WireField& f) -> Result<void> {
    switch (f.number) {
      case 1:
        return add(out.inputs, f);
      case 2:
        return add(out.outputs, f);
      case 3:
        return set(out.name, f);
      case 4:
        return set(out.op_type, f);
      case 5:
        return add(out.attributes, f, parse_attribute, kMaxGraphNodes, "attributes");
      case 7:
        return set(out.domain, f);
      case 8:
        return set(out.overload, f);
      default:
        return {};
    }
  }));
  if (out.op_type.empty()) return fail(onnx_error("a node without an op_type"));
  if (out.domain == "ai.onnx") out.domain = {};
  return out;
}

Result<void> read_tensor(const WireField& f, TensorProto& out) {
  switch (f.number) {
    case 1:
      return append_ints(f, out.dims);
    case 2:
      return set(out.type, f);
    case 3:
      out.segmented = true;
      return {};
    case 4:
      return append_floats(f, out.floats);
    case 5:
    case 7:
    case 11:
      return append_ints(f, out.ints);
    case 6:
      ++out.n_strings;
      return {};
    case 8:
      return set(out.name, f);
    case 9: {
      CYB_ASSIGN(out.raw, as_bytes(f));
      return {};
    }
    case 10:
      return append_doubles(f, out.doubles);
    case 13:
      return add(out.external_data, f, parse_pair, 64, "entries of external_data");
    case 14: {
      CYB_ASSIGN(const std::int32_t location, as_small(f));
      if (location > 1) return fail(onnx_error(fmt::format("data_location {}", location)));
      out.external = location == 1;
      return {};
    }
    default:
      return {};
  }
}

Result<TensorProto> parse_initializer(Bytes bytes) {
  CYB_ASSIGN(TensorProto out, parse_tensor(bytes));
  if (out.name.empty()) return fail(onnx_error("an initializer without a name"));
  return out;
}

Result<FunctionProto> parse_function(Bytes bytes) {
  FunctionProto out;
  CYB_TRY(each_field(bytes, [&](const WireField& f) -> Result<void> {
    switch (f.number) {
      case 1:
        return set(out.name, f);
      case 4:
        return add(out.inputs, f);
      case 5:
        return add(out.outputs, f);
      case 6:
        return add(out.attributes, f);
      case 7:
        return add(out.nodes, f, parse_node, kMaxGraphNodes, "nodes");
      case 9:
        return add(out.opsets, f, parse_opset, 1024, "opset imports");
      case 10:
        return set(out.domain, f);
      case 11:
        return add(out.defaults, f, parse_attribute, kMaxGraphNodes, "attributes");
      case 13:
        return set(out.overload, f);
      default:
        return {};
    }
  }));
  if (out.name.empty()) return fail(onnx_error("a function without a name"));
  return out;
}

Result<void> read_model(const WireField& f, ModelProto& out, bool& has_graph) {
  switch (f.number) {
    case 1:
      return set(out.ir_version, f);
    case 2:
      return set(out.producer, f);
    case 3:
      return set(out.producer_version, f);
    case 4:
      return set(out.domain, f);
    case 7: {
      if (has_graph) return fail(onnx_error("two graphs in one model"));
      has_graph = true;
      CYB_ASSIGN(const Bytes graph, as_bytes(f));
      CYB_ASSIGN(out.graph, parse_graph(graph));
      return {};
    }
    case 8:
      return add(out.opsets, f, parse_opset, 1024, "opset imports");
    case 14:
      return add(out.metadata, f, parse_pair, kMaxGraphNodes, "metadata entries");
    case 25:
      return add(out.functions, f, parse_function, kMaxGraphNodes, "functions");
    default:
      return {};
  }
}

}  // namespace

Result<TensorProto> parse_tensor(Bytes bytes) {
  TensorProto out;
  CYB_TRY(each_field(bytes, [&](const WireField& f) { return read_tensor(f, out); }));
  if (out.dims.size() > kMaxGraphRank)
    return fail(onnx_error(fmt::format("tensor {}: rank {} > {}", json_quote(out.name),
                                       out.dims.size(), kMaxGraphRank)));
  return out;
}

Result<GraphProto> parse_graph(Bytes bytes) {
  GraphProto out;
  CYB_TRY(each_field(bytes, [&](const WireField& f) -> Result<void> {
    switch (f.number) {
      case 1:
        return add(out.nodes, f, parse_node, kMaxGraphNodes, "nodes");
      case 2:
        return set(out.name, f);
      case 5:
        return add(out.initializers, f, parse_initializer, kMaxTensors, "initializers");
      case 11:
        return add(out.inputs, f, parse_value, kMaxTensors, "inputs");
      case 12:
        return add(out.outputs, f, parse_value, kMaxTensors, "outputs");
      case 13:
        return add(out.values, f, parse_value, kMaxGraphNodes * 8, "values");
      case 15:
        ++out.n_sparse;
        return {};
      default:
        return {};
    }
  }));
  return out;
}

Result<ModelProto> parse_model(Bytes bytes) {
  ModelProto out;
  bool has_graph = false;
  CYB_TRY(each_field(bytes, [&](const WireField& f) { return read_model(f, out, has_graph); }));
  if (!has_graph) return fail(onnx_error("no graph"));
  if (out.ir_version < 1) return fail(onnx_error(fmt::format("ir_version {}", out.ir_version)));
  return out;
}

bool looks_like_model(Bytes bytes) noexcept {
  return bytes.size() >= 4 && bytes[0] == std::byte{8} && bytes[1] > std::byte{0} &&
         bytes[1] < std::byte{64};
}

}  // namespace cyb::onnx
