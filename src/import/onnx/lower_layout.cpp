// Shapes: reshape, transpose, concat, split, slice, pad, expand, tile, and the values of shapes.
#include <algorithm>
#include <array>
#include <numeric>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

using Ints = std::vector<std::int64_t>;

/// An output of its own: a reader of the graph finds the name.
void lower_identity(Call& c) {
  c.out(0, c.in(0));
}

/// Optional values that are tensors: there, or not given.
void lower_has_element(Call& c) {
  c.out(0, c.scalar(c.has(0) ? 1 : 0, DType::kBool));
}

void lower_dropout(Call& c) {
  c.ignore({"ratio", "seed"});
  if (c.opset() < 7 && c.i("is_test", 0) == 0) c.refuse("is_test = 0");
  if (c.has(2)) {
    const auto training = c.known_ints(c.in(2));
    if (!training || training->empty() || (*training)[0] != 0) c.refuse("training_mode");
  }
  c.out(0, c.in(0));
  if (!c.wants(1)) return;
  c.out(1, c.emit("ExpandTo", {c.scalar(1, DType::kBool), c.shape_of(c.in(0))}));
}

void lower_reshape(Call& c) {
  const Val x = c.in(0), shape = c.in(1);
  const std::int64_t allow_zero = c.i("allowzero", 0);
  const auto known = c.known_ints(shape);
  if (known && (allow_zero == 0 || std::ranges::count(*known, 0) == 0))
    return c.out(0, c.reshape(x, *known));
  if (const auto dims = c.dims(shape); dims && !known) {
    // -1 and 0 keep their meaning; without a -1, one dimension that the run decides may be it.
    std::vector<Dim> target = *dims;
    for (std::size_t k = 0; k < target.size() && allow_zero == 0; ++k) {
      if (target[k] == Dim(0)) target[k] = c.dim(x, k);
    }
    if (const Val out = c.reshape_to(x, target); out != 0 || !c.ok()) return c.out(0, out);
  }
  c.out(0, c.emit("ReshapeTo", {{"allow_zero", allow_zero}}, {x, shape}));
}

void lower_transpose(Call& c) {
  Ints perm(c.rank(c.in(0)));
  std::iota(perm.rbegin(), perm.rend(), 0);
  perm = c.ints("perm", std::move(perm));
  c.out(0, c.permute(c.in(0), c.axes(std::move(perm), c.rank(c.in(0)))));
}

void lower_concat(Call& c) {
  std::vector<Val> parts;
  for (std::size_t k = 0; k < c.n_in(); ++k) parts.push_back(c.in(k));
  c.out(0, c.concat(std::move(parts), c.axis(c.i("axis", 1), c.rank(c.in(0)))));
}

void lower_split(Call& c) {
  const auto axis = static_cast<std::int64_t>(c.axis(c.i("axis", 0), c.rank(c.in(0))));
  const auto n = static_cast<std::int64_t>(c.n_out());
  const std::int64_t wished = c.i("num_outputs", n);
  if (wished != n) c.refuse("num_outputs that is not the number of outputs");
  const Val sizes = c.list_input(1, "split");
  const auto known = c.known_ints(sizes);
  std::vector<Val> parts;
  if (sizes != 0 && known) {
    parts = c.emit_all("Split", {{"axis", axis}, {"sizes", *known}}, {c.in(0)});
  } else {
    parts = c.emit_all("SplitBy", {{"axis", axis}, {"n", n}}, {c.in(0), sizes});
  }
  if (c.ok() && parts.size() != c.n_out()) c.refuse("sizes for another number of outputs");
  for (std::size_t k = 0; k < parts.size(); ++k) c.out(k, parts[k]);
}

void lower_squeeze(Call& c) {
  const std::string_view op = c.op();
  c.out(0, c.emit(op, {c.in(0), c.list_input(1, "axes")}));
}

void lower_flatten(Call& c) {
  const std::size_t rank = c.rank(c.in(0));
  std::int64_t axis = c.i("axis", 1);
  if (axis < 0) axis += static_cast<std::int64_t>(rank);
  c.out(0, c.emit("Flatten", {{"axis", axis}}, {c.in(0)}));
}

/// A chain of single-axis slices where everything is known and no step is negative.
bool slice_statically(Call& c, Val starts, Val ends, Val axes, Val steps) {
  const auto s = c.known_ints(starts), e = c.known_ints(ends);
  if (!s || !e || s->size() != e->size()) return false;
  Ints a(s->size()), t(s->size(), 1);
  std::iota(a.begin(), a.end(), 0);
  if (axes != 0) {
    const auto known = c.known_ints(axes);
    if (!known || known->size() != a.size()) return false;
    a = *known;
  }
  if (steps != 0) {
    const auto known = c.known_ints(steps);
    if (!known || known->size() != t.size()) return false;
    t = *known;
  }
  if (std::ranges::any_of(t, [](std::int64_t step) { return step < 1; })) return false;
  Val y = c.in(0);
  for (std::size_t k = 0; k < a.size(); ++k)
    y = c.slice(y, c.axis(a[k], c.rank(y)), (*s)[k], (*e)[k], t[k]);
  c.out(0, y);
  return true;
}

