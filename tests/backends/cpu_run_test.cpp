// Running of plans on the cpu backend: allocations, errors, cancellation, fallback, KV pages, float
// weights, non-finite values.
#include <gtest/gtest.h>

#include <limits>
#include <stop_token>

#include "backends/cpu/cpu_backend.hpp"
#include "base/half.hpp"
#include "cpu_plan.hpp"
#include "support/alloc_count.hpp"

namespace cyb {
namespace {

using namespace testing_plan;

std::shared_ptr<Backend> backend(bool exact = false, bool fallback = false) {
  return create_cpu_backend({.n_threads = 2, .exact = exact, .isa = {}, .allow_fallback = fallback})
      .value();
}

Sizes q8_sizes() {
  Sizes z;
  z.matrix = DType::kQ8;
  return z;
}

TEST(CpuRun, NoAllocationAfterTheFirstRun) {
  for (const bool exact : {false, true}) {
    const Sizes z = q8_sizes();
    const Tensors t(z);
    Decoder decoder(backend(exact), t, z);
    decoder.run({{0, std::vector<std::int32_t>(60, 3)}});
    for (const std::size_t n : {1u, 5u, 1u, 40u, 1u}) {  // grows past several pages and key chunks
      decoder.set({{0, std::vector<std::int32_t>(n, 7)}});
      const StepParams params = decoder.step_params();
      const test::AllocationCount count;
      ASSERT_TRUE(decoder.executable->submit(params));
      ASSERT_TRUE(decoder.executable->sync());
      ASSERT_TRUE(decoder.executable->output(0));
      EXPECT_EQ(count.news(), 0u) << n << " tokens";
    }
  }
}

TEST(CpuRun, RefusesWhatItCannotRun) {
  const Sizes z = q8_sizes();
  const Tensors t(z);
  Decoder decoder(backend(), t, z, 8);
  const auto refused = [&](const StepParams& params) {
    const auto got = decoder.executable->submit(params);
    return got ? std::string() : got.error().text();
  };
  decoder.set({{0, {1, 2, 96}}});
  EXPECT_NE(refused(decoder.step_params()).find("token id 96"), std::string::npos);
  decoder.set({{0, {1, -1}}});
  EXPECT_NE(refused(decoder.step_params()).find("token id -1"), std::string::npos);
  decoder.set({{0, std::vector<std::int32_t>(9, 1)}});
  EXPECT_NE(refused(decoder.step_params()).find("9 tokens"), std::string::npos);
  decoder.set({{0, {1, 2}}});
  StepParams params = decoder.step_params();
  params.kv = nullptr;
  EXPECT_NE(refused(params), "");
  params = decoder.step_params();
  params.ids = {};
  EXPECT_NE(refused(params), "");
  params = decoder.step_params();
  const SequenceSpan no_pages{0, 2, 0, {}};
  params.sequences = std::span(&no_pages, 1);
  EXPECT_NE(refused(params), "");
  const std::uint32_t far_page[] = {64};
  const SequenceSpan wrong_page{0, 2, 0, far_page};
  params.sequences = std::span(&wrong_page, 1);
  EXPECT_NE(refused(params), "");
  const SequenceSpan short_span{0, 1, 0, {}};
  params.sequences = std::span(&short_span, 1);
  EXPECT_NE(refused(params), "");
  const std::int32_t rows[] = {2};
  params = decoder.step_params();
  params.output_rows = rows;
  EXPECT_NE(refused(params), "");
  EXPECT_FALSE(decoder.executable->sync()) << "nothing was submitted";
  ASSERT_TRUE(decoder.executable->submit(decoder.step_params()));
  EXPECT_EQ(decoder.executable->submit(decoder.step_params()).error().kind(), ErrorKind::kBusy);
  EXPECT_FALSE(decoder.executable->output(0)) << "no result before sync";
  EXPECT_TRUE(decoder.executable->sync());
  EXPECT_TRUE(decoder.executable->output(0));
}

TEST(CpuRun, CancelledRunLeavesTheExecutableUsable) {
  const Sizes z = q8_sizes();
  const Tensors t(z);
  Decoder decoder(backend(), t, z);
  std::stop_source source;
  source.request_stop();
  decoder.set({{0, {1, 2, 3}}});
  ASSERT_TRUE(decoder.executable->submit(decoder.step_params()));
  const auto cancelled = decoder.executable->sync(source.get_token());
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().kind(), ErrorKind::kCancelled);
  EXPECT_FALSE(decoder.executable->output(0));
  Decoder fresh(backend(), t, z);
  const auto want = fresh.run({{0, {1, 2, 3}}});
  EXPECT_EQ(decoder.run({{0, {1, 2, 3}}}), want);
}

TEST(CpuRun, PageCopyCarriesKeysAndValues) {
  for (const bool exact : {false, true}) {
    const Sizes z = q8_sizes();
    const Tensors t(z);
    Decoder decoder(backend(exact), t, z);
    const std::vector<std::int32_t> prompt(16, 5);
    decoder.run({{0, prompt}});
    decoder.set({{0, {9}}});
    StepParams params = decoder.step_params();
    ASSERT_TRUE(decoder.executable->submit(params));
    ASSERT_TRUE(decoder.executable->sync());
    const auto first = decoder.executable->output(0).value();
    const std::vector<float> want(first.begin(), first.end());
    // The same step from copies of the first page, in another place.
    ASSERT_TRUE(decoder.kv->copy_page(params.sequences[0].pages[0], 63));
    const std::uint32_t pages[] = {63, 62};
    SequenceSpan moved = params.sequences[0];
    moved.pages = pages;
    params.sequences = std::span(&moved, 1);
    ASSERT_TRUE(decoder.executable->submit(params));
    ASSERT_TRUE(decoder.executable->sync());
    const auto second = decoder.executable->output(0).value();
    EXPECT_EQ(std::vector<float>(second.begin(), second.end()), want);
    EXPECT_FALSE(decoder.kv->copy_page(0, 64));
  }
}

/// y = x W^T of one weight, x from an embedding of f32 rows.
struct OneProduct {
  std::vector<float> x;
  std::vector<std::byte> w;
  std::unique_ptr<Weight> table, weight;
  std::unique_ptr<Executable> executable;

