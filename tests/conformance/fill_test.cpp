// The definitions behind fill.hpp and case.hpp, and checks that they make what they promise.
#include "conformance/fill.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.hpp"
#include "base/hash.hpp"
#include "base/philox.hpp"
#include "ops/control/control.hpp"

namespace cyb::test {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::uint64_t key_of(std::string_view seed) {
  const Digest digest = blake3(seed);
  std::uint64_t key = 0;
  std::memcpy(&key, digest.data(), sizeof(key));
  return key;
}

float uniform(std::uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24F;
}

float value_at(Fill fill, std::uint32_t i, std::uint64_t key) {
  const auto w = philox4x32({i, 0, 0, 0}, key);
  const float normal =
      ((uniform(w[0]) + uniform(w[1])) + (uniform(w[2]) + uniform(w[3])) - 2.0F) * 1.7320508F;
  const float sign = (w[3] & 1u) != 0 ? -1.0F : 1.0F;
  switch (fill) {
    case Fill::kPositive:
      return 0.5F + uniform(w[0]);
    case Fill::kWide: {
      const int exponent = static_cast<int>(w[1] % 81) - 40;
      return sign * std::ldexp(1.0F + uniform(w[0]), exponent);
    }
    case Fill::kTiny:
      return std::bit_cast<float>(w[0] & (w[1] % 3 == 0 ? 0x80000000u : 0x80FFFFFFu));
    case Fill::kSpecial:
      if (i % 11 == 3)
        return std::array{std::numeric_limits<float>::quiet_NaN(), kInf, -kInf, -0.0F}[w[1] % 4];
      return normal;
    case Fill::kInfinite:
      return i % 5 == 1 ? (w[1] % 2 == 0 ? -kInf : -0.0F) : normal;
    default:
      return normal;
  }
}

/// How a format's blocks are made: where its halves are, and their sizes. Weights are about 1/16
/// and centred: 256 products with unit activations then have a deviation of 1, the median of
/// SmolLM2's and Qwen2.5's layers (0.8 to 1.5).
struct BlockMaker {
  DType dtype;
  std::size_t scale_at, minimum_at;  // offsets in a block; minimum_at = 0: none
  float scale, minimum;
};

constexpr std::array kBlockMakers = {BlockMaker{DType::kQ8, 0, 0, 1.0F / 1184, 0},
                                     BlockMaker{DType::kQ4, 0, 0, 1.0F / 74, 0},
                                     BlockMaker{DType::kQ4_1, 0, 2, 1.0F / 74, -7.5F / 74},
                                     BlockMaker{DType::kQ5_0, 0, 0, 1.0F / 147, 0},
                                     BlockMaker{DType::kQ5_1, 0, 2, 1.0F / 147, -15.5F / 147},
                                     BlockMaker{DType::kQ2k, 80, 82, 1.0F / 208, 1.5F / 208},
                                     BlockMaker{DType::kQ3k, 108, 0, 1.0F / 670, 0},
                                     BlockMaker{DType::kQ4k, 0, 2, 1.0F / 3200, 7.5F / 3200},
                                     BlockMaker{DType::kQ5k, 0, 2, 1.0F / 7000, 15.5F / 7000},
                                     BlockMaker{DType::kQ6k, 208, 0, 1.0F / 22000, 0}};

/// Random quants under scales of 0.75 to 1.25 times the format's own.
std::vector<std::byte> make_blocks(const In& in, std::uint64_t key) {
  std::vector<std::byte> bytes(tensor_bytes(in.dtype, in.shape).value());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] =
        static_cast<std::byte>(philox4x32({static_cast<std::uint32_t>(i), 1, 0, 0}, key)[0] & 255u);
  }
  const BlockMaker& maker = *std::ranges::find(kBlockMakers, in.dtype, &BlockMaker::dtype);
  const auto put = [&](std::size_t at, float size) {
    const auto w = philox4x32({static_cast<std::uint32_t>(at), 2, 0, 0}, key);
    const std::uint16_t half = f32_to_f16((0.75F + 0.5F * uniform(w[0])) * size);
    std::memcpy(bytes.data() + at, &half, sizeof(half));
  };
  for (std::size_t at = 0; at < bytes.size(); at += format_info(in.dtype).block_bytes) {
    put(at + maker.scale_at, maker.scale);
    if (maker.minimum_at != 0) put(at + maker.minimum_at, maker.minimum);
  }
  return bytes;
}

