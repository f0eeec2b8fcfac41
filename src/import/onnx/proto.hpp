// Views of the messages of onnx.proto3: text, numbers and spans into the file's bytes. A graph
// inside an attribute stays bytes until someone asks for it, so that nothing here recurses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cyb::onnx {

using Bytes = std::span<const std::byte>;

/// TensorProto.DataType, AttributeProto.AttributeType: the schema's numbers.
enum ElementType : std::int32_t {
  kElemNone = 0,
  kElemFloat = 1,
  kElemUint8 = 2,
  kElemInt8 = 3,
  kElemUint16 = 4,
  kElemInt16 = 5,
  kElemInt32 = 6,
  kElemInt64 = 7,
  kElemString = 8,
  kElemBool = 9,
  kElemFloat16 = 10,
  kElemDouble = 11,
  kElemUint32 = 12,
  kElemUint64 = 13,
  kElemComplex64 = 14,
  kElemComplex128 = 15,
  kElemBfloat16 = 16,
  kElemFloat8E4M3FN = 17,
  kElemFloat8E4M3FNUZ = 18,
  kElemFloat8E5M2 = 19,
  kElemFloat8E5M2FNUZ = 20,
  kElemUint4 = 21,
  kElemInt4 = 22,
  kElemFloat4E2M1 = 23,
  kElemFloat8E8M0 = 24,
  kElemUint2 = 25,
  kElemInt2 = 26
};

struct StringPair {
  std::string_view key, value;
};

struct TensorProto {
  std::string_view name;
  std::vector<std::int64_t> dims;
  std::int32_t type = kElemNone;
  std::optional<Bytes> raw;
  // The typed fields, each empty unless used.
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::int64_t> ints;  // int32_data, int64_data, uint64_data
  std::size_t n_strings = 0;
  bool external = false;
  std::vector<StringPair> external_data;
  bool segmented = false;
};

enum class AttributeType : std::uint8_t {
  kNone = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparse = 11,
  kSparses = 12,
  kType = 13,
  kTypes = 14
};

struct AttributeProto {
  std::string_view name, ref_name;  // ref_name: the attribute of the function that is called
  AttributeType type = AttributeType::kNone;
  float f = 0;
  std::int64_t i = 0;
  Bytes s;        // any bytes
  Bytes message;  // tensor or graph
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<Bytes> strings;
};

struct NodeProto {
  std::string_view name, op_type, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<AttributeProto> attributes;
};

struct DimProto {
  std::optional<std::int64_t> value;
  std::string_view param;
};

struct ValueInfo {
  std::string_view name;
  bool is_tensor = false;
  std::int32_t type = kElemNone;
  bool has_shape = false;
  std::vector<DimProto> dims;
};

struct GraphProto {
  std::string_view name;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::size_t n_sparse = 0;
  std::vector<ValueInfo> inputs, outputs, values;
};

struct OpsetId {
  std::string_view domain;
  std::int64_t version = 0;
};

struct FunctionProto {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<AttributeProto> defaults;
  std::vector<NodeProto> nodes;
  std::vector<OpsetId> opsets;
};

struct ModelProto {
  std::int64_t ir_version = 0;
  std::string_view producer, producer_version, domain;
  std::vector<OpsetId> opsets;
  GraphProto graph;
  std::vector<FunctionProto> functions;
  std::vector<StringPair> metadata;
};

// Errors: Format with code "ONNX". The views live as long as the bytes.
Result<ModelProto> parse_model(Bytes bytes);
Result<GraphProto> parse_graph(Bytes bytes);
Result<TensorProto> parse_tensor(Bytes bytes);

/// True if the bytes begin as a ModelProto does: ir_version first, a small number. A hint only.
bool looks_like_model(Bytes bytes) noexcept;

}  // namespace cyb::onnx