  OneProduct(Backend& b, DType dtype, std::int64_t n_out, std::int64_t n_in,
             std::vector<float> rows, std::vector<std::byte> bytes)
      : x(std::move(rows)), w(std::move(bytes)) {
    const auto n = static_cast<std::int64_t>(x.size()) / n_in;
    const auto* p = reinterpret_cast<const std::byte*>(x.data());
    table =
        b.load_weight({"x", DType::kF32, Shape{n, n_in}, {p, x.size() * 4}}, WeightUse::kGather, {})
            .value();
    weight = b.load_weight({"w", dtype, Shape{n_out, n_in}, w}, WeightUse::kMatmul, {}).value();
    const Operand ids{.kind = Operand::Kind::kIds,
                      .rows = RowKind::kTokens,
                      .dtype = DType::kI32,
                      .shape = Shape{n}};
    const Operand from{
        .kind = Operand::Kind::kWeight, .shape = Shape{n, n_in}, .weight = table.get()};
    const Operand in{
        .kind = Operand::Kind::kArena, .rows = RowKind::kTokens, .shape = Shape{n, n_in}};
    const Operand by{.kind = Operand::Kind::kWeight,
                     .dtype = dtype,
                     .shape = Shape{n_out, n_in},
                     .weight = weight.get()};
    const auto offset = static_cast<std::uint64_t>(n * n_in * 4 + 255) / 256 * 256;
    const Operand out{.kind = Operand::Kind::kArena,
                      .rows = RowKind::kTokens,
                      .shape = Shape{n, n_out},
                      .offset = offset};
    Plan plan;
    plan.steps.push_back({Op{OpTag::kTokenEmbed, {}}, {ids, from}, {in}, "x"});
    plan.steps.push_back({Op{OpTag::kMatmul, {}}, {in, by}, {out}, "y"});
    plan.outputs = {out};
    plan.arena_bytes = offset + static_cast<std::uint64_t>(n * n_out * 4);
    plan.max_tokens = static_cast<std::uint32_t>(n);
    executable = b.compile(std::move(plan)).value();
  }
  std::vector<float> run() {
    std::vector<std::int32_t> ids(executable_rows());
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
    EXPECT_TRUE(executable->submit(
        {.ids = ids, .positions = ids, .output_rows = {}, .sequences = {}, .kv = nullptr}));
    EXPECT_TRUE(executable->sync());
    const auto out = executable->output(0).value();
    return {out.begin(), out.end()};
  }
  std::size_t executable_rows() const { return static_cast<std::size_t>(table->shape()[0]); }
};

std::vector<std::byte> encode_floats(DType dtype, std::vector<float>& values) {
  std::vector<std::byte> bytes;
  for (float& v : values) {
    if (dtype == DType::kF32) {
      const auto* p = reinterpret_cast<const std::byte*>(&v);
      bytes.insert(bytes.end(), p, p + 4);
      continue;
    }
    const std::uint16_t half = dtype == DType::kF16 ? f32_to_f16(v) : f32_to_bf16(v);
    v = dtype == DType::kF16 ? f16_to_f32(half) : bf16_to_f32(half);
    const auto* p = reinterpret_cast<const std::byte*>(&half);
    bytes.insert(bytes.end(), p, p + 2);
  }
  return bytes;
}

TEST(CpuRun, FloatWeightsMeetClassMInEveryMode) {
  std::mt19937 rng(4);
  std::normal_distribution<float> normal;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBf16}) {
    for (const std::int64_t n_in : {std::int64_t{6}, std::int64_t{64}, std::int64_t{999}}) {
      const std::int64_t n_out = 37, n = 9;
      std::vector<float> w(static_cast<std::size_t>(n_out * n_in)),
          x(static_cast<std::size_t>(n * n_in));
      for (float& v : w) v = normal(rng);
      for (float& v : x) v = normal(rng);
      const auto bytes = encode_floats(dtype, w);
      const auto b = backend();
      OneProduct product(*b, dtype, n_out, n_in, x, bytes);
      const auto y = product.run();
      double most = 1, worst = 0;
      for (std::int64_t t = 0; t < n; ++t) {
        for (std::int64_t r = 0; r < n_out; ++r) {
          double sum = 0;
          for (std::int64_t k = 0; k < n_in; ++k) {
            sum += static_cast<double>(x[static_cast<std::size_t>(t * n_in + k)]) *
                   w[static_cast<std::size_t>(r * n_in + k)];
          }
          most = std::max(most, std::fabs(sum));
          worst = std::max(worst, std::fabs(sum - y[static_cast<std::size_t>(t * n_out + r)]));
        }
      }
      EXPECT_LE(worst / most, 1e-6 * std::max(1.0, std::sqrt(static_cast<double>(n_in) / 64)))
          << dtype_name(dtype) << " " << n_in;
    }
  }
}