void lower_slice(Call& c) {
  const bool old = c.opset() < 10;
  const Val starts = old ? c.int_list(c.ints("starts")) : c.in(1);
  const Val ends = old ? c.int_list(c.ints("ends")) : c.in(2);
  const Val axes = old && c.has_attr("axes") ? c.int_list(c.ints("axes")) : c.in(3);
  const Val steps = c.in(4);
  if (slice_statically(c, starts, ends, axes, steps)) return;
  c.out(0, c.emit("SliceBy", {c.in(0), starts, ends, axes, steps}));
}

std::int64_t pad_mode(Call& c) {
  const std::string mode = c.s("mode", "constant");
  constexpr std::array kModes = {std::string_view("constant"), std::string_view("reflect"),
                                 std::string_view("edge"), std::string_view("wrap")};
  const auto at = std::ranges::find(kModes, mode);
  if (at == kModes.end()) c.refuse("the mode " + mode);
  return at - kModes.begin();
}

void lower_pad(Call& c) {
  const Val x = c.in(0);
  const std::int64_t mode = pad_mode(c);
  const Val pads = c.opset() < 11 ? c.int_list(c.ints("pads")) : c.in(1);
  Val value =
      c.opset() < 11 && c.has_attr("value") ? c.scalar(c.f("value", 0), c.dtype(x)) : c.in(2);
  if (value != 0 && c.rank(value) == 1) value = c.reshape(value, {});
  c.out(0, c.emit("PadBy", {{"mode", mode}}, {x, pads, value, c.in(3)}));
}

void lower_expand(Call& c) {
  c.out(0, c.emit("ExpandTo", {c.in(0), c.in(1)}));
}

void lower_tile(Call& c) {
  c.out(0, c.emit("Tile", {c.in(0), c.in(1)}));
}

void lower_shape(Call& c) {
  const auto rank = static_cast<std::int64_t>(c.rank(c.in(0)));
  const auto place = [rank](std::int64_t at) {
    return std::clamp(at < 0 ? at + rank : at, std::int64_t{0}, rank);
  };
  const std::int64_t start = place(c.i("start", 0)), end = place(c.i("end", rank));
  const Val all = c.shape_of(c.in(0));
  c.out(0, start == 0 && end == rank ? all : c.slice(all, 0, start, std::max(start, end)));
}

void lower_size(Call& c) {
  c.out(0, c.emit("Size", {c.in(0)}));
}

void lower_depth_to_space(Call& c) {
  const std::string mode = c.s("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.refuse("the mode " + mode);
  c.out(0,
        c.emit("DepthToSpace",
               {{"block", c.i("blocksize", 0)}, {"mode", std::int64_t{mode == "CRD"}}}, {c.in(0)}));
}

void lower_space_to_depth(Call& c) {
  const std::string mode = c.s("mode", "DCR");
  if (mode == "CRD")
    return c.out(0, c.emit("PixelUnshuffle", {{"r", c.i("blocksize", 0)}}, {c.in(0)}));
  if (mode != "DCR") c.refuse("the mode " + mode);
  c.out(0, c.emit("SpaceToDepth", {{"block", c.i("blocksize", 0)}}, {c.in(0)}));
}

void lower_center_crop_pad(Call& c) {
  c.out(0, c.emit("CenterCropPad", {{"axes", c.ints("axes")}}, {c.in(0), c.in(1)}));
}

void lower_reverse_sequence(Call& c) {
  c.out(0, c.emit("ReverseSequence",
                  {{"batch_axis", c.i("batch_axis", 1)}, {"time_axis", c.i("time_axis", 0)}},
                  {c.in(0), c.in(1)}));
}

}  // namespace

std::span<const OpRow> rows_layout() noexcept {
  static constexpr std::array kRows = {OpRow{"CenterCropPad", 18, lower_center_crop_pad},
                                       OpRow{"Concat", 4, lower_concat},
                                       OpRow{"DepthToSpace", 1, lower_depth_to_space},
                                       OpRow{"Dropout", 6, lower_dropout},
                                       OpRow{"Expand", 8, lower_expand},
                                       OpRow{"Flatten", 1, lower_flatten},
                                       OpRow{"Identity", 1, lower_identity},
                                       OpRow{"OptionalGetElement", 15, lower_identity},
                                       OpRow{"OptionalHasElement", 15, lower_has_element},
                                       OpRow{"Pad", 2, lower_pad},
                                       OpRow{"Reshape", 5, lower_reshape},
                                       OpRow{"ReverseSequence", 10, lower_reverse_sequence},
                                       OpRow{"Shape", 1, lower_shape},
                                       OpRow{"Size", 1, lower_size},
                                       OpRow{"Slice", 1, lower_slice},
                                       OpRow{"SpaceToDepth", 1, lower_space_to_depth},
                                       OpRow{"Split", 2, lower_split},
                                       OpRow{"Squeeze", 1, lower_squeeze},
                                       OpRow{"Tile", 6, lower_tile},
                                       OpRow{"Transpose", 1, lower_transpose},
                                       OpRow{"Unsqueeze", 1, lower_squeeze}};
  return kRows;
}

}  // namespace cyb::onnx
