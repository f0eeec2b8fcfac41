// The op registry: tags, attribute schemas, shape rules, f32 references and decompositions, one
// line each in op_list.inc (op_tags.inc has the numbers, planned ops included). Mathematics and
// tags: docs/ir.md. The reference of an op is its specification; nothing here is tuned for speed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "ops/dim.hpp"
#include "tensor/tensor_view.hpp"

namespace cyb {

class ThreadPool;

enum class OpTag : std::uint16_t {
#define CYB_TAG(name, tag) k##name = tag,
#include "ops/op_tags.inc"
#undef CYB_TAG
};

enum class AttrKind : std::uint8_t {
  kU8,
  kU32,
  kU64,
  kI32,
  kI64,
  kF32,
  kU32List,
  kI32List,
  kI64List,
  kBytes,
  kGraph  // a whole graph in binary form, as bytes
};

struct AttrSpec {
  std::string_view name;
  AttrKind kind;
};

/// u64 values are kept as the bit-equal int64.
using AttrValue =
    std::variant<std::int64_t, float, std::vector<std::int64_t>, std::vector<std::byte>>;

/// Attribute values in the order of the op's schema.
struct Attrs {
  std::vector<AttrValue> values;

  std::int64_t i(std::size_t k) const { return std::get<std::int64_t>(values[k]); }
  std::uint32_t u32(std::size_t k) const { return static_cast<std::uint32_t>(i(k)); }
  float f(std::size_t k) const { return std::get<float>(values[k]); }
  const std::vector<std::int64_t>& list(std::size_t k) const {
    return std::get<std::vector<std::int64_t>>(values[k]);
  }
  const std::vector<std::byte>& bytes(std::size_t k) const {
    return std::get<std::vector<std::byte>>(values[k]);
  }
  bool operator==(const Attrs&) const = default;
};

struct Op {
  OpTag tag;
  Attrs attrs;
};

struct NamedAttr {
  std::string_view name;
  AttrValue value;
};
/// An op with these attributes by field name; the fields not named are 0 or empty. Error: an
/// unknown field or a value of another kind (G04).
Result<Op> make_op(OpTag tag, std::initializer_list<NamedAttr> attrs = {});
Result<Op> make_op(OpTag tag, std::span<const NamedAttr> attrs);

/// Tolerance classes of spec ir section 4.
enum class ToleranceClass : std::uint8_t { kX, kE, kM, kA, kF };

/// One call of an op's f32 reference on host tensors. Outputs are allocated with the inferred
/// shapes.
struct RefCall {
  const Attrs& attrs;
  std::span<const TensorView> inputs;  // absent optional inputs: data == nullptr
  std::span<const MutableTensorView> outputs;
  // The op's state_specs(), read and changed in place; empty: the run starts from zeros.
  std::span<const MutableTensorView> state = {};
  ThreadPool* pool = nullptr;  // splits independent rows; any number of threads gives the same bits
};

/// A value inside a recording or a plan under construction; 0 is "absent".
using ValueId = std::uint32_t;
inline constexpr ValueId kNoValue = 0;

/// Where ops are emitted: the graph recorder and the plan builder implement it; decompositions
/// write to it.
class OpSink {
 public:
  virtual ~OpSink() = default;
  /// Emits one op; returns its outputs. A sink that cannot take a fused op decomposes it.
  virtual Result<std::vector<ValueId>> emit(const Op& op, std::span<const ValueId> inputs) = 0;
  /// An f32 constant tensor.
  virtual Result<ValueId> constant(std::span<const float> values, const Shape& shape) = 0;
  /// The run's absolute positions, i32 [S]: the graph input `pos`.
  virtual Result<ValueId> positions();
  /// Spec of a value emitted before (symbols are those of the sink).
  virtual const TensorSpec& spec(ValueId value) const = 0;
};

using InferFn = Result<std::vector<TensorSpec>> (*)(const Attrs&,
                                                    std::span<const TensorSpec> inputs);
using ReferenceFn = Result<void> (*)(const RefCall&);
/// True if input `input` may be a weight of a block, bf16, f16 or fixed dtype, read as it is
/// stored.
using EncodedInputFn = bool (*)(const Attrs&, std::size_t input);
/// Shapes of the outputs from the data of the inputs; shapes and dtypes were checked by infer.
using RunShapesFn = Result<std::vector<Shape>> (*)(const Attrs&,
                                                   std::span<const TensorView> inputs);
using DecomposeFn = Result<std::vector<ValueId>> (*)(const Attrs&, std::span<const ValueId> inputs,
                                                     OpSink&);

struct OpInfo {
  OpTag tag;
  std::string_view name;
  std::uint8_t min_inputs, max_inputs;  // max 255: any number
  std::uint8_t n_outputs;               // 0: given by the attributes
  ToleranceClass cls;
  bool fused;  // has a decomposition; never in a file unless its tag is 180..199
  std::span<const AttrSpec> attrs;
  InferFn infer;
  ReferenceFn reference;               // null: stateful or fused; the reference backend composes it
  DecomposeFn decompose;               // null unless fused
  EncodedInputFn encoded_input;        // null: no input may be encoded
  RunShapesFn run_shapes;              // null: infer gives the shapes, with Specs that carry values
  InferFn state;                       // null: a pure function, or KvCache
  std::size_t (*count)(const Attrs&);  // null: n_outputs
};

/// Null for an unknown tag or name.
const OpInfo* find_op(std::uint16_t tag) noexcept;
const OpInfo* find_op(std::string_view name) noexcept;
const OpInfo& op_info(OpTag tag) noexcept;
std::span<const OpInfo> all_ops() noexcept;

/// Rule (a) of spec ir section 2. A weight that an op does not take encoded is given to it as f32
/// (rule b).
bool takes_encoded(const Op& op, std::size_t input) noexcept;

/// Attribute values have the kinds and ranges of the schema. Error: G04, message "bad payload:
/// <field>".
Result<void> check_attr_kinds(const Op& op);

/// Checks attribute kinds and the number of inputs, then runs the shape rule. An absent optional
/// input is TensorSpec::none(), or left out at the end. Errors carry the code G04 (bad payload),
/// G05 (number of inputs), G09 (dtype) or G10 (shape); message() is the tail of that rule's text,
/// the outer frame is "Op::<name>". Kinds: kShapeMismatch (G10), else kInvalidInput.
Result<std::vector<TensorSpec>> infer(const Op& op, std::span<const TensorSpec> inputs);

/// Specs of the tensors that the op keeps between runs; empty for pure functions.
Result<std::vector<TensorSpec>> state_specs(const Op& op, std::span<const TensorSpec> inputs);

/// Spec of a concrete tensor, with the value of small integer ones.
TensorSpec spec_with_value(const TensorView& view);

/// Concrete shapes of the outputs for these inputs, dimensions that depend on data included. Runs
/// `infer` too. Errors as infer; G10 where a dimension is not known even now.
Result<std::vector<TensorSpec>> run_specs(const Op& op, std::span<const TensorView> inputs);

/// True if a run may have another shape than `infer` says with unbound symbols: the executor asks
/// run_specs before each run of such a node.
bool has_data_dims(std::span<const TensorSpec> outputs) noexcept;

/// Number of outputs, also where the attributes decide it.
Result<std::size_t> output_count(const Op& op);

/// Emits a fused op as plain ops. kInternal if the op has no decomposition.
Result<std::vector<ValueId>> decompose(const Op& op, std::span<const ValueId> inputs, OpSink& sink);

}  // namespace cyb
