// Kernels of the cpu backend: weight bytes per second for one token, integer operations per second
// for 512, per format and thread count, beside a plain read of the same buffer. Figures of one
// machine vary with its neighbours: compare within one run.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "backends/cpu/kernels/table.hpp"
#include "backends/cpu/panels.hpp"
#include "base/thread_pool.hpp"
#include "tensor/buffer.hpp"
#include "tensor/dtype.hpp"

namespace {

using cyb::cpu::KernelTable;
using cyb::cpu::PanelFormat;

constexpr std::size_t kStreamBytes = std::size_t{128} << 20;  // well above the last-level cache

/// Panels of random bytes whose scales are small numbers; what they mean does not matter here.
cyb::Buffer random_panels(std::size_t bytes) {
  cyb::Buffer buffer = cyb::Buffer::allocate(bytes).value();
  std::mt19937_64 rng(1);
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
    const std::uint64_t word = rng() & 0x3F3F3F3F3F3F3F3Full;
    std::memcpy(buffer.data() + i, &word, 8);
  }
  return buffer;
}

struct Acts {
  std::vector<float> x;
  std::vector<std::uint8_t> records;
  Acts(const KernelTable& k, std::size_t n_tokens, std::size_t n_in)
      : x(n_tokens * n_in), records(n_tokens * n_in / 32 * cyb::cpu::kRecordBytes) {
    std::mt19937 rng(2);
    std::normal_distribution<float> normal;
    for (float& v : x) v = normal(rng);
    for (std::size_t t = 0; t < n_tokens; t += 4) {
      k.quantize(x.data() + t * n_in, n_in, n_in, std::min<std::size_t>(4, n_tokens - t),
                 records.data() + t * n_in / 32 * cyb::cpu::kRecordBytes);
    }
  }
};

/// One token against 128 MB of panels.
void stream_dot(benchmark::State& state, PanelFormat format) {
  const KernelTable& k = *cyb::cpu::find_kernels("");
  cyb::ThreadPool pool(static_cast<unsigned>(state.range(0)));
  constexpr std::size_t kIn = 2048;
  const std::size_t panel = cyb::cpu::panel_bytes(format, kIn), n = kStreamBytes / panel;
  const cyb::Buffer panels = random_panels(n * panel);
  const Acts acts(k, 1, kIn);
  const auto* base = reinterpret_cast<const std::uint8_t*>(panels.data());
  auto body = [&](unsigned t, unsigned threads) noexcept {
    float out[16];
    for (std::size_t p = n * t / threads; p < n * (t + 1) / threads; ++p) {
      k.dot_q8[static_cast<std::size_t>(format)](
          {base + p * panel, kIn / 32, acts.records.data(), 1, out, nullptr});
      benchmark::DoNotOptimize(out);
    }
  };
  for (auto _ : state) pool.run(body);
  state.SetBytesProcessed(static_cast<std::int64_t>(n * panel) * state.iterations());
}

/// 512 tokens against 1536 x 768, weights in cache, chunks of 64 tokens.
void gemm_dot(benchmark::State& state, PanelFormat format) {
  const KernelTable& k = *cyb::cpu::find_kernels("");
  cyb::ThreadPool pool(static_cast<unsigned>(state.range(0)));
  constexpr std::size_t kIn = 768, kOut = 1536, kTokens = 512, kChunk = 64;
  const std::size_t panel = cyb::cpu::panel_bytes(format, kIn);
  const cyb::Buffer panels = random_panels(kOut / 16 * panel);
  const Acts acts(k, kTokens, kIn);
  const auto* base = reinterpret_cast<const std::uint8_t*>(panels.data());
  auto body = [&](unsigned t, unsigned threads) noexcept {
    float out[kChunk * 16];
    std::uint8_t scratch[cyb::cpu::dot_scratch_bytes(kIn / 32)];
    for (std::size_t c = 0; c < kTokens; c += kChunk) {
      for (std::size_t p = kOut / 16 * t / threads; p < kOut / 16 * (t + 1) / threads; ++p) {
        k.dot_q8[static_cast<std::size_t>(format)](
            {base + p * panel, kIn / 32,
             acts.records.data() + c * kIn / 32 * cyb::cpu::kRecordBytes, kChunk, out, scratch});
        benchmark::DoNotOptimize(out);
      }
    }
  };
  for (auto _ : state) pool.run(body);
  state.counters["ops"] =
      benchmark::Counter(2.0 * kIn * kOut * kTokens * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

void plain_read(benchmark::State& state) {
  cyb::ThreadPool pool(static_cast<unsigned>(state.range(0)));
  const cyb::Buffer buffer = random_panels(kStreamBytes);
  auto body = [&](unsigned t, unsigned threads) noexcept {
    const std::uint64_t* words = buffer.as<std::uint64_t>();
    const std::size_t n = kStreamBytes / 8;
    std::uint64_t sums[8] = {};
    for (std::size_t i = n * t / threads / 8 * 8; i + 8 <= n * (t + 1) / threads; i += 8) {
      for (std::size_t j = 0; j < 8; ++j) sums[j] ^= words[i + j];
    }
    benchmark::DoNotOptimize(sums);
  };
  for (auto _ : state) pool.run(body);
  state.SetBytesProcessed(static_cast<std::int64_t>(kStreamBytes) * state.iterations());
}

double smallest(const std::vector<double>& v) {
  return *std::min_element(v.begin(), v.end());
}
double largest(const std::vector<double>& v) {
  return *std::max_element(v.begin(), v.end());
}

void add(const std::string& name, void (*run)(benchmark::State&, PanelFormat), PanelFormat format) {
  benchmark::RegisterBenchmark(name.c_str(), run, format)
      ->Arg(1)
      ->Arg(2)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond)
      ->MinTime(0.05)
      ->Repetitions(9)
      ->ReportAggregatesOnly()
      ->ComputeStatistics("min", smallest)
      ->ComputeStatistics("max", largest);
}

[[maybe_unused]] const bool kRegistered = [] {
  benchmark::RegisterBenchmark("read", plain_read)
      ->Arg(1)
      ->Arg(2)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond)
      ->MinTime(0.05)
      ->Repetitions(9)
      ->ReportAggregatesOnly()
      ->ComputeStatistics("min", smallest)
      ->ComputeStatistics("max", largest);
  for (const cyb::DType type :
       {cyb::DType::kQ4, cyb::DType::kQ4_1, cyb::DType::kQ5_0, cyb::DType::kQ5_1, cyb::DType::kQ8,
        cyb::DType::kQ2k, cyb::DType::kQ3k, cyb::DType::kQ4k, cyb::DType::kQ5k, cyb::DType::kQ6k}) {
    const PanelFormat format = *cyb::cpu::panel_format(type);
    add("m1/" + std::string(cyb::dtype_name(type)), stream_dot, format);
    add("m512/" + std::string(cyb::dtype_name(type)), gemm_dot, format);
  }
  return true;
}();

}  // namespace
