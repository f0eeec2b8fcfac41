// Symbolic dimensions and shape rules: normal forms, inferred shapes with unbound symbols, and the
// codes and texts of errors.
#include <gtest/gtest.h>

#include "ops/attention/kv_cache.hpp"
#include "ops/attention/sdpa.hpp"
#include "ops/blocks.hpp"
#include "ops/layout/reshape.hpp"
#include "ops/norm/rms_norm.hpp"
#include "ops/op.hpp"

namespace cyb {
namespace {

const Dim kB = Dim::symbol(kSymbolB), kS = Dim::symbol(kSymbolS), kP = Dim::symbol(kSymbolP);
const std::vector<std::string> kNames = {"B", "S", "P"};

TensorSpec f32(std::vector<Dim> dims) {
  return {DType::kF32, std::move(dims)};
}

void expect_error(const Result<std::vector<TensorSpec>>& r, std::string_view code,
                  std::string_view message) {
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), code);
  EXPECT_EQ(r.error().message(), message);
}

TEST(Dim, EqualityIsByNormalForm) {
  EXPECT_EQ(kS + kP, kP + kS);
  EXPECT_EQ(kS + kS, kS * 2);
  EXPECT_EQ(kS + kS * -1, Dim(0));
  EXPECT_FALSE(Dim::anonymous() == Dim::anonymous());
  EXPECT_FALSE(certainly_differ(kS, Dim(3)));
  EXPECT_TRUE(certainly_differ(Dim(2), Dim(3)));
  EXPECT_EQ((kS * 2 + Dim(1)).text(kNames), "2*S+1");
}

TEST(Dim, OverflowIsAnonymousNotWrapped) {
  EXPECT_TRUE((Dim(INT64_MAX) + Dim(1)).is_anonymous());
  EXPECT_TRUE((kS * INT64_MAX * 2).is_anonymous());
  EXPECT_EQ(kS.eval({}), std::nullopt);
  EXPECT_EQ((kS * 2).eval(std::vector<std::int64_t>{0, INT64_MAX}), std::nullopt);
  EXPECT_EQ((kS + kP).eval(std::vector<std::int64_t>{1, 3, 4}), 7);
}

TEST(Infer, ReshapeSplitsAndJoinsHeadsOfSymbolicRows) {
  const auto split = infer({OpTag::kReshape, ReshapeAttrs{{0, 0, -1, 8}}.to_attrs()},
                           std::vector{f32({kB, kS, 24})});
  ASSERT_TRUE(split);
  EXPECT_EQ((*split)[0].text(kNames), "f32 [B, S, 3, 8]");
  const auto flat =
      infer({OpTag::kReshape, ReshapeAttrs{{-1, 24}}.to_attrs()}, std::vector{f32({kS, 3, 8})});
  EXPECT_EQ((*flat)[0].text(kNames), "f32 [S, 24]");
  const auto product =
      infer({OpTag::kReshape, ReshapeAttrs{{-1, 24}}.to_attrs()}, std::vector{f32({kB, kS, 24})});
  EXPECT_EQ((*product)[0].text(kNames), "f32 [?, 24]");
}

TEST(Infer, KvCacheReturnsPastAndNewRows) {
  const std::vector in = {f32({kB, 2, kS, 8}), f32({kB, 2, kS, 8})};
  const auto all = infer({OpTag::kKvCache, KvCacheAttrs{0, 0}.to_attrs()}, in);
  EXPECT_EQ((*all)[0].dims[2], kS + kP);
  const auto ring = infer({OpTag::kKvCache, KvCacheAttrs{0, 4}.to_attrs()}, in);
  EXPECT_TRUE((*ring)[0].dims[2].is_anonymous());
}

TEST(Infer, ErrorsHaveTheCodesAndTextsOfTheGraphRules) {
  const Op matmul{OpTag::kMatmul, {}}, add{OpTag::kAdd, {}};
  expect_error(infer(matmul, std::vector{f32({2, 3})}), "G05", "1 inputs, needs 2 to 3");
  expect_error(infer(matmul, std::vector{f32({2, 3}), f32({5, 4})}), "G10",
               "shape [5, 4], expected a last dimension of 3");
  expect_error(infer(add, std::vector{f32({2}), TensorSpec{DType::kF16, {2}}}), "G09",
               "dtype f16 not allowed for input 1");
  expect_error(infer(add, std::vector{f32({2}), f32({3})}), "G10",
               "shape [3], expected one that broadcasts with [2]");
  expect_error(infer({OpTag::kRmsNorm, {}}, std::vector{f32({2}), f32({2})}), "G04",
               "bad payload: length");
  expect_error(infer({OpTag::kRmsNorm, Attrs{{std::int64_t{1}}}}, std::vector{f32({2}), f32({2})}),
               "G04", "bad payload: eps");
  const SdpaAttrs uneven{3, 2, 8, true, 0, 0, 0};
  expect_error(infer({OpTag::kSdpa, uneven.to_attrs()}, std::vector(3, f32({1, 3, 2, 8}))), "G04",
               "bad payload: kv_heads");
}

