// Encodings that only imports bring: all IQ, TQ and MXFP4 types of a GGUF, 8-bit floats with
// scales. Logits against transformers on the decoded weights.
#include <gtest/gtest.h>

#include <tuple>

#include "base/file.hpp"
#include "import/import.hpp"
#include "runtime/logits.hpp"
#include "support/engine_support.hpp"
#include "support/process.hpp"
#include "support/regime.hpp"
#include "support/tolerance.hpp"
#include "tensor/npy.hpp"

namespace cyb::test {
namespace {

const std::string kFolder = std::string(CYB_TESTS_DIR) + "/golden/encodings/";
const std::vector<std::int32_t> kIds = {3, 17, 38, 0, 5, 29, 12, 12, 31, 8, 22, 39};

using Place = std::tuple<std::string, std::string, std::string>;  // source, backend, path

class Encodings : public ::testing::TestWithParam<Place> {
 protected:
  TemporaryFolder folder_;

  std::shared_ptr<const Model> model() {
    ImportReport report;
    const std::string path = folder_.file("x.model");
    const auto written = import_model(kFolder + std::get<0>(GetParam()), path, {}, report);
    if (!written) throw std::runtime_error(written.error().text());
    return value(Model::open(path, {.verify_weights = true}));
  }
};

TEST_P(Encodings, LogitsAreTransformers) {
  EngineOptions options;
  options.backend = std::get<1>(GetParam());
  options.path = std::get<2>(GetParam());
  options.isa = options.backend == "cpu" ? regime_isa() : "";
  options.n_threads = regime_threads();
  options.exact = true;
  options.max_outputs = 16;
  options.pack_cache = false;
  const auto engine = value(Engine::load(model(), options));
  std::vector<float> got;
  value(all_logits(*engine, kIds, [&](std::uint32_t, std::span<const float> rows) -> Result<void> {
    got.insert(got.end(), rows.begin(), rows.end());
    return {};
  }));
  const std::string stem = std::get<0>(GetParam()) == "fp8" ? "fp8" : "types";
  const auto file = value(MappedFile::open(kFolder + stem + ".npy"));
  const TensorView golden = value(parse_npy(file->bytes()));
  ASSERT_EQ(golden.dtype, DType::kF32);
  ASSERT_EQ(static_cast<std::size_t>(golden.shape.count()), got.size());
  const std::span expected(golden.as<float>(), got.size());
  EXPECT_LT(error_of(got, expected), 1e-5);
}

std::string place_name(const ::testing::TestParamInfo<Place>& info) {
  return (std::get<0>(info.param) == "fp8" ? "fp8_" : "types_") + std::get<1>(info.param) + "_" +
         std::get<2>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, Encodings,
                         ::testing::Combine(::testing::Values("types.gguf", "fp8"),
                                            ::testing::Values("reference", "cpu"),
                                            ::testing::Values("curated", "graph")),
                         place_name);

}  // namespace
}  // namespace cyb::test
