// Graphs and runs that the tests of the executor's passes share.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "support/far_backend.hpp"
#include "support/graph_maker.hpp"
#include "support/tolerance.hpp"

namespace cyb {

using test::GraphMaker;
using test::GraphRunner;
using test::threads;
using test::values;
using test::view;
using test::weight;

using Ints = std::vector<std::int64_t>;

inline std::shared_ptr<Backend> backend(const std::string& name) {
  return name == "far" ? test::make_far_backend(threads(2)).value()
                       : create_backend(name, threads(2)).value();
}

inline std::vector<float> numbers(std::size_t n, float scale = 1.0f) {
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i)
    out[i] = scale * (static_cast<float>((i * 37 + 11) % 101) / 50.0f - 1.0f);
  return out;
}

inline constexpr TensorOptions kAllOff{.fuse = false, .in_place = false};

/// x [1, 4, 6, 6] f32 goes in.
struct Picture {
  GraphMaker m;
  std::string x;
  Picture() { x = m.input("x", DType::kF32, {1, 4, 6, 6}); }

  std::string conv(const std::string& from, std::int64_t channels, float scale = 0.2f) {
    const std::string w = "w" + std::to_string(m.weights.size());
    const auto n = static_cast<std::size_t>(channels * 4 * 9);
    m.weights.push_back(weight<float>(w, DType::kF32, {channels, 4, 3, 3}, numbers(n, scale)));
    m.weights.push_back(weight<float>(w + "b", DType::kF32, {channels},
                                      numbers(static_cast<std::size_t>(channels))));
    return m.node(OpTag::kConv,
                  {{"strides", Ints{1, 1}},
                   {"dilations", Ints{1, 1}},
                   {"pads", Ints{1, 1, 1, 1}},
                   {"groups", std::int64_t{1}}},
                  {from, w, w + "b"});
  }
  std::string constant(const std::string& name, const Shape& shape, std::vector<float> data) {
    m.weights.push_back(weight<float>(name, DType::kF32, shape, data));
    return name;
  }
};

inline std::vector<std::vector<float>> run_all(GraphRunner& run,
                                               const std::vector<TensorView>& inputs) {
  EXPECT_TRUE(run.forward) << run.error;
  if (!run.forward) return {};
  const auto done = run.forward->run(inputs);
  EXPECT_TRUE(done) << done.error().text();
  if (!done) return {};
  std::vector<std::vector<float>> out;
  for (std::size_t i = 0; i < run.forward->outputs().size(); ++i)
    out.push_back(values<float>(run.forward->output(i).value()));
  return out;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// All passes off on the reference is the truth; every other way to run it is held against that.
inline void expect_equal_everywhere(GraphMaker& m, const std::vector<TensorView>& inputs) {
  GraphRunner plain(m, backend("reference"), kAllOff);
  const auto want = run_all(plain, inputs);
  for (const bool fuse : {false, true}) {
    for (const bool in_place : {false, true}) {
      for (const char* name : {"reference", "far", "cpu"}) {
        GraphRunner run(m, backend(name), {.fuse = fuse, .in_place = in_place});
        for (int repeat = 0; repeat < 2; ++repeat) {
          const auto got = run_all(run, inputs);
          ASSERT_EQ(got.size(), want.size());
          for (std::size_t i = 0; i < want.size(); ++i) {
            if (std::string(name) == "cpu") {
              EXPECT_LE(test::error_of(got[i], want[i]),
                        test::tolerance(ToleranceClass::kF, DType::kF32))
                  << "cpu fuse " << fuse << " in place " << in_place << " output " << i;
            } else {
              EXPECT_TRUE(same_bits(got[i], want[i]))
                  << name << " fuse " << fuse << " in place " << in_place << " output " << i;
            }
          }
        }
      }
    }
  }
}

}  // namespace cyb
