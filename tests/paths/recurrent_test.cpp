// Recurrent layers with stored weights: the cpu backend runs them itself, near the reference, with
// the same bits on every ISA and number of threads.
#include <random>

#include "backends/cpu/kernels/table.hpp"
#include "paths/executor_support.hpp"

namespace cyb {
namespace {

std::vector<float> normal(std::size_t n, unsigned seed, float scale = 1.0f) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> draw(0.0f, scale);
  std::vector<float> out(n);
  for (float& v : out) v = draw(rng);
  return out;
}
std::size_t count(const Shape& shape) {
  return static_cast<std::size_t>(shape.count());
}

/// A layer under test: x goes in, the rest is stored.
struct Made {
  GraphMaker m;
  Shape x;
  std::vector<float> data;

  std::string stored(const std::string& name, const Shape& shape, unsigned seed,
                     float scale = 0.4f) {
    m.weights.push_back(weight<float>(name, DType::kF32, shape, normal(count(shape), seed, scale)));
    return name;
  }
  void layer(Op op, std::vector<std::string> inputs, std::size_t n_outputs) {
    std::vector<std::string> outputs;
    for (std::size_t i = 0; i < n_outputs; ++i) outputs.push_back("y" + std::to_string(i));
    m.graph.nodes.push_back({0, std::move(op), 255, std::move(inputs), outputs});
    m.graph.outputs = outputs;
  }
};

void expect_near_reference_with_equal_bits(const Made& made) {
  const std::vector<TensorView> inputs = {view(DType::kF32, made.x, made.data)};
  GraphRunner plain(made.m, backend("reference"), kAllOff);
  const auto want = run_all(plain, inputs);
  std::vector<std::vector<float>> first;
  const char* isas[8];
  for (std::size_t i = cpu::available_isas(isas, std::size(isas)); i-- > 0;) {
    for (const unsigned n : {1u, 2u, 3u}) {
      GraphRunner run(made.m, create_backend("cpu", {.n_threads = n, .isa = isas[i]}).value());
      const auto got = run_all(run, inputs);
      ASSERT_EQ(got.size(), want.size());
      EXPECT_EQ(run.forward->n_fallback_steps(), 0u);
      if (first.empty()) first = got;
      for (std::size_t k = 0; k < want.size(); ++k) {
        EXPECT_LE(test::error_of(got[k], want[k]), test::tolerance(ToleranceClass::kF, DType::kF32))
            << isas[i] << ", output " << k;
        EXPECT_TRUE(same_bits(got[k], first[k])) << isas[i] << ", " << n << " threads";
      }
    }
  }
}

struct Layer {
  OpTag tag;
  std::int64_t length, batch, width, hidden, direction;
  bool batch_first, flag, full;  // flag: linear_before_reset; full: bias and initial states
};

class Recurrent : public testing::TestWithParam<Layer> {};
INSTANTIATE_TEST_SUITE_P(
    Layers, Recurrent,
    testing::Values(Layer{OpTag::kLstmFull, 1, 1, 128, 128, 0, false, false, true},
                    Layer{OpTag::kLstmFull, 70, 2, 9, 5, 2, false, false, true},
                    Layer{OpTag::kLstmFull, 33, 3, 16, 17, 1, true, false, false},
                    Layer{OpTag::kLstmFull, 40, 1, 3, 33, 2, true, false, true},
                    Layer{OpTag::kLstm, 35, 2, 7, 6, 0, false, false, true},
                    Layer{OpTag::kLstm, 5, 1, 7, 6, 2, false, false, false},
                    Layer{OpTag::kGru, 34, 2, 9, 5, 2, false, false, true},
                    Layer{OpTag::kGru, 3, 1, 20, 24, 0, true, false, true},
                    Layer{OpTag::kGru, 33, 2, 9, 19, 1, false, true, true},
                    Layer{OpTag::kGru, 6, 2, 9, 8, 2, true, true, false}));

TEST_P(Recurrent, StoredWeights) {
  const Layer& p = GetParam();
  const bool plain = p.tag == OpTag::kLstm, gru = p.tag == OpTag::kGru;
  const std::int64_t gates = gru ? 3 : 4, d = p.direction == 2 ? 2 : 1;
  Made made;
  made.x = p.batch_first ? Shape{p.batch, p.length, p.width} : Shape{p.length, p.batch, p.width};
  made.data = normal(count(made.x), 1);
  std::vector<Dim> dims;
  for (const std::int64_t n : made.x.dims()) dims.emplace_back(n);
  const Shape state = p.batch_first ? Shape{p.batch, d, p.hidden} : Shape{d, p.batch, p.hidden};
  std::vector<std::string> in = {made.m.input("x", DType::kF32, dims),
                                 made.stored("w", {d, gates * p.hidden, p.width}, 2),
                                 made.stored("r", {d, gates * p.hidden, p.hidden}, 3)};
  if (p.full) {
    in.push_back(made.stored("b", {d, 2 * gates * p.hidden}, 4));
    if (!plain) in.emplace_back();
    in.push_back(made.stored("h0", state, 5));
    if (!gru) in.push_back(made.stored("c0", state, 6));
  }
  std::vector<NamedAttr> attrs = {{"hidden", p.hidden}};
  if (plain) {
    attrs.push_back({"bidirectional", d - 1});
  } else {
    attrs.push_back({"direction", p.direction});
    attrs.push_back({"batch_first", std::int64_t{p.batch_first}});
    if (gru) attrs.push_back({"linear_before_reset", std::int64_t{p.flag}});
  }
  made.layer(make_op(p.tag, std::span<const NamedAttr>(attrs)).value(), in, gru ? 2 : 3);
  expect_near_reference_with_equal_bits(made);
}

struct Dynamic {
  std::int64_t length, batch, width, hidden, direction;
  DType dtype;
  bool per_column, full;
};

class DynamicLstms : public testing::TestWithParam<Dynamic> {};
INSTANTIATE_TEST_SUITE_P(Layers, DynamicLstms,
                         testing::Values(Dynamic{5, 1, 33, 8, 0, DType::kI8, false, true},
                                         Dynamic{35, 2, 8, 5, 2, DType::kU8, true, true},
                                         Dynamic{3, 3, 1, 17, 1, DType::kI8, true, false}));

// h is rounded to bytes at every step: a last bit that decides about one would be a difference of a
// whole step of the scale. With these numbers none does.
TEST_P(DynamicLstms, StoredWeights) {
  const Dynamic& p = GetParam();
  const std::int64_t d = p.direction == 2 ? 2 : 1, gates = 4 * p.hidden;
  Made made;
  made.x = {p.length, p.batch, p.width};
  made.data = normal(count(made.x), 7);
  const auto bytes = [&](const std::string& name, const Shape& shape, unsigned seed) {
    std::mt19937 rng(seed);
    std::vector<std::uint8_t> all(count(shape));
    for (std::uint8_t& v : all) v = static_cast<std::uint8_t>(rng());
    made.m.weights.push_back(weight(name, p.dtype, shape, all));
    return name;
  };
  const auto scales = [&](const std::string& name, const Shape& shape) {
    std::vector<float> all = normal(count(shape), 8);
    for (float& v : all) v = 0.001f + 0.002f * std::fabs(v);
    made.m.weights.push_back(weight(name, DType::kF32, shape, all));
    return name;
  };
  const Shape each = p.per_column ? Shape{d, gates} : Shape{d};
  std::vector<std::string> in = {made.m.input("x", DType::kF32, {p.length, p.batch, p.width}),
                                 bytes("w", {d, p.width, gates}, 9),
                                 bytes("r", {d, p.hidden, gates}, 10),
                                 scales("ws", each),
                                 bytes("wz", each, 11),
                                 scales("rs", each),
                                 bytes("rz", each, 12)};
  if (p.full) {
    in.push_back(made.stored("b", {d, 8 * p.hidden}, 13));
    in.push_back(made.stored("h0", {d, p.batch, p.hidden}, 14));
    in.push_back(made.stored("c0", {d, p.batch, p.hidden}, 15));
  }
  made.layer(
      make_op(OpTag::kDynamicLstm, {{"hidden", p.hidden}, {"direction", p.direction}}).value(), in,
      3);
  expect_near_reference_with_equal_bits(made);
}

}  // namespace
}  // namespace cyb