/// Largest error over the largest output of y = x W^T with q8 weights in the default mode.
double q8_error(std::int64_t n_out, std::size_t n_tokens, std::vector<float>* y_out = nullptr) {
  constexpr std::int64_t kIn = 64;
  std::mt19937 rng(8);
  std::normal_distribution<float> normal;
  std::vector<float> x(n_tokens * kIn), w(static_cast<std::size_t>(n_out * kIn));
  std::vector<std::byte> bytes(static_cast<std::size_t>(n_out * kIn / 32 * 34));
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng() & 255u);
  for (float& v : x) v = normal(rng);
  const std::uint16_t scale = f32_to_f16(0.01f);
  for (std::size_t at = 0; at < bytes.size(); at += 34) std::memcpy(bytes.data() + at, &scale, 2);
  format_info(DType::kQ8).decode(bytes.data(), w.data(), w.size());
  const auto b = backend();
  OneProduct product(*b, DType::kQ8, n_out, kIn, x, bytes);
  const auto y = product.run();
  double most = 1, worst = 0;
  for (std::size_t t = 0; t < n_tokens; ++t) {
    for (std::size_t r = 0; r < static_cast<std::size_t>(n_out); ++r) {
      double sum = 0;
      for (std::size_t k = 0; k < kIn; ++k)
        sum += static_cast<double>(x[t * kIn + k]) * w[r * kIn + k];
      most = std::max(most, std::fabs(sum));
      worst = std::max(worst, std::fabs(sum - y[t * static_cast<std::size_t>(n_out) + r]));
    }
  }
  if (y_out != nullptr) *y_out = y;
  return worst / most;
}

