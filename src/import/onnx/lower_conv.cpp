// Convolutions and pools. Lists are written in full: one entry for each spatial dimension.
#include <algorithm>
#include <array>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

using Ints = std::vector<std::int64_t>;

std::int64_t auto_pad(Call& c) {
  constexpr std::array kNames = {std::string_view("NOTSET"), std::string_view("SAME_UPPER"),
                                 std::string_view("SAME_LOWER"), std::string_view("VALID")};
  const std::string name = c.s("auto_pad", "NOTSET");
  const auto at = std::ranges::find(kNames, name);
  if (at == kNames.end()) c.refuse("auto_pad " + name);
  return at - kNames.begin();
}

/// The list attribute with n entries, each `fallback` where it is not given.
Ints list(Call& c, std::string_view name, std::size_t n, std::int64_t fallback) {
  Ints values = c.ints(name, Ints(n, fallback));
  if (values.size() != n) c.refuse(std::string(name) + " of another length than the shape");
  return values;
}

std::size_t spatial(Call& c, Val x) {
  if (c.rank(x) >= 3) return c.rank(x) - 2;
  c.refuse("an input without spatial dimensions");
  return 1;
}

/// kernel_shape says what the weight says already; it must not differ.
void check_kernel(Call& c, Val w, std::size_t n) {
  const Ints kernel = c.ints("kernel_shape");
  if (kernel.empty()) return;
  bool same = kernel.size() == n;
  for (std::size_t k = 0; same && k < n; ++k) {
    const Dim d = c.dim(w, 2 + k);
    same = !d.is_constant() || d.constant() == kernel[k];
  }
  if (!same) c.refuse("kernel_shape that is not the weight's");
}

std::vector<NamedAttr> window(Call& c, std::size_t n) {
  return {{"strides", list(c, "strides", n, 1)},
          {"dilations", list(c, "dilations", n, 1)},
          {"pads", list(c, "pads", 2 * n, 0)},
          {"auto_pad", auto_pad(c)}};
}

void lower_conv(Call& c) {
  const std::size_t n = spatial(c, c.in(0));
  check_kernel(c, c.in(1), n);
  auto attrs = window(c, n);
  attrs.push_back({"groups", c.i("group", 1)});
  c.out(0, c.emit("Conv", std::move(attrs), {c.in(0), c.in(1), c.in(2)}));
}

void lower_conv_integer(Call& c) {
  const std::size_t n = spatial(c, c.in(0));
  check_kernel(c, c.in(1), n);
  auto attrs = window(c, n);
  attrs.push_back({"groups", c.i("group", 1)});
  c.out(0, c.emit("ConvInteger", std::move(attrs), {c.in(0), c.in(1), c.in(2), c.in(3)}));
}

void lower_qlinear_conv(Call& c) {
  const std::size_t n = spatial(c, c.in(0));
  check_kernel(c, c.in(3), n);
  auto attrs = window(c, n);
  attrs.push_back({"groups", c.i("group", 1)});
  std::vector<Val> inputs;
  for (std::size_t k = 0; k < 9; ++k) inputs.push_back(c.in(k));
  c.out(0, c.emit("QLinearConv", std::move(attrs), std::move(inputs)));
}

void lower_conv_transpose(Call& c) {
  const std::size_t n = spatial(c, c.in(0));
  check_kernel(c, c.in(1), n);
  auto attrs = window(c, n);
  attrs.push_back({"groups", c.i("group", 1)});
  attrs.push_back({"output_padding", list(c, "output_padding", n, 0)});
  Ints shape = c.ints("output_shape");
  if (shape.size() == n + 2) shape.erase(shape.begin(), shape.begin() + 2);
  attrs.push_back({"output_shape", std::move(shape)});
  c.out(0, c.emit("ConvTranspose", std::move(attrs), {c.in(0), c.in(1), c.in(2)}));
}

void lower_deform_conv(Call& c) {
  const std::size_t n = spatial(c, c.in(0));
  check_kernel(c, c.in(1), n);
  c.out(0, c.emit("DeformConv",
                  {{"strides", list(c, "strides", n, 1)},
                   {"dilations", list(c, "dilations", n, 1)},
                   {"pads", list(c, "pads", 2 * n, 0)},
                   {"groups", c.i("group", 1)},
                   {"offset_groups", c.i("offset_group", 1)}},
                  {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)}));
}

void lower_max_pool(Call& c) {
  const std::size_t n = spatial(c, c.in(0));
  auto attrs = window(c, n);
  attrs.push_back({"kernel", list(c, "kernel_shape", n, 1)});
  attrs.push_back({"ceil", c.i("ceil_mode", 0)});
  attrs.push_back({"column_major", c.i("storage_order", 0)});
  const auto out = c.emit_all("MaxPool", std::move(attrs), {c.in(0)});
  for (std::size_t k = 0; k < out.size(); ++k) c.out(k, out[k]);
}

void lower_average_pool(Call& c) {
  const std::size_t n = spatial(c, c.in(0));
  auto attrs = window(c, n);
  attrs.push_back({"kernel", list(c, "kernel_shape", n, 1)});
  attrs.push_back({"ceil", c.i("ceil_mode", 0)});
  attrs.push_back({"count_pad", c.i("count_include_pad", 0)});
  c.out(0, c.emit("AvgPool", std::move(attrs), {c.in(0)}));
}

void lower_lp_pool(Call& c) {
  const std::size_t n = spatial(c, c.in(0));
  auto attrs = window(c, n);
  attrs.push_back({"kernel", list(c, "kernel_shape", n, 1)});
  attrs.push_back({"ceil", c.i("ceil_mode", 0)});
  attrs.push_back({"p", c.i("p", 2)});
  c.out(0, c.emit("LpPool", std::move(attrs), {c.in(0)}));
}

void lower_max_unpool(Call& c) {
  const std::size_t n = spatial(c, c.in(0));
  c.out(0, c.emit("MaxUnpool",
                  {{"kernel", list(c, "kernel_shape", n, 1)},
                   {"strides", list(c, "strides", n, 1)},
                   {"pads", list(c, "pads", 2 * n, 0)}},
                  {c.in(0), c.in(1), c.in(2)}));
}

void lower_col2im(Call& c) {
  const auto blocks = c.dim(c.in(2), 0);
  const std::size_t n = blocks.is_constant() && blocks.constant() > 0 && blocks.constant() <= 6
                            ? static_cast<std::size_t>(blocks.constant())
                            : 2;
  c.out(0, c.emit("Col2Im",
                  {{"dilations", list(c, "dilations", n, 1)},
                   {"pads", list(c, "pads", 2 * n, 0)},
                   {"strides", list(c, "strides", n, 1)}},
                  {c.in(0), c.in(1), c.in(2)}));
}

}  // namespace

std::span<const OpRow> rows_conv() noexcept {
  static constexpr std::array kRows = {OpRow{"AveragePool", 1, lower_average_pool},
                                       OpRow{"Col2Im", 18, lower_col2im},
                                       OpRow{"Conv", 1, lower_conv},
                                       OpRow{"ConvInteger", 10, lower_conv_integer},
                                       OpRow{"ConvTranspose", 1, lower_conv_transpose},
                                       OpRow{"DeformConv", 19, lower_deform_conv},
                                       OpRow{"LpPool", 2, lower_lp_pool},
                                       OpRow{"MaxPool", 1, lower_max_pool},
                                       OpRow{"MaxUnpool", 9, lower_max_unpool},
                                       OpRow{"QLinearConv", 10, lower_qlinear_conv}};
  return kRows;
}

}  // namespace cyb::onnx
