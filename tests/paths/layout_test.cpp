// Layouts of the cpu backend: convolution networks made at random give what the reference gives,
// with equal bits on every ISA, 1, 2 and 3 threads, and whatever else is in the batch.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "backends/cpu/kernels/table.hpp"
#include "paths/executor_support.hpp"

namespace cyb {
namespace {

struct Tensor {
  std::string name;
  Ints shape;  // [B, C, H, W]
};

/// A network of nodes whose shapes are known as it grows.
class Network {
 public:
  Network(unsigned seed, Ints input) : rng_(seed) {
    std::vector<Dim> dims;
    for (const std::int64_t d : input) dims.emplace_back(d);
    made_ = {{m.input("x", DType::kF32, dims), input}};
  }

  void grow(int n) {
    for (int i = 0; i < n; ++i) {
      const std::size_t before = made_.size();
      while (made_.size() == before) add_one();
    }
    std::vector<std::string>& outputs = m.graph.outputs;
    outputs = {made_.back().name, made_[made_.size() / 2 + 1].name};
  }

  GraphMaker m;

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(rng_);
  }
  const Tensor any() {
    const auto n = static_cast<std::int64_t>(made_.size());
    return made_[static_cast<std::size_t>(pick(std::max<std::int64_t>(0, n - 3), n - 1))];
  }
  std::string constant(const Shape& shape, float scale = 1.0f, float shift = 0.0f) {
    std::vector<float> data(static_cast<std::size_t>(shape.count()));
    std::normal_distribution<float> normal(shift, scale);
    for (float& v : data) v = normal(rng_);
    const std::string name = "w" + std::to_string(m.weights.size());
    m.weights.push_back(weight<float>(name, DType::kF32, shape, data));
    return name;
  }
  void add(OpTag tag, std::initializer_list<NamedAttr> attrs, std::vector<std::string> inputs,
           const Ints& shape) {
    made_.push_back({m.node(tag, attrs, std::move(inputs)), shape});
  }

  void conv(const Tensor& x) {
    const std::int64_t k = 1 + 2 * pick(0, 2), dilation = pick(0, 4) == 0 ? 2 : 1;
    const std::int64_t stride = pick(0, 3) == 0 ? 2 : 1, pad = pick(0, 1) * dilation * (k / 2);
    const std::int64_t kind = pick(0, 5);
    const std::int64_t groups = kind == 0 ? x.shape[1] : kind == 1 && x.shape[1] % 2 == 0 ? 2 : 1;
    const std::int64_t channels = kind == 0 ? x.shape[1] : groups * pick(1, 21);
    const auto out = [&](std::int64_t n) {
      return (n + 2 * pad - dilation * (k - 1) - 1) / stride + 1;
    };
    const Ints shape = {x.shape[0], channels, out(x.shape[2]), out(x.shape[3])};
    if (shape[2] < 2 || shape[3] < 2) return;
    const float scale = 1.0f / std::sqrt(static_cast<float>(k * k * (x.shape[1] / groups)));
    std::vector<std::string> inputs = {x.name,
                                       constant({channels, x.shape[1] / groups, k, k}, scale)};
    if (pick(0, 1) == 0) inputs.push_back(constant({channels}));
    add(OpTag::kConv,
        {{"strides", Ints{stride, stride}},
         {"dilations", Ints{dilation, dilation}},
         {"pads", Ints{pad, pad, pad, pad}},
         {"groups", groups}},
        inputs, shape);
  }

  void same_shape(const Tensor& x) {
    switch (pick(0, 7)) {
      case 0:
        return add(OpTag::kRelu, {}, {x.name}, x.shape);
      case 6: {  // snake: x + sin(3 x)^2
        const std::string scaled = m.node(OpTag::kMul, {}, {x.name, constant({1}, 1e-9f, 3.0f)});
        const std::string sine = m.node(OpTag::kSin, {}, {scaled});
        const std::string square = m.node(OpTag::kPow, {}, {sine, constant({1}, 1e-9f, 2.0f)});
        return add(OpTag::kAdd, {}, {x.name, square}, x.shape);
      }
      case 1: {
        const std::string gate = m.node(OpTag::kSigmoid, {}, {x.name});
        return add(OpTag::kMul, {}, {x.name, gate}, x.shape);
      }
      case 2:
        return add(OpTag::kMul, {}, {x.name, constant({x.shape[1], 1, 1})}, x.shape);
      case 3:
        return add(OpTag::kAdd, {}, {x.name, constant({x.shape[3]})}, x.shape);
      case 4:
        return add(OpTag::kPRelu, {}, {x.name, constant({x.shape[1]})}, x.shape);
      case 5: {
        const std::string mean =
            m.node(OpTag::kReduceMean, {{"axes", Ints{2, 3}}, {"keep", std::int64_t{1}}}, {x.name});
        return add(OpTag::kMul, {}, {x.name, mean}, x.shape);
      }
      default: {
        const Shape c{x.shape[1]};
        return add(OpTag::kBatchNorm, {{"eps", 1e-3f}},
                   {x.name, constant(c), constant(c), constant(c), constant(c, 0.1f, 2.0f)},
                   x.shape);
      }
    }
  }

