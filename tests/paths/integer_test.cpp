// Integer products and what leads to and from them: the cpu backend gives the reference's bits on
// every ISA and number of threads, at the extremes of the bytes too.
#include <limits>
#include <random>

#include "backends/cpu/kernels/table.hpp"
#include "paths/executor_support.hpp"

namespace cyb {
namespace {

/// Reference and cpu, every ISA and 1, 2 and 3 threads: equal bits, and no step on the reference.
void expect_same_bits(const GraphMaker& m, const std::vector<TensorView>& inputs) {
  GraphRunner plain(m, backend("reference"), kAllOff);
  ASSERT_TRUE(plain.forward) << plain.error;
  ASSERT_TRUE(plain.forward->run(inputs));
  const auto bytes_of = [](const TensorForward& forward, std::size_t i) {
    const TensorView out = forward.output(i).value();
    return std::vector<std::byte>(out.data, out.data + *tensor_bytes(out.dtype, out.shape));
  };
  const char* isas[8];
  for (std::size_t i = cpu::available_isas(isas, std::size(isas)); i-- > 0;) {
    for (const unsigned n : {1u, 2u, 3u}) {
      GraphRunner run(m, create_backend("cpu", {.n_threads = n, .isa = isas[i]}).value(), kAllOff);
      ASSERT_TRUE(run.forward->run(inputs));
      EXPECT_EQ(run.forward->n_fallback_steps(), 0u);
      for (std::size_t k = 0; k < m.graph.outputs.size(); ++k) {
        EXPECT_EQ(bytes_of(*run.forward, k), bytes_of(*plain.forward, k))
            << isas[i] << ", " << n << " threads, output " << k;
      }
    }
  }
}

std::vector<std::uint8_t> bytes(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<std::uint8_t> out(n);
  for (std::uint8_t& v : out) v = static_cast<std::uint8_t>(rng());
  return out;
}

struct Product {
  DType a, b;
  std::int64_t m, k, n;
  bool many_zeros;
};

class IntegerProducts : public testing::TestWithParam<Product> {};
INSTANTIATE_TEST_SUITE_P(Shapes, IntegerProducts,
                         testing::Values(Product{DType::kU8, DType::kI8, 1, 33, 50, false},
                                         Product{DType::kI8, DType::kI8, 7, 64, 16, true},
                                         Product{DType::kU8, DType::kU8, 131, 77, 37, true},
                                         Product{DType::kI8, DType::kU8, 50, 1, 5, false}));

TEST_P(IntegerProducts, AreExact) {
  const Product& p = GetParam();
  const auto count = [](std::int64_t a, std::int64_t b) { return static_cast<std::size_t>(a * b); };
  std::vector<std::uint8_t> a = bytes(2 * count(p.m, p.k), 1), b = bytes(count(p.k, p.n), 2);
  // The largest products there are, row by row of k.
  std::fill_n(a.begin(), p.k, static_cast<std::uint8_t>(p.a == DType::kI8 ? 0x80 : 0xFF));
  for (std::int64_t t = 0; t < p.k; ++t)
    b[count(t, p.n)] = static_cast<std::uint8_t>(p.b == DType::kI8 ? 0x80 : 0xFF);
  GraphMaker m;
  const std::string x = m.input("a", p.a, {2, p.m, p.k}), z = m.input("z", p.a, {});
  m.weights.push_back(weight("b", p.b, {p.k, p.n}, b));
  const Shape zeros = p.many_zeros ? Shape{p.n} : Shape{};
  std::vector<std::uint8_t> b_zero = bytes(static_cast<std::size_t>(zeros.count()), 3);
  b_zero[0] = p.b == DType::kI8 ? 127 : 0;
  m.weights.push_back(weight("bz", p.b, zeros, b_zero));
  m.graph.outputs = {m.node(OpTag::kMatmulInteger, {}, {x, "b", z, "bz"}),
                     m.node(OpTag::kMatmulInteger, {}, {x, "b"})};
  const std::vector<std::uint8_t> a_zero = {
      static_cast<std::uint8_t>(p.a == DType::kI8 ? 0x7F : 0)};
  expect_same_bits(m, {view(p.a, {2, p.m, p.k}, a), view(p.a, {}, a_zero)});
}

struct IntegerConv {
  DType x, w;
  Ints in, weight, strides, dilations, pads;
  std::int64_t groups;
};

class IntegerConvs : public testing::TestWithParam<IntegerConv> {};
INSTANTIATE_TEST_SUITE_P(
    Shapes, IntegerConvs,
    testing::Values(
        IntegerConv{DType::kU8, DType::kI8, {2, 5, 61}, {6, 5, 4}, {2}, {3}, {4, 2}, 1},
        IntegerConv{DType::kU8, DType::kU8, {1, 7, 90}, {9, 7, 3}, {1}, {1}, {1, 1}, 1},
        IntegerConv{
            DType::kI8, DType::kI8, {2, 6, 9, 11}, {9, 2, 3, 3}, {1, 2}, {1, 1}, {1, 0, 1, 2}, 3},
        IntegerConv{DType::kI8,
                    DType::kU8,
                    {1, 2, 3, 4, 5},
                    {3, 2, 2, 1, 3},
                    {1, 1, 1},
                    {1, 1, 1},
                    {1, 0, 1, 0, 0, 1},
                    1}));

TEST_P(IntegerConvs, AreExact) {
  const IntegerConv& p = GetParam();
  const Shape in(p.in), weight_shape(p.weight);
  std::vector<Dim> dims;
  for (const std::int64_t d : p.in) dims.emplace_back(d);
  GraphMaker m;
  m.input("x", p.x, dims);
  m.input("z", p.x, {});
  const auto n = static_cast<std::size_t>(weight_shape.count());
  m.weights.push_back(weight("w", p.w, weight_shape, bytes(n, 2)));
  m.weights.push_back(
      weight("wz", p.w, {p.weight[0]}, bytes(static_cast<std::size_t>(p.weight[0]), 3)));
  const std::initializer_list<NamedAttr> attrs = {
      {"strides", p.strides}, {"dilations", p.dilations}, {"pads", p.pads}, {"groups", p.groups}};
  m.graph.outputs = {m.node(OpTag::kConvInteger, attrs, {"x", "w", "z", "wz"}),
                     m.node(OpTag::kConvInteger, attrs, {"x", "w"})};
  const std::vector<std::uint8_t> x = bytes(static_cast<std::size_t>(in.count()), 4), zero = {200};
  expect_same_bits(m, {view(p.x, in, x), view(p.x, {}, zero)});
}

TEST(IntegerSteps, NumbersToBytesAndBack) {
  std::vector<float> x = numbers(1001, 3.7f);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> odd = {0.0f, -0.0f, 0.05f, 0.15f,  -0.25f,        12.7f,  12.75f,
                                  kInf, -kInf, 1e30f, -1e30f, std::nanf(""), 1e-40f, -12.85f};
  std::ranges::copy(odd, x.begin());
  for (const DType to : {DType::kU8, DType::kI8}) {
    GraphMaker m;
    m.input("x", DType::kF32, {7, 143});
    m.weights.push_back(weight<float>("s", DType::kF32, {}, {0.1f}));
    m.weights.push_back(weight<std::uint8_t>(
        "z", to, {}, {to == DType::kI8 ? std::uint8_t{0xF7} : std::uint8_t{130}}));
    const auto tag = static_cast<std::int64_t>(to);
    const std::string q = m.node(OpTag::kQuantizeLinear, {{"dtype", tag}}, {"x", "s", "z"});
    const std::string plain = m.node(OpTag::kQuantizeLinear, {{"dtype", tag}}, {"x", "s"});
    m.graph.outputs = {q, plain, m.node(OpTag::kDequantizeLinear, {}, {q, "s", "z"}),
                       m.node(OpTag::kDequantizeLinear, {}, {plain, "s"})};
    expect_same_bits(m, {view(DType::kF32, {7, 143}, x)});
  }
}

TEST(IntegerSteps, TheTensorDecidesItsScale) {
  GraphMaker m;
  m.input("x", DType::kF32, {7, 143});
  const std::string q = m.node(OpTag::kDynamicQuantizeLinear, {}, {"x"});
  m.graph.nodes.back().outputs = {q, "scale", "zero"};
  m.weights.push_back(weight("w", DType::kI8, {143, 20}, bytes(143 * 20, 5)));
  m.graph.outputs = {q, "scale", "zero", m.node(OpTag::kMatmulInteger, {}, {q, "w", "zero"})};
  std::vector<float> x = numbers(1001, 3.7f);
  expect_same_bits(m, {view(DType::kF32, {7, 143}, x)});
  for (float& v : x) v = std::fabs(v) + 1.0f;
  expect_same_bits(m, {view(DType::kF32, {7, 143}, x)});
  std::ranges::fill(x, 0.0f);
  expect_same_bits(m, {view(DType::kF32, {7, 143}, x)});
  x[700] = x[300] = std::nanf("");
  for (const char* name : {"reference", "cpu"}) {
    GraphRunner run(m, backend(name), kAllOff);
    const std::vector<TensorView> inputs = {view(DType::kF32, {7, 143}, x)};
    const auto done = run.forward->run(inputs);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().text().find("at 300"), std::string::npos) << done.error().text();
  }
}

}  // namespace
}  // namespace cyb
