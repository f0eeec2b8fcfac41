// Checkpoints of f16 and bf16 weights: every tiny model with its weights rounded computes what the
// f32 checkpoint of the same rounded values does, which Golden holds against transformers.
#include <gtest/gtest.h>

#include <cstring>
#include <tuple>

#include "base/half.hpp"
#include "import/import.hpp"
#include "runtime/logits.hpp"
#include "support/engine_support.hpp"
#include "support/process.hpp"
#include "support/regime.hpp"
#include "support/tiny_checkpoint.hpp"
#include "support/tolerance.hpp"

namespace cyb::test {
namespace {

struct Half {
  const char* dtype;
  std::uint16_t (*from)(float) noexcept;
  float (*to)(std::uint16_t) noexcept;
};
constexpr Half kHalves[] = {{"F16", f32_to_f16, f16_to_f32}, {"BF16", f32_to_bf16, bf16_to_f32}};

/// The tensor in halves, and in f32 with the same values.
std::pair<StoredTensor, StoredTensor> rounded(const StoredTensor& tensor, const Half& half) {
  const std::size_t n = tensor.bytes.size() / sizeof(float);
  std::vector<float> values(n);
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  std::vector<std::uint16_t> halves(n);
  for (std::size_t i = 0; i < n; ++i) {
    halves[i] = half.from(values[i]);
    values[i] = half.to(halves[i]);
  }
  std::pair<StoredTensor, StoredTensor> out{tensor, tensor};
  const auto narrow = std::as_bytes(std::span(halves)), wide = std::as_bytes(std::span(values));
  out.first.dtype = half.dtype;
  out.first.bytes.assign(narrow.begin(), narrow.end());
  out.second.bytes.assign(wide.begin(), wide.end());
  return out;
}

std::shared_ptr<const Model> import_with(const std::string& name,
                                         const std::vector<StoredTensor>& tensors) {
  const TemporaryFolder folder, out;
  write_tiny_checkpoint(name, folder.path());
  write_weights(folder.path(), tensors);
  ImportReport report;
  value(import_model(folder.path(), out.file("half.model"), {}, report));
  return value(Model::open(out.file("half.model")));
}

std::vector<float> logits_of(const std::shared_ptr<const Model>& model, const std::string& backend,
                             const std::string& path, std::span<const std::int32_t> ids) {
  EngineOptions options;
  options.backend = backend;
  options.path = path;
  options.isa = backend == "cpu" ? regime_isa() : "";
  options.n_threads = regime_threads();
  options.exact = true;
  options.pack_cache = false;
  const auto engine = value(Engine::load(model, options));
  std::vector<float> out;
  value(all_logits(*engine, ids, [&](std::uint32_t, std::span<const float> rows) -> Result<void> {
    out.insert(out.end(), rows.begin(), rows.end());
    return {};
  }));
  return out;
}

class HalfCheckpoint : public ::testing::TestWithParam<std::string> {};

TEST_P(HalfCheckpoint, ComputesWhatItsValuesDo) {
  const TinyGolden golden = tiny_golden(GetParam());
  const auto ids = std::span(golden.ids).first(golden.n_tokens);
  for (const Half& half : kHalves) {
    std::vector<StoredTensor> narrow, wide;
    for (const StoredTensor& tensor : tiny_tensors(GetParam())) {
      ASSERT_EQ(tensor.dtype, "F32");
      auto [a, b] = rounded(tensor, half);
      narrow.push_back(std::move(a));
      wide.push_back(std::move(b));
    }
    const auto of_halves = import_with(GetParam(), narrow),
               of_floats = import_with(GetParam(), wide);
    const std::vector<float> want = logits_of(of_floats, "reference", "curated", ids);
    // The rounding is seen: these are not the logits of the unrounded checkpoint.
    EXPECT_GT(error_of(want, std::span(golden.logits).first(want.size())), 1e-5) << half.dtype;
    for (const char* path : {"curated", "graph"}) {
      EXPECT_EQ(logits_of(of_halves, "reference", path, ids), want) << half.dtype << ' ' << path;
      EXPECT_LT(error_of(logits_of(of_halves, "cpu", path, ids), want), 1e-5)
          << half.dtype << ' ' << path;
    }
  }
}

std::string family_name(const ::testing::TestParamInfo<std::string>& info) {
  return info.param;
}

INSTANTIATE_TEST_SUITE_P(Tiny, HalfCheckpoint, ::testing::ValuesIn(tiny_names()), family_name);

}  // namespace
}  // namespace cyb::test
