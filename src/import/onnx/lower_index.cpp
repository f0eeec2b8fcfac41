// Gather, scatter and selection, and what makes tensors from nothing.
#include <algorithm>
#include <array>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

void lower_gather(Call& c) {
  const auto axis = static_cast<std::int64_t>(c.axis(c.i("axis", 0), c.rank(c.in(0))));
  c.out(0, c.emit(c.op(), {{"axis", axis}}, {c.in(0), c.in(1)}));
}

void lower_gather_nd(Call& c) {
  c.out(0, c.emit("GatherNd", {{"batch_dims", c.i("batch_dims", 0)}}, {c.in(0), c.in(1)}));
}

std::int64_t reduction(Call& c) {
  const std::string name = c.s("reduction", "none");
  constexpr std::array kNames = {std::string_view("none"), std::string_view("add"),
                                 std::string_view("mul"), std::string_view("max"),
                                 std::string_view("min")};
  const auto at = std::ranges::find(kNames, name);
  if (at == kNames.end()) c.refuse("the reduction " + name);
  return at - kNames.begin();
}

void lower_scatter(Call& c) {
  const auto axis = static_cast<std::int64_t>(c.axis(c.i("axis", 0), c.rank(c.in(0))));
  c.out(0, c.emit("ScatterElements", {{"axis", axis}, {"reduction", reduction(c)}},
                  {c.in(0), c.in(1), c.in(2)}));
}

void lower_scatter_nd(Call& c) {
  c.out(0, c.emit("ScatterNd", {{"reduction", reduction(c)}}, {c.in(0), c.in(1), c.in(2)}));
}

void lower_tensor_scatter(Call& c) {
  const std::string mode = c.s("mode", "linear");
  if (mode != "linear" && mode != "circular") c.refuse("the mode " + mode);
  c.out(0, c.emit("TensorScatter",
                  {{"axis", c.i("axis", -2)}, {"circular", std::int64_t{mode == "circular"}}},
                  {c.in(0), c.in(1), c.in(2)}));
}

void lower_one_hot(Call& c) {
  const Val indices = c.cast(c.in(0), DType::kI64);
  Val depth = c.cast(c.in(1), DType::kI64);
  if (c.rank(depth) == 1) depth = c.reshape(depth, {});
  c.out(0, c.emit("OneHot", {{"axis", c.i("axis", -1)}}, {indices, depth, c.in(2)}));
}

void lower_non_zero(Call& c) {
  c.out(0, c.emit("NonZero", {c.in(0)}));
}

void lower_unique(Call& c) {
  const std::int64_t has_axis = c.has_attr("axis") ? 1 : 0;
  const auto all = c.emit_all(
      "Unique", {{"has_axis", has_axis}, {"axis", c.i("axis", 0)}, {"sorted", c.i("sorted", 1)}},
      {c.in(0)});
  for (std::size_t k = 0; k < all.size(); ++k) c.out(k, all[k]);
}

void lower_compress(Call& c) {
  const std::int64_t has_axis = c.has_attr("axis") ? 1 : 0;
  c.out(0,
        c.emit("Compress", {{"has_axis", has_axis}, {"axis", c.i("axis", 0)}}, {c.in(0), c.in(1)}));
}

void lower_trilu(Call& c) {
  c.out(0, c.emit("Trilu", {{"upper", c.i("upper", 1)}}, {c.in(0), c.in(1)}));
}

void lower_eye_like(Call& c) {
  const DType dtype = c.type("dtype", c.dtype(c.in(0)));
  c.out(0, c.emit("EyeLike", {{"dtype", static_cast<std::int64_t>(dtype)}, {"k", c.i("k", 0)}},
                  {c.in(0)}));
}

void lower_range(Call& c) {
  c.out(0, c.emit("Range", {c.in(0), c.in(1), c.in(2)}));
}

Val constant_attribute(Call& c) {
  if (const auto tensor = c.tensor("value")) return c.constant(*tensor);
  if (c.has_attr("value_int")) {
    const std::int64_t value = c.i("value_int", 0);
    return c.reshape(c.int_list(std::span(&value, 1)), {});
  }
  if (c.has_attr("value_ints")) return c.int_list(c.ints("value_ints"));
  if (c.has_attr("value_float")) return c.scalar(c.f("value_float", 0), DType::kF32);
  if (c.has_attr("value_floats")) {
    const std::vector<float> values = c.floats("value_floats");
    std::byte* data = nullptr;
    auto tensor =
        HostTensor::allocate(DType::kF32, Shape{static_cast<std::int64_t>(values.size())}, data);
    if (!tensor) {
      c.fail_with(std::move(tensor).error());
      return 0;
    }
    std::ranges::copy(std::as_bytes(std::span(values)), data);
    return c.constant(*std::move(tensor));
  }
  return 0;
}

void lower_constant(Call& c) {
  const Val value = constant_attribute(c);
  if (value == 0) c.refuse("a constant of strings or a sparse one");
  c.out(0, value);
}

void lower_constant_of_shape(Call& c) {
  const auto value = c.tensor("value");
  DType dtype = DType::kF32;
  std::vector<std::byte> bytes(4);
  if (value) {
    if (value->shape.count() != 1) c.refuse("a value that is not one element");
    dtype = value->dtype;
    bytes.assign(value->bytes.begin(), value->bytes.end());
  }
  c.out(0, c.emit("ConstantOfShape",
                  {{"dtype", static_cast<std::int64_t>(dtype)}, {"value", std::move(bytes)}},
                  {c.in(0)}));
}

void lower_top_k(Call& c) {
  Val k = c.in(1);
  if (c.opset() < 10) {
    const std::int64_t count = c.i("k", 0);
    k = c.int_list(std::span(&count, 1));
  }
  const auto out = c.emit_all(
      "TopKBy",
      {{"axis", c.i("axis", -1)}, {"largest", c.i("largest", 1)}, {"sorted", c.i("sorted", 1)}},
      {c.in(0), k});
  for (std::size_t n = 0; n < out.size(); ++n) c.out(n, out[n]);
}

void lower_nms(Call& c) {
  c.out(0, c.emit("NmsBy", {{"center", c.i("center_point_box", 0)}},
                  {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)}));
}

}  // namespace

std::span<const OpRow> rows_index() noexcept {
  static constexpr std::array kRows = {OpRow{"Compress", 9, lower_compress},
                                       OpRow{"Constant", 1, lower_constant},
                                       OpRow{"ConstantOfShape", 9, lower_constant_of_shape},
                                       OpRow{"EyeLike", 9, lower_eye_like},
                                       OpRow{"Gather", 1, lower_gather},
                                       OpRow{"GatherElements", 11, lower_gather},
                                       OpRow{"GatherND", 11, lower_gather_nd},
                                       OpRow{"NonMaxSuppression", 10, lower_nms},
                                       OpRow{"NonZero", 9, lower_non_zero},
                                       OpRow{"OneHot", 9, lower_one_hot},
                                       OpRow{"Range", 11, lower_range},
                                       OpRow{"Scatter", 9, lower_scatter},
                                       OpRow{"ScatterElements", 11, lower_scatter},
                                       OpRow{"ScatterND", 11, lower_scatter_nd},
                                       OpRow{"TensorScatter", 24, lower_tensor_scatter},
                                       OpRow{"TopK", 1, lower_top_k},
                                       OpRow{"Trilu", 14, lower_trilu},
                                       OpRow{"Unique", 11, lower_unique}};
  return kRows;
}

}  // namespace cyb::onnx