/// kIndex: 0 .. limit-1; kSmall: -3 .. 3; else all 32 bits.
std::int32_t integer_value(const In& in, std::uint32_t word) {
  if (in.fill == Fill::kIndex)
    return static_cast<std::int32_t>(word % static_cast<std::uint32_t>(in.limit));
  if (in.fill == Fill::kSmall) return static_cast<std::int32_t>(word % 7) - 3;
  return static_cast<std::int32_t>(word);
}

/// The low bytes of a number, as little-endian machines store it.
void put_integer(std::byte* to, std::size_t size, std::int64_t value) {
  std::memcpy(to, &value, size);
}

void put_exact(const In& in, std::byte* to, double value) {
  if (in.dtype == DType::kF64) {
    std::memcpy(to, &value, 8);
  } else if (in.dtype == DType::kF32) {
    const auto single = static_cast<float>(value);
    std::memcpy(to, &single, 4);
  } else if (in.dtype == DType::kF16) {
    const std::uint16_t half = f32_to_f16(static_cast<float>(value));
    std::memcpy(to, &half, 2);
  } else {
    put_integer(to, format_info(in.dtype).block_bytes, static_cast<std::int64_t>(value));
  }
}

}  // namespace

std::vector<std::byte> make_bytes(const In& in, std::string_view seed) {
  const std::uint64_t key = key_of(seed);
  if (is_block(in.dtype)) return make_blocks(in, key);
  const auto n = static_cast<std::size_t>(in.shape.count());
  const std::size_t size = format_info(in.dtype).block_bytes;
  std::vector<std::byte> bytes(n * size);
  const auto put = [&](std::size_t i, auto value) {
    std::memcpy(bytes.data() + i * size, &value, sizeof(value));
  };
  for (std::size_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::uint32_t>(i);
    const std::uint32_t word = philox4x32({at, 3, 0, 0}, key)[0];
    const float value = value_at(in.fill, at, key);
    switch (in.dtype) {
      case DType::kF32:
        put(i, value);
        break;
      case DType::kF16:
        put(i, f32_to_f16(value));
        break;
      case DType::kBf16:
        put(i, f32_to_bf16(value));
        break;
      case DType::kBool:
        put(i, static_cast<std::uint8_t>(word & 1u));
        break;
      case DType::kF64:
        put(i, static_cast<double>(value));
        break;
      case DType::kI64:
        put(i, in.fill == Fill::kIndex || in.fill == Fill::kSmall
                   ? std::int64_t{integer_value(in, word)}
                   : static_cast<std::int64_t>(word) - (std::int64_t{1} << 31));
        break;
      case DType::kUint64:
        put(i, in.fill == Fill::kSmall ? std::uint64_t{word % 7}
                                       : std::uint64_t{word} * 0x9E3779B97F4A7C15u);
        break;
      default:
        put_integer(bytes.data() + i * size, size, integer_value(in, word));
    }
    if (!in.exact.empty()) put_exact(in, bytes.data() + i * size, in.exact[i % in.exact.size()]);
  }
  return bytes;
}

std::string fill_name(Fill fill) {
  static constexpr std::array kNames = {"normal",  "positive", "wide",  "tiny",
                                        "special", "infinite", "index", "small"};
  return kNames[static_cast<std::size_t>(fill)];
}

std::string shape_name(const Shape& shape) {
  std::string out;
  for (const std::int64_t d : shape.dims()) out += (out.empty() ? "" : "x") + std::to_string(d);
  return out.empty() ? "scalar" : out;
}

CaseList unary_cases(const Op& op) {
  CaseList cases;
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    for (const Shape& shape : kEdgeShapes) {
      for (const Fill fill : kEdgeFills) {
        cases.push_back(
            {std::string(dtype_name(dtype)) + "_" + shape_name(shape) + "_" + fill_name(fill),
             op,
             {activation(shape, fill, dtype)}});
      }
    }
  }
  return cases;
}

CaseList real_cases(const Op& op) {
  CaseList cases = unary_cases(op);
  for (const Fill fill : kEdgeFills) {
    cases.push_back({"f64_" + fill_name(fill), op, {activation({3, 7}, fill, DType::kF64)}});
  }
  cases.push_back({"f64_scalar", op, {activation(Shape{}, Fill::kNormal, DType::kF64)}});
  return cases;
}

CaseList dtype_cases(const Op& op, const std::vector<DType>& dtypes, Fill fill) {
  CaseList cases;
  for (const DType dtype : dtypes) {
    for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{2, 3, 5}}) {
      cases.push_back({std::string(dtype_name(dtype)) + "_" + shape_name(shape),
                       op,
                       {activation(shape, fill, dtype)}});
    }
  }
  return cases;
}