  void other_shape(const Tensor& x) {
    const Ints& s = x.shape;
    switch (pick(0, 6)) {
      case 0:
        if (s[2] < 4 || s[3] < 4) return;
        add(OpTag::kMaxPool, {{"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}}, {x.name},
            {s[0], s[1], (s[2] - 3) / 2 + 1, (s[3] - 3) / 2 + 1});
        m.graph.nodes.back().outputs.push_back(made_.back().name + "at");
        return;
      case 1: {
        if (s[2] > 12) return;
        const std::int64_t o = pick(1, 9);
        return add(OpTag::kConvTranspose, {{"strides", Ints{2, 2}}, {"groups", std::int64_t{1}}},
                   {x.name, constant({s[1], o, 2, 2}, 0.2f), constant({o})},
                   {s[0], o, 2 * s[2], 2 * s[3]});
      }
      case 2: {
        const Tensor y = any();
        if (Ints{y.shape[0], y.shape[2], y.shape[3]} != Ints{s[0], s[2], s[3]} || s[1] > 60) return;
        return add(OpTag::kConcat, {{"axis", std::int64_t{1}}}, {x.name, y.name},
                   {s[0], s[1] + y.shape[1], s[2], s[3]});
      }
      case 3: {
        if (s[1] < 2) return;
        const std::string name = m.node(
            OpTag::kSplit, {{"axis", std::int64_t{1}}, {"sizes", Ints{s[1] / 2, s[1] - s[1] / 2}}},
            {x.name});
        m.graph.nodes.back().outputs.push_back(name + "b");
        made_.push_back({name, {s[0], s[1] / 2, s[2], s[3]}});
        made_.push_back({name + "b", {s[0], s[1] - s[1] / 2, s[2], s[3]}});
        return;
      }
      case 4: {  // there, something, and back
        const std::string rows = m.node(OpTag::kPermute, {{"dims", Ints{0, 2, 3, 1}}}, {x.name});
        const std::string moved = m.node(OpTag::kAdd, {}, {rows, constant({s[1]})});
        return add(OpTag::kPermute, {{"dims", Ints{0, 3, 1, 2}}},
                   {pick(0, 1) == 0 ? moved : m.node(OpTag::kRelu, {}, {moved})}, s);
      }
      case 5: {
        const std::string soft =
            m.node(OpTag::kSoftmax, {{"dim", std::int64_t{pick(1, 3)}}}, {x.name});
        return add(OpTag::kAdd, {}, {soft, x.name}, s);
      }
      default: {
        const std::string flat =
            m.node(OpTag::kReshape, {{"shape", Ints{s[0], s[1], s[2] * s[3]}}}, {x.name});
        const std::string half = m.node(OpTag::kTanh, {}, {flat});
        return add(OpTag::kReshape, {{"shape", s}}, {half}, s);
      }
    }
  }

  void add_one() {
    const Tensor x = any();
    const std::int64_t kind = pick(0, 9);
    if (kind < 4) return conv(x);
    if (kind < 7) return same_shape(x);
    other_shape(x);
  }

  std::mt19937 rng_;
  std::vector<Tensor> made_;
};

std::vector<float> noise(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(n);
  for (float& v : out) v = normal(rng);
  return out;
}

/// Every ISA and number of threads; the bits of the first of them.
std::vector<std::vector<float>> on_cpu(const GraphMaker& m, const std::vector<TensorView>& inputs,
                                       const std::vector<std::vector<float>>& want, bool fuse) {
  std::vector<std::vector<float>> first;
  const char* isas[8];
  for (std::size_t i = cpu::available_isas(isas, std::size(isas)); i-- > 0;) {
    for (const unsigned n : {1u, 2u, 3u}) {
      GraphRunner run(m, create_backend("cpu", {.n_threads = n, .isa = isas[i]}).value(),
                      {.fuse = fuse});
      const auto got = run_all(run, inputs);
      if (first.empty()) first = got;
      for (std::size_t k = 0; k < want.size(); ++k) {
        EXPECT_LE(test::error_of(got[k], want[k]), test::tolerance(ToleranceClass::kF, DType::kF32))
            << isas[i] << ", " << n << " threads, output " << k;
        EXPECT_TRUE(same_bits(got[k], first[k])) << isas[i] << ", " << n << " threads";
      }
    }
  }
  return first;
}

class RandomNetworks : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, RandomNetworks, testing::Range(1u, 41u));

TEST_P(RandomNetworks, GiveWhatTheReferenceGives) {
  const unsigned seed = GetParam();
  const std::int64_t batch = 1 + seed % 2, channels = seed % 3 == 0 ? 16 : 3 + seed % 5;
  const Shape shape{batch, channels, 8 + seed % 7, 9 + seed % 5};
  Network net(seed, {shape[0], shape[1], shape[2], shape[3]});
  net.grow(14);
  const std::vector<float> x = noise(static_cast<std::size_t>(shape.count()), seed);
  const std::vector<TensorView> inputs = {view(DType::kF32, shape, x)};
  GraphRunner plain(net.m, backend("reference"), kAllOff);
  const auto want = run_all(plain, inputs);
  ASSERT_EQ(want.size(), 2u);
  for (const bool fuse : {false, true}) on_cpu(net.m, inputs, want, fuse);
}

/// x [B, 16, 10, 11] through convolutions of 3x3.
struct Convolutions {
  GraphMaker m;
  Convolutions(std::int64_t batch, int n) {
    std::string at = m.input("x", DType::kF32, {batch, 16, 10, 11});
    for (int i = 0; i < n; ++i) {
      const std::string w = "w" + std::to_string(i);
      std::vector<float> values = noise(std::size_t{16} * 16 * 9, 5);
      for (float& v : values) v *= 0.1f;
      m.weights.push_back(weight<float>(w, DType::kF32, {16, 16, 3, 3}, values));
      at = m.node(OpTag::kConv, {{"pads", Ints{1, 1, 1, 1}}, {"groups", std::int64_t{1}}}, {at, w});
    }
    m.graph.outputs = {at};
  }
};

TEST(Layouts, ASampleHasTheSameBitsInEveryBatch) {
  constexpr std::size_t kSample = std::size_t{16} * 10 * 11;
  const std::vector<float> x = noise(7 * kSample, 3);
  GraphRunner one(Convolutions(1, 2).m, backend("cpu"));
  std::vector<float> alone;
  for (std::size_t i = 0; i < 7; ++i) {
    const std::vector<float> sample(x.begin() + static_cast<std::ptrdiff_t>(i * kSample),
                                    x.begin() + static_cast<std::ptrdiff_t>((i + 1) * kSample));
    const auto got = run_all(one, {view(DType::kF32, {1, 16, 10, 11}, sample)});
    alone.insert(alone.end(), got[0].begin(), got[0].end());
  }
  GraphRunner all(Convolutions(7, 2).m, backend("cpu"));
  EXPECT_TRUE(same_bits(run_all(all, {view(DType::kF32, {7, 16, 10, 11}, x)})[0], alone));
}

TEST(Layouts, WhatIsNotFiniteStaysWhereTheTapsTakeIt) {
  std::vector<float> x = noise(std::size_t{16} * 10 * 11, 4);
  x[5] = std::numeric_limits<float>::infinity();
  x[3 * 110 + 47] = std::numeric_limits<float>::quiet_NaN();
  x[7 * 110 + 109] = -std::numeric_limits<float>::infinity();
  // Finite, and so are the sums of their taps; those of a transform are not.
  for (const std::size_t at : {60u, 61u, 71u, 72u}) x[9 * 110 + at] = 1.5e38f;
  const std::vector<TensorView> inputs = {view(DType::kF32, {1, 16, 10, 11}, x)};
  const Convolutions one(1, 1);
  GraphRunner plain(one.m, backend("reference"), kAllOff);
  const auto want = run_all(plain, inputs);
  const auto finite = std::ranges::count_if(want[0], [](float v) { return std::isfinite(v); });
  EXPECT_EQ(finite, 16 * (110 - 6 - 9 - 4));
  on_cpu(one.m, inputs, want, true);
}

}  // namespace
}  // namespace cyb
