// The int8 and f32 dot kernels of every ISA this machine has, against the scalar contract and
// against f64 sums.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "backends/cpu/kernels/table.hpp"
#include "backends/cpu/panels.hpp"
#include "cpu_contract.hpp"

namespace cyb {
namespace {

using cpu::KernelTable;
using cpu::PanelFormat;

constexpr std::array kBlockTypes = {DType::kQ4,  DType::kQ4_1, DType::kQ5_0, DType::kQ5_1,
                                    DType::kQ8,  DType::kQ2k,  DType::kQ3k,  DType::kQ4k,
                                    DType::kQ5k, DType::kQ6k};

std::vector<const KernelTable*> tables() {
  std::array<const char*, 8> names{};
  const std::size_t n = cpu::available_isas(names.data(), names.size());
  std::vector<const KernelTable*> out;
  for (std::size_t i = 0; i < n; ++i) out.push_back(cpu::find_kernels(names[i]));
  return out;
}

std::vector<std::uint8_t> panel_of(DType type, const std::vector<std::byte>& rows,
                                   std::size_t n_out, std::size_t n_in) {
  const PanelFormat format = *cpu::panel_format(type);
  // Prefetching reads addresses past the panel, never bytes: no slack is needed.
  std::vector<std::uint8_t> panel(cpu::panel_bytes(format, n_in));
  cpu::pack_panel(format, rows.data(), n_out, n_in, 0, reinterpret_cast<std::byte*>(panel.data()));
  return panel;
}

std::vector<float> random_x(std::size_t n, std::mt19937& rng, bool extreme) {
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = extreme ? (rng() % 2 == 0 ? 3.0f : -3.0f) : normal(rng);
  return x;
}

std::vector<float> run_q8(const KernelTable& k, PanelFormat format,
                          const std::vector<std::uint8_t>& panel, const std::vector<float>& x,
                          std::size_t n_tokens, std::size_t n_in) {
  std::vector<std::uint8_t> records(n_tokens * n_in / 32 * cpu::kRecordBytes);
  for (std::size_t t = 0; t < n_tokens; t += cpu::kTileTokens) {
    k.quantize(x.data() + t * n_in, n_in, n_in, std::min(cpu::kTileTokens, n_tokens - t),
               records.data() + t * n_in / 32 * cpu::kRecordBytes);
  }
  std::vector<float> out(n_tokens * 16);
  std::vector<std::uint8_t> scratch(cpu::dot_scratch_bytes(n_in / 32));
  k.dot_q8[static_cast<std::size_t>(format)](
      {panel.data(), n_in / 32, records.data(), n_tokens, out.data(), scratch.data()});
  return out;
}

void expect_contract(DType type, bool extreme) {
  std::mt19937 rng(static_cast<unsigned>(type) * 7 + (extreme ? 1 : 0));
  constexpr std::size_t kIn = 768, kTokens = 27;
  for (const std::size_t n_out : {std::size_t{16}, std::size_t{5}}) {
    const auto rows = contract::random_rows(type, n_out, kIn, rng, extreme);
    const auto panel = panel_of(type, rows, n_out, kIn);
    const auto x = random_x(kTokens * kIn, rng, extreme);
    const std::size_t row_bytes = rows.size() / n_out;
    for (const KernelTable* k : tables()) {
      const auto out = run_q8(*k, *cpu::panel_format(type), panel, x, kTokens, kIn);
      for (std::size_t t = 0; t < kTokens; ++t) {
        std::vector<contract::Act> acts;
        for (std::size_t b = 0; b < kIn; b += 32)
          acts.push_back(contract::quantize(x.data() + t * kIn + b));
        for (std::size_t r = 0; r < n_out; ++r) {
          const float want = contract::row_dot(
              type, reinterpret_cast<const std::uint8_t*>(rows.data()) + r * row_bytes, acts);
          ASSERT_EQ(out[t * 16 + r], want)
              << k->isa << " " << dtype_name(type) << " token " << t << " row " << r;
        }
        for (std::size_t r = n_out; r < 16; ++r)
          ASSERT_EQ(out[t * 16 + r], 0.0f) << k->isa << " padding row " << r;
      }
    }
  }
}

TEST(CpuDot, EqualsTheScalarContractOnRandomBlocks) {
  for (const DType type : kBlockTypes) expect_contract(type, false);
}

TEST(CpuDot, EqualsTheScalarContractOnExtremeBlocks) {
  for (const DType type : kBlockTypes) expect_contract(type, true);
}

TEST(CpuDot, BitsDoNotDependOnTheNumberOfTokens) {
  std::mt19937 rng(11);
  constexpr std::size_t kIn = 512, kTokens = 37;
  for (const DType type : kBlockTypes) {
    const auto rows = contract::random_rows(type, 16, kIn, rng);
    const auto panel = panel_of(type, rows, 16, kIn);
    const auto x = random_x(kTokens * kIn, rng, false);
    for (const KernelTable* k : tables()) {
      const auto all = run_q8(*k, *cpu::panel_format(type), panel, x, kTokens, kIn);
      for (const std::size_t n : {1u, 2u, 3u, 4u, 5u, 7u, 8u}) {
        for (std::size_t first = 0; first + n <= kTokens; first += n) {
          const std::vector<float> some(x.begin() + static_cast<std::ptrdiff_t>(first * kIn),
                                        x.begin() + static_cast<std::ptrdiff_t>((first + n) * kIn));
          const auto part = run_q8(*k, *cpu::panel_format(type), panel, some, n, kIn);
          ASSERT_EQ(std::memcmp(part.data(), all.data() + first * 16, part.size() * sizeof(float)),
                    0)
              << k->isa << " " << dtype_name(type) << " " << n << " tokens from " << first;
        }
      }
    }
  }
}

TEST(CpuDot, PanelsDecodeToTheValuesOfTheFormat) {
  std::mt19937 rng(3);
  constexpr std::size_t kIn = 512;
  for (const DType type : kBlockTypes) {
    for (const bool extreme : {false, true}) {
      const auto rows = contract::random_rows(type, 16, kIn, rng, extreme);
      const auto panel = panel_of(type, rows, 16, kIn);
      std::vector<float> want(16 * kIn);
      format_info(type).decode(rows.data(), want.data(), want.size());
      for (const KernelTable* k : tables()) {
        std::vector<float> got(16 * 256);
        for (std::size_t k0 = 0; k0 < kIn; k0 += 256) {
          k->dequant[static_cast<std::size_t>(*cpu::panel_format(type))](panel.data(), k0, 256,
                                                                         got.data());
          for (std::size_t i = 0; i < 256; ++i) {
            for (std::size_t r = 0; r < 16; ++r) {
              ASSERT_EQ(got[(i % 4 * 64 + i / 4) * 16 + r], want[r * kIn + k0 + i])
                  << k->isa << " " << dtype_name(type) << " row " << r << " k " << k0 + i;
            }
          }
        }
      }
    }
  }
}

TEST(CpuDot, ExactProductMeetsClassMAndIgnoresTheTile) {
  std::mt19937 rng(5);
  constexpr std::size_t kIn = 1536, kTokens = 13;
  const double tolerance = 1e-6 * std::sqrt(kIn / 64.0);
  for (const DType type : kBlockTypes) {
    const auto rows = contract::random_rows(type, 16, kIn, rng);
    const auto panel = panel_of(type, rows, 16, kIn);
    const auto x = random_x(kTokens * kIn, rng, false);
    std::vector<float> w(16 * kIn);
    format_info(type).decode(rows.data(), w.data(), w.size());
    std::vector<float> first;
    for (const KernelTable* k : tables()) {
      const auto product = [&](std::size_t from, std::size_t n) {
        std::vector<float> acc(n * 64), slice(256 * 16), out(n * 16);
        for (std::size_t at = 0; at < kIn; at += 256) {
          k->dequant[static_cast<std::size_t>(*cpu::panel_format(type))](panel.data(), at, 256,
                                                                         slice.data());
          k->dot_f32({slice.data(), 64, x.data() + from * kIn + at, kIn, n, acc.data()});
        }
        k->finish_f32(acc.data(), n, out.data());
        return out;
      };
      const auto all = product(0, kTokens);
      if (first.empty()) first = all;
      ASSERT_EQ(std::memcmp(first.data(), all.data(), all.size() * sizeof(float)), 0)
          << k->isa << " " << dtype_name(type);
      for (const std::size_t n : {1u, 2u, 3u, 5u}) {
        const auto part = product(2, n);
        ASSERT_EQ(std::memcmp(part.data(), all.data() + 2 * 16, part.size() * sizeof(float)), 0)
            << k->isa << " n " << n;
      }
      double most = 1, worst = 0;
      for (std::size_t t = 0; t < kTokens; ++t) {
        for (std::size_t r = 0; r < 16; ++r) {
          double sum = 0;
          for (std::size_t i = 0; i < kIn; ++i)
            sum += static_cast<double>(w[r * kIn + i]) * x[t * kIn + i];
          most = std::max(most, std::fabs(sum));
          worst = std::max(worst, std::fabs(sum - all[t * 16 + r]));
        }
      }
      EXPECT_LE(worst / most, tolerance) << k->isa << " " << dtype_name(type);
    }
  }
}

TEST(CpuDot, NonFiniteInputsSurfaceAndTinyOnesAreZero) {
  std::mt19937 rng(9);
  constexpr std::size_t kIn = 256;
  const float kNan = std::numeric_limits<float>::quiet_NaN(),
              kInf = std::numeric_limits<float>::infinity();
  for (const DType type : kBlockTypes) {
    const auto rows = contract::random_rows(type, 16, kIn, rng);
    const auto panel = panel_of(type, rows, 16, kIn);
    for (const KernelTable* k : tables()) {
      for (const float bad : {kNan, -kNan, kInf, -kInf}) {
        auto x = random_x(2 * kIn, rng, false);
        x[17] = bad;
        const auto out = run_q8(*k, *cpu::panel_format(type), panel, x, 2, kIn);
        for (std::size_t r = 0; r < 16; ++r) {
          EXPECT_FALSE(std::isfinite(out[r])) << k->isa << " " << dtype_name(type);
          EXPECT_TRUE(std::isfinite(out[16 + r])) << "the other token is untouched";
        }
      }
      for (const float tiny : {0.0f, 1e-45f, 1e-38f, 3.9e-37f}) {
        const std::vector<float> x(kIn, tiny);
        for (const float y : run_q8(*k, *cpu::panel_format(type), panel, x, 1, kIn))
          EXPECT_EQ(y, 0.0f) << k->isa << " " << tiny;
      }
      const auto out =
          run_q8(*k, *cpu::panel_format(type), panel, std::vector<float>(kIn, 4.1e-37f), 1, kIn);
      for (const float y : out) EXPECT_TRUE(std::isfinite(y));
    }
  }
}

}  // namespace
}  // namespace cyb