TEST(CpuRun, VocabularyHeadsRoundTheirInputsMoreFinely) {
  EXPECT_GT(q8_error(1024, 3), 1e-3);
  std::vector<float> all;
  EXPECT_LT(q8_error(16400, 11, &all), 5e-5);
  for (const std::size_t n :
       {1u, 2u, 3u, 4u, 5u}) {  // the same rows in smaller runs: the same bits
    std::vector<float> some;
    EXPECT_LT(q8_error(16400, n, &some), 5e-5);
    EXPECT_EQ(std::memcmp(some.data(), all.data(), some.size() * sizeof(float)), 0) << n;
  }
}

TEST(CpuRun, NonFiniteActivationsSurface) {
  const std::int64_t n_in = 64, n_out = 20;
  std::vector<std::byte> w(static_cast<std::size_t>(n_out * n_in / 32 * 34),
                           std::byte{0});  // all weights are zero
  for (const bool exact : {false, true}) {
    const auto b = backend(exact);
    for (const float bad :
         {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x(static_cast<std::size_t>(3 * n_in), 1.0f);
      x[static_cast<std::size_t>(n_in) + 40] = bad;
      OneProduct product(*b, DType::kQ8, n_out, n_in, x, w);
      const auto y = product.run();
      for (std::size_t r = 0; r < 20; ++r) {
        EXPECT_EQ(y[r], 0.0f);
        EXPECT_FALSE(std::isfinite(y[20 + r]));
        EXPECT_EQ(y[40 + r], 0.0f);
      }
    }
  }
}

TEST(CpuRun, StepsWithoutKernelRunOnTheReferenceOrAreRefused) {
  const auto make = [] {
    const Operand ids{.kind = Operand::Kind::kIds,
                      .rows = RowKind::kTokens,
                      .dtype = DType::kI32,
                      .shape = Shape{4}};
    const Operand as_float{
        .kind = Operand::Kind::kArena, .rows = RowKind::kTokens, .shape = Shape{4}};
    Plan plan;
    plan.steps.push_back({Op{OpTag::kCast, Attrs{{static_cast<std::int64_t>(DType::kF32)}}},
                          {ids},
                          {as_float},
                          "cast"});
    plan.outputs = {as_float};
    plan.arena_bytes = 256;
    plan.max_tokens = 4;
    return plan;
  };
  const auto b = backend(false, true);
  auto executable = b->compile(make()).value();
  EXPECT_EQ(executable->n_fallback_steps(), 1u);
  const std::vector<std::int32_t> ids = {3, 1, 4};
  ASSERT_TRUE(executable->submit(
      {.ids = ids, .positions = ids, .output_rows = {}, .sequences = {}, .kv = nullptr}));
  ASSERT_TRUE(executable->sync());
  const auto out = executable->output(0).value();
  EXPECT_EQ(std::vector<float>(out.begin(), out.end()), (std::vector<float>{3, 1, 4}));
  const auto refused = backend(false, false)->compile(make());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), "D6");
  EXPECT_EQ(refused.error().message(), "Op::Cast (i32): no backend accepts it; tried cpu");
}

TEST(CpuRun, WeightsThatDoNotFitAreRefused) {
  const auto b = backend();
  const std::vector<std::byte> bytes(34 * 4);
  EXPECT_FALSE(b->load_weight({"w", DType::kQ8, Shape{4, 33}, bytes}, WeightUse::kMatmul, {}));
  EXPECT_FALSE(b->load_weight({"w", DType::kQ8, Shape{5, 32}, bytes}, WeightUse::kMatmul, {}));
  EXPECT_FALSE(b->load_weight({"w", DType::kQ8, Shape{4, 32}, bytes}, WeightUse::kMatmul,
                              std::span(bytes).first(8)));
  EXPECT_FALSE(
      b->load_weight({"w", DType::kTernary, Shape{34, 16}, bytes}, WeightUse::kMatmul, {}));
  const WeightSource good{"w", DType::kQ8, Shape{4, 32}, bytes};
  EXPECT_EQ(b->packed_bytes(good, WeightUse::kMatmul), 544u);
  EXPECT_EQ(b->packed_bytes(good, WeightUse::kGather), 0u);
  std::vector<std::byte> packed(544);
  ASSERT_TRUE(b->pack(good, WeightUse::kMatmul, packed));
  const auto weight = b->load_weight(good, WeightUse::kMatmul, packed);
  ASSERT_TRUE(weight);
  EXPECT_EQ((*weight)->own_bytes(), 544u);
}

}  // namespace
}  // namespace cyb
