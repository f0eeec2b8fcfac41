// Resizing and sampling of images.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

/// Place of a name in a list of words; refused by name where it is none of them.
template <std::size_t N>
std::int64_t word(Call& c, std::string_view attribute, std::string_view fallback,
                  const std::array<std::string_view, N>& words) {
  const std::string name = c.s(attribute, fallback);
  const auto at = std::ranges::find(words, name);
  if (at == words.end()) c.refuse(std::string(attribute) + " " + name);
  return at - words.begin();
}

struct Scaling {
  std::int64_t mode = 0, coordinates = 4, nearest = 2;
  Val roi = 0, scales = 0, sizes = 0;
};

/// The scales as bytes where they are known: then the shape of the result is known too.
std::vector<std::byte> fixed_scales(Call& c, Val& scales) {
  const HostTensor* known = c.known(scales);
  if (known == nullptr || known->dtype != DType::kF32) return {};
  std::vector<std::byte> bytes(known->bytes.begin(), known->bytes.end());
  scales = 0;
  return bytes;
}

/// Whether every length times its scale is known to be whole.
bool scales_to_whole(Call& c, Val scales) {
  const HostTensor* known = c.known(scales);
  if (known == nullptr || known->dtype != DType::kF32) return false;
  std::vector<float> values(known->bytes.size() / sizeof(float));
  std::memcpy(values.data(), known->bytes.data(), values.size() * sizeof(float));
  if (values.size() != c.rank(c.in(0))) return false;
  for (std::size_t d = 0; d < values.size(); ++d) {
    const Dim length = c.dim(c.in(0), d);
    if (values[d] == std::floor(values[d])) continue;
    if (!length.is_constant()) return false;
    const double out = static_cast<double>(length.constant()) * static_cast<double>(values[d]);
    if (out != std::floor(out)) return false;
  }
  return true;
}

void emit_resize(Call& c, Scaling s) {
  if (s.scales != 0 && c.dim(s.scales, 0) == Dim(0)) s.scales = 0;  // an empty list: not given
  if (s.roi != 0 && (c.dim(s.roi, 0) == Dim(0) || s.coordinates != 5)) s.roi = 0;
  if (s.sizes == 0 && (s.coordinates == 3 || s.coordinates == 5) && !scales_to_whole(c, s.scales)) {
    c.assume(
        "lengths that the scales do not make whole count as they are, as in ONNX's reference; ONNX "
        "Runtime and torch count whole pixels");
  }
  constexpr std::array<std::string_view, 3> kPolicies = {"stretch", "not_larger", "not_smaller"};
  std::vector<std::byte> fixed = fixed_scales(c, s.scales);
  c.out(0, c.emit("Resize",
                  {{"mode", s.mode},
                   {"coordinates", s.coordinates},
                   {"nearest", s.nearest},
                   {"cubic_a", static_cast<float>(c.f("cubic_coeff_a", -0.75))},
                   {"exclude_outside", c.i("exclude_outside", 0)},
                   {"extrapolation", static_cast<float>(c.f("extrapolation_value", 0))},
                   {"antialias", c.i("antialias", 0)},
                   {"axes", c.ints("axes")},
                   {"policy", word(c, "keep_aspect_ratio_policy", "stretch", kPolicies)},
                   {"fixed_scales", std::move(fixed)}},
                  {c.in(0), s.roi, s.scales, s.sizes}));
}

std::int64_t resize_mode(Call& c) {
  constexpr std::array<std::string_view, 3> kModes = {"nearest", "linear", "cubic"};
  return word(c, "mode", "nearest", kModes);
}

void lower_resize(Call& c) {
  Scaling s;
  s.mode = resize_mode(c);
  if (c.opset() < 11) {
    s.scales = c.in(1);
    return emit_resize(c, s);
  }
  constexpr std::array<std::string_view, 6> kCoordinates = {
      "half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
      "align_corners", "asymmetric",           "tf_crop_and_resize"};
  constexpr std::array<std::string_view, 4> kNearest = {"round_prefer_floor", "round_prefer_ceil",
                                                        "floor", "ceil"};
  s.coordinates = word(c, "coordinate_transformation_mode", "half_pixel", kCoordinates);
  s.nearest = word(c, "nearest_mode", "round_prefer_floor", kNearest);
  s.roi = c.in(1);
  s.scales = c.in(2);
  s.sizes = c.in(3);
  if (s.sizes != 0) s.scales = 0;
  emit_resize(c, s);
}

/// Opset 7 to 9: asymmetric, and the nearest cell below.
void lower_upsample(Call& c) {
  Scaling s;
  s.mode = resize_mode(c);
  if (c.opset() >= 9) {
    s.scales = c.in(1);
    return emit_resize(c, s);
  }
  const std::vector<float> scales = c.floats("scales");
  std::byte* data = nullptr;
  auto tensor =
      HostTensor::allocate(DType::kF32, Shape{static_cast<std::int64_t>(scales.size())}, data);
  if (!tensor) return c.fail_with(std::move(tensor).error());
  std::ranges::copy(std::as_bytes(std::span(scales)), data);
  s.scales = c.constant(*std::move(tensor));
  emit_resize(c, s);
}

void lower_grid_sample(Call& c) {
  std::string mode = c.s("mode", c.opset() >= 20 ? "linear" : "bilinear");
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  constexpr std::array<std::string_view, 3> kModes = {"linear", "nearest", "cubic"};
  const auto at = std::ranges::find(kModes, mode);
  if (at == kModes.end()) c.refuse("the mode " + mode);
  constexpr std::array<std::string_view, 3> kPaddings = {"zeros", "border", "reflection"};
  c.out(0, c.emit("GridSample",
                  {{"mode", std::int64_t{at - kModes.begin()}},
                   {"padding", word(c, "padding_mode", "zeros", kPaddings)},
                   {"align_corners", c.i("align_corners", 0)}},
                  {c.in(0), c.in(1)}));
}

void lower_affine_grid(Call& c) {
  c.out(0, c.emit("AffineGrid", {{"align_corners", c.i("align_corners", 0)}}, {c.in(0), c.in(1)}));
}

void lower_roi_align(Call& c) {
  constexpr std::array<std::string_view, 2> kModes = {"avg", "max"};
  constexpr std::array<std::string_view, 2> kTransforms = {"output_half_pixel", "half_pixel"};
  const std::string_view fallback = c.opset() >= 16 ? "half_pixel" : "output_half_pixel";
  c.out(0,
        c.emit("RoiAlign",
               {{"mode", word(c, "mode", "avg", kModes)},
                {"out_h", c.i("output_height", 1)},
                {"out_w", c.i("output_width", 1)},
                {"sampling_ratio", c.i("sampling_ratio", 0)},
                {"spatial_scale", static_cast<float>(c.f("spatial_scale", 1))},
                {"half_pixel", word(c, "coordinate_transformation_mode", fallback, kTransforms)}},
               {c.in(0), c.in(1), c.in(2)}));
}

}  // namespace

std::span<const OpRow> rows_image() noexcept {
  static constexpr std::array kRows = {
      OpRow{"AffineGrid", 20, lower_affine_grid}, OpRow{"GridSample", 16, lower_grid_sample},
      OpRow{"Resize", 10, lower_resize}, OpRow{"RoiAlign", 10, lower_roi_align},
      OpRow{"Upsample", 7, lower_upsample}};
  return kRows;
}

}  // namespace cyb::onnx