CaseList binary_cases(const Op& op, bool integers_divide) {
  const std::vector<std::pair<Shape, Shape>> shapes = {
      {{3, 7}, {3, 7}}, {{2, 3, 5}, {5}}, {{2, 3, 5}, {1}},  {{2, 3, 1}, {1, 3, 4}},
      {{4}, {3, 1}},    {{0, 4}, {4}},    {{1, 64}, {1, 64}}};
  CaseList cases;
  for (const auto& [a, b] : shapes) {
    const std::string name = shape_name(a) + "_" + shape_name(b);
    for (const Fill fill : kEdgeFills) {
      cases.push_back(
          {"f32_" + name + "_" + fill_name(fill), op, {activation(a, fill), activation(b, fill)}});
    }
    cases.push_back(
        {"f16_" + name,
         op,
         {activation(a, Fill::kNormal, DType::kF16), activation(b, Fill::kPositive, DType::kF16)}});
    for (const DType dtype : {DType::kI32, DType::kI64}) {
      if (integers_divide && dtype == DType::kI64) continue;
      // A divisor is drawn from all 32 bits by its own seed; none of these is 0.
      cases.push_back({std::string(dtype_name(dtype)) + "_" + name,
                       op,
                       {activation(a, Fill::kNormal, dtype), activation(b, Fill::kNormal, dtype)}});
    }
  }
  return cases;
}

namespace {
std::vector<OpCases>& tables() {
  static std::vector<OpCases> all;
  return all;
}
}  // namespace

CaseTable::CaseTable(OpTag tag, CaseList cases) {
  tables().push_back({tag, std::move(cases)});
}

const std::vector<OpCases>& all_cases() {
  std::ranges::sort(tables(), {}, &OpCases::tag);
  return tables();
}

TEST(Fill, SpecialHasEveryKindAndTinyIsTiny) {
  const auto special = make_bytes(activation(Shape{1000}, Fill::kSpecial), "test");
  const auto* s = reinterpret_cast<const float*>(special.data());
  EXPECT_TRUE(std::any_of(s, s + 1000, [](float v) { return std::isnan(v); }));
  EXPECT_TRUE(std::any_of(s, s + 1000, [](float v) { return v == kInf; }));
  EXPECT_TRUE(std::any_of(s, s + 1000, [](float v) { return v == -kInf; }));
  EXPECT_TRUE(std::any_of(s, s + 1000, [](float v) { return v == 0.0F && std::signbit(v); }));
  const auto tiny = make_bytes(activation(Shape{1000}, Fill::kTiny), "test");
  const auto* t = reinterpret_cast<const float*>(tiny.data());
  EXPECT_TRUE(std::all_of(t, t + 1000, [](float v) { return std::fabs(v) < 1e-37F; }));
  EXPECT_TRUE(
      std::any_of(t, t + 1000, [](float v) { return v != 0.0F && std::fabs(v) < 1.1e-38F; }));
}

TEST(Fill, BlocksDecodeToWeightsOfOneSize) {
  for (const BlockMaker& maker : kBlockMakers) {
    const In in = matrix(8, 1024, maker.dtype);
    const auto bytes = make_bytes(in, "test");
    std::vector<float> values(8 * 1024);
    format_info(maker.dtype).decode(bytes.data(), values.data(), values.size());
    double squares = 0;
    for (const float v : values) squares += static_cast<double>(v) * v;
    const double rms = std::sqrt(squares / static_cast<double>(values.size()));
    EXPECT_GT(rms, 0.03) << dtype_name(maker.dtype);
    EXPECT_LT(rms, 0.12) << dtype_name(maker.dtype);
  }
}

TEST(Fill, DependsOnTheSeedAlone) {
  const In in = activation(Shape{5, 5});
  EXPECT_EQ(make_bytes(in, "a"), make_bytes(in, "a"));
  EXPECT_NE(make_bytes(in, "a"), make_bytes(in, "b"));
}

TEST(Cases, EveryOpHasATable) {
  for (const OpInfo& op : all_ops()) {
    // State that lives in a run: attention_conformance_test.cpp.
    if (op.tag == OpTag::kKvCache || op.tag == OpTag::kBlockAttention) continue;
    if (is_control(op.tag)) continue;  // bodies are graphs: tests/paths/control_test.cpp
    const auto it = std::ranges::find(all_cases(), op.tag, &OpCases::tag);
    ASSERT_NE(it, all_cases().end()) << op.name << " needs tests/conformance/ops/<op>.cases.cpp";
    EXPECT_FALSE(it->cases.empty()) << op.name;
  }
}

}  // namespace cyb::test
