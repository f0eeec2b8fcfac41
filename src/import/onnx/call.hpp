// Call: one ONNX node while it is lowered. Errors stick: after the first one everything answers
// with absent values, and the node is refused with that error, so that a lowering reads like its
// formula.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "import/onnx/builder.hpp"

namespace cyb::onnx {

class Call {
 public:
  Call(Builder& builder, ExternalFiles& files, const NodeProto& node, std::int64_t opset,
       std::vector<Val> inputs);

  // Inputs and outputs.
  std::size_t n_in() const noexcept { return inputs_.size(); }
  Val in(std::size_t k) const noexcept {
    n_read_ = k < n_read_ ? n_read_ : k + 1;
    return k < inputs_.size() ? inputs_[k] : 0;
  }
  bool has(std::size_t k) const noexcept { return in(k) != 0; }
  std::size_t n_out() const noexcept { return node_.outputs.size(); }
  bool wants(std::size_t k) const noexcept {
    return k < node_.outputs.size() && !node_.outputs[k].empty();
  }
  void out(std::size_t k, Val value);
  std::string_view op() const noexcept { return node_.op_type; }
  /// A number of this node's own, the same in every import: seeds of what has none.
  std::uint64_t key() const noexcept;
  std::int64_t opset() const noexcept { return opset_; }
  /// True if the graph may replace output 0 where it is NaN.
  bool nan_tested() const noexcept { return nan_tested_; }
  void set_nan_tested(bool value) noexcept { nan_tested_ = value; }

  // Attributes: those that are not read are refused after the lowering.
  bool has_attr(std::string_view name);
  std::int64_t i(std::string_view name, std::int64_t fallback);
  double f(std::string_view name, double fallback);
  std::string s(std::string_view name, std::string_view fallback);
  std::vector<std::int64_t> ints(std::string_view name, std::vector<std::int64_t> fallback = {});
  std::vector<float> floats(std::string_view name);
  std::vector<std::string> strings(std::string_view name);
  std::optional<HostTensor> tensor(std::string_view name);
  /// An element type as our dtype; refused by name where there is none.
  DType type(std::string_view name, DType fallback);
  /// Says that an attribute changes nothing.
  void ignore(std::initializer_list<std::string_view> names);

  // What is known of a value. Safe for any value and index.
  const TensorSpec& spec(Val value) const { return builder_.spec(value); }
  DType dtype(Val value) const { return spec(value).dtype; }
  std::size_t rank(Val value) const { return spec(value).rank(); }
  Dim dim(Val value, std::size_t axis) const;
  /// A dimension that is a number; refused by name where it is not.
  std::int64_t size(Val value, std::size_t axis, std::string_view what);
  std::vector<std::int64_t> sizes(Val value, std::string_view what);
  const HostTensor* known(Val value) const { return builder_.known(value); }
  std::optional<std::vector<std::int64_t>> known_ints(Val value) const;
  /// Integers that must be known at import; refused by name where they are not.
  std::vector<std::int64_t> const_ints(Val value, std::string_view what);
  std::optional<std::vector<Dim>> dims(Val value) const { return builder_.dims(value); }
  /// `axis` in 0..rank-1.
  std::size_t axis(std::int64_t axis, std::size_t rank);
  std::vector<std::int64_t> axes(std::vector<std::int64_t> axes, std::size_t rank);

  // Emission.
  Val emit(std::string_view op, std::vector<NamedAttr> attrs, std::vector<Val> inputs);
  std::vector<Val> emit_all(std::string_view op, std::vector<NamedAttr> attrs,
                            std::vector<Val> inputs);
  Val emit(std::string_view op, std::vector<Val> inputs) { return emit(op, {}, std::move(inputs)); }
  Val constant(HostTensor tensor);
  /// A scalar (rank 0) of a float or integer dtype.
  Val scalar(double value, DType dtype);
  /// i64 [n].
  Val int_list(std::span<const std::int64_t> values);
  Val cast(Val value, DType dtype);
  Val reshape(Val value, std::vector<std::int64_t> shape);
  /// To a shape of dimensions, -1 for the one that follows; absent where attributes cannot say it.
  Val reshape_to(Val value, const std::vector<Dim>& shape);
  /// To the shape of another value.
  Val reshape_like(Val value, Val like);
  /// The same values; a name of their own.
  Val copy(Val value);
  /// Input k if it is there, else an attribute's integers as a constant; absent if neither is.
  Val list_input(std::size_t k, std::string_view attribute);
  Val permute(Val value, std::vector<std::int64_t> dims);
  Val slice(Val value, std::size_t axis, std::int64_t start, std::int64_t end,
            std::int64_t step = 1);
  Val concat(std::vector<Val> values, std::size_t axis);
  Val shape_of(Val value);
  /// A constant matrix with its last two dimensions swapped, or the op that swaps them.
  Val swapped(Val value);
  Val reduce(std::string_view op, Val value, std::vector<std::int64_t> axes, bool keep);
  Builder& builder() noexcept { return builder_; }

  /// What the file does not say, or says in two ways; for people.
  void assume(std::string what) { assumptions_.push_back(std::move(what)); }
  std::vector<std::string> take_assumptions() noexcept { return std::move(assumptions_); }

  // Errors.
  void refuse(const std::string& why);
  void fail_with(Error error);
  bool ok() const noexcept { return !error_; }
  /// The node's outputs, or why it is refused.
  Result<std::vector<Val>> finish();

 private:
  const AttributeProto* attr(std::string_view name, AttributeType type);

  Builder& builder_;
  ExternalFiles& files_;
  const NodeProto& node_;
  std::int64_t opset_;
  std::vector<Val> inputs_, outputs_;
  std::vector<bool> read_;  // of each attribute
  std::vector<std::string> assumptions_;
  mutable std::size_t n_read_ = 0;  // inputs that the lowering asked for: more are refused
  bool nan_tested_ = false;
  std::optional<Error> error_;
};

using LowerFn = void (*)(Call&);

/// One row of the table: from opset `since` of its domain on.
struct OpRow {
  std::string_view name;
  std::int64_t since;
  LowerFn lower;
};

/// The row of an op; null: there is none.
const OpRow* find_row(std::string_view domain, std::string_view name) noexcept;

/// In lower_recurrent.cpp.
void lower_dynamic_lstm(Call& call);

// The tables, one for each file lower_<group>.cpp.
std::span<const OpRow> rows_math() noexcept;
std::span<const OpRow> rows_layout() noexcept;
std::span<const OpRow> rows_index() noexcept;
std::span<const OpRow> rows_activation() noexcept;
std::span<const OpRow> rows_reduce() noexcept;
std::span<const OpRow> rows_linear() noexcept;
std::span<const OpRow> rows_norm() noexcept;
std::span<const OpRow> rows_conv() noexcept;
std::span<const OpRow> rows_image() noexcept;
std::span<const OpRow> rows_recurrent() noexcept;
std::span<const OpRow> rows_quant() noexcept;
std::span<const OpRow> rows_signal() noexcept;
std::span<const OpRow> rows_attention() noexcept;
std::span<const OpRow> rows_random() noexcept;
std::span<const OpRow> rows_contrib() noexcept;
std::span<const OpRow> rows_contrib_attention() noexcept;

}  // namespace cyb::onnx
