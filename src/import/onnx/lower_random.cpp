// Random operators: Philox numbers under the node's seed, or a seed of the node's own. Every run
// draws the same.
#include <array>
#include <bit>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

std::int64_t seed(Call& c) {
  const bool given = c.has_attr("seed");
  const auto value = static_cast<float>(c.f("seed", 0));
  return given ? static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(value))
               : static_cast<std::int64_t>(c.key());
}

void lower_random(Call& c) {
  const bool like = c.op().ends_with("Like"), normal = c.op().starts_with("RandomNormal");
  Val shape = 0;
  DType dtype = DType::kF32;
  if (like) {
    shape = c.shape_of(c.in(0));
    dtype = c.type("dtype", c.dtype(c.in(0)));
  } else {
    shape = c.int_list(c.ints("shape"));
    dtype = c.type("dtype", DType::kF32);
  }
  const auto a = static_cast<float>(c.f(normal ? "mean" : "low", 0));
  const auto b = static_cast<float>(c.f(normal ? "scale" : "high", 1));
  c.out(0, c.emit("Random",
                  {{"dtype", static_cast<std::int64_t>(dtype)},
                   {"kind", std::int64_t{normal}},
                   {"a", a},
                   {"b", b},
                   {"seed", seed(c)}},
                  {shape}));
}

/// 1 with the probability that x gives.
void lower_bernoulli(Call& c) {
  const Val x = c.in(0);
  const Val u = c.emit("Random",
                       {{"dtype", static_cast<std::int64_t>(c.dtype(x))},
                        {"kind", std::int64_t{0}},
                        {"a", 0.0F},
                        {"b", 1.0F},
                        {"seed", seed(c)}},
                       {c.shape_of(x)});
  const Val less = c.emit("Compare", {{"kind", std::int64_t{2}}}, {u, x});
  c.out(0, c.cast(less, c.type("dtype", c.dtype(x))));
}

}  // namespace

std::span<const OpRow> rows_random() noexcept {
  static constexpr std::array kRows = {
      OpRow{"Bernoulli", 15, lower_bernoulli}, OpRow{"RandomNormal", 1, lower_random},
      OpRow{"RandomNormalLike", 1, lower_random}, OpRow{"RandomUniform", 1, lower_random},
      OpRow{"RandomUniformLike", 1, lower_random}};
  return kRows;
}

}  // namespace cyb::onnx
