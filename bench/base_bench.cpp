// Thread pool: what an empty region and a round cost. Decoders: bytes of weights per second.
#include <benchmark/benchmark.h>

#include <vector>

#include "base/hash.hpp"
#include "base/thread_pool.hpp"
#include "tensor/dtype.hpp"

namespace cyb {
namespace {

void region(benchmark::State& state) {
  ThreadPool pool(static_cast<unsigned>(state.range(0)));
  auto body = [](unsigned, unsigned) {};
  for (auto _ : state) pool.run(body);
}
BENCHMARK(region)->Arg(1)->Arg(2)->Arg(4)->UseRealTime();

void rounds(benchmark::State& state) {
  ThreadPool pool(static_cast<unsigned>(state.range(0)));
  constexpr int kRounds = 1000;
  for (auto _ : state) {
    int left = kRounds;
    pool.run(RoundsTask{[](void* self) noexcept { return (*static_cast<int*>(self))-- > 0; },
                        [](void*, unsigned, unsigned) noexcept {}, &left});
  }
  state.SetItemsProcessed(state.iterations() * kRounds);
}
BENCHMARK(rounds)->Arg(1)->Arg(2)->Arg(4)->UseRealTime();

void decode(benchmark::State& state) {
  const FormatInfo& format = all_formats()[static_cast<std::size_t>(state.range(0))];
  if (format.decode == nullptr) {
    state.SkipWithError("no decoder");
    return;
  }
  constexpr std::size_t kValues = 1 << 16;
  const std::vector<std::byte> source(kValues / format.block_values * format.block_bytes);
  std::vector<float> values(kValues);
  for (auto _ : state) {
    format.decode(source.data(), values.data(), kValues);
    benchmark::DoNotOptimize(values.data());
  }
  state.SetLabel(std::string(format.name));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kValues));
}
BENCHMARK(decode)->DenseRange(0, 20);

void hash(benchmark::State& state) {
  const std::vector<std::byte> data(1 << 24);
  for (auto _ : state) benchmark::DoNotOptimize(blake3(data));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(data.size()));
}
BENCHMARK(hash);

}  // namespace
}  // namespace cyb