TEST(Infer, BlockWeightsOnlyWhereTheyMayBe) {
  const TensorSpec q4{DType::kQ4, {64, 32}};
  EXPECT_TRUE(infer({OpTag::kMatmul, {}}, std::vector{f32({kS, 32}), q4}));
  EXPECT_TRUE(takes_encoded({OpTag::kMatmul, {}}, 1));
  EXPECT_FALSE(takes_encoded({OpTag::kMatmul, {}}, 2));
  EXPECT_FALSE(takes_encoded({OpTag::kAdd, {}}, 1));
  expect_error(infer({OpTag::kAdd, {}}, std::vector{f32({64, 32}), q4}), "G09",
               "dtype q4 not allowed for input 1");
  const Op two{OpTag::kBlockNormLinear, BlockNormLinearAttrs{1e-5F, 2}.to_attrs()};
  EXPECT_TRUE(takes_encoded(two, 3));
  EXPECT_FALSE(takes_encoded(two, 4));  // the first bias
}

/// Records tags and infers specs: what a graph recorded from a block holds.
class Recorder final : public OpSink {
 public:
  ValueId add(TensorSpec s) {
    specs.push_back(std::move(s));
    return static_cast<ValueId>(specs.size() - 1);
  }
  Result<std::vector<ValueId>> emit(const Op& op, std::span<const ValueId> in) override {
    std::vector<TensorSpec> given;
    for (const ValueId v : in) given.push_back(specs[v]);
    CYB_ASSIGN(std::vector<TensorSpec> outputs, infer(op, given));
    names.emplace_back(op_info(op.tag).name);
    std::vector<ValueId> ids;
    for (TensorSpec& s : outputs) ids.push_back(add(std::move(s)));
    return ids;
  }
  Result<ValueId> constant(std::span<const float>, const Shape& s) override {
    return add(TensorSpec::of(DType::kF32, s));
  }
  Result<ValueId> positions() override { return add({DType::kI32, {kS}}); }
  const TensorSpec& spec(ValueId v) const override { return specs[v]; }
  std::vector<TensorSpec> specs = {TensorSpec::none()};
  std::vector<std::string> names;
};

TEST(Decompose, AttentionIsPlainOpsOverSymbolicRows) {
  Recorder sink;
  const BlockAttentionAttrs a{.layer = 0,
                              .n_heads = 4,
                              .n_kv_heads = 2,
                              .head_dim = 8,
                              .scale = 0.3F,
                              .softcap = 0,
                              .window = 0,
                              .rope_dim = 8,
                              .rope_base = 1e4F,
                              .rope_style = 0,
                              .norm_eps = 1e-6F};
  const std::vector in = {sink.add(f32({kB, kS, 32})), sink.add(f32({kB, kS, 16})),
                          sink.add(f32({kB, kS, 16})), sink.add(f32({8})), sink.add(f32({8}))};
  const auto out = decompose({OpTag::kBlockAttention, a.to_attrs()}, in, sink);
  ASSERT_TRUE(out) << out.error().text();
  EXPECT_EQ(sink.spec((*out)[0]).text(kNames), "f32 [B, S, 32]");
  const std::vector<std::string> want = {"Reshape", "Permute", "RmsNorm", "Reshape", "Permute",
                                         "RmsNorm", "Reshape", "Permute", "Rope",    "Rope",
                                         "KvCache", "Sdpa",    "Permute", "Reshape"};
  EXPECT_EQ(sink.names, want);
}

TEST(Decompose, PlainOpsHaveNone) {
  Recorder sink;
  EXPECT_FALSE(decompose({OpTag::kAdd, {}}, std::vector<ValueId>{0, 0}, sink));
}

}  // namespace
}  // namespace cyb
