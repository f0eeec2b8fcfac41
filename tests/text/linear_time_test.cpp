// Every pre-tokenizer that a GGUF file may name is linear in the text, whatever the text is.
#include <ctime>

#include "text/gguf_pre_tokenizers.hpp"
#include "text/pipeline/pipeline.hpp"
#include "text/tokenizer_support.hpp"

namespace cyb {
namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double cut_seconds(const text::Pipeline& pipeline, const std::string& text) {
  text::Pieces pieces{text, {{0, text.size(), true}}};
  const double start = cpu_seconds();
  const auto done = pipeline.cut(pieces);
  EXPECT_TRUE(done.has_value()) << done.error().text();
  return cpu_seconds() - start;
}

std::string row_of(std::string_view unit, std::size_t bytes, std::string_view end) {
  std::string out;
  while (out.size() < bytes) out += unit;
  return out.append(end);
}

class PreIsLinear : public ::testing::TestWithParam<const char*> {};

TEST_P(PreIsLinear, RunsOfEveryClass) {
  const auto pre = text::gguf_pre(GetParam());
  ASSERT_TRUE(pre.has_value());
  if (pre->config.pipeline.empty()) return;  // the scanners: Tokenizer/LinearTime
  const auto pipeline = text::Pipeline::make(pre->config.pipeline, pre->config);
  ASSERT_TRUE(pipeline.has_value());
  for (const char* unit :
       {"A",        "a",         "1",           " ",    "\n",  "_",  "^",  "'",  "\xE6\xBC\xA2",
        "\xC3\xA9", "a\xCC\x81", " a",          "\r\n", " \n", "1a", "Aa", "\t", "\xC2\xBD",
        "IMG",      "/",         "\xE2\x80\xA6"}) {
    for (const char* end : {"", "x", "1", "!"}) {
      // Four times the text: 4 where it is linear, 16 where every place looks to the end.
      double quarter = 0, whole = 0;
      for (int attempt = 0; attempt < 6 && (attempt == 0 || whole > quarter * 8); ++attempt) {
        quarter = cut_seconds(**pipeline, row_of(unit, 1U << 14, end));
        whole = cut_seconds(**pipeline, row_of(unit, 1U << 16, end));
      }
      EXPECT_LE(whole, quarter * 8)
          << nlohmann::json(unit).dump() << " then " << nlohmann::json(end).dump() << ": "
          << quarter << " s, then " << whole << " s";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(GgufPre, PreIsLinear,
                         ::testing::Values("falcon", "deepseek-llm", "deepseek-coder",
                                           "deepseek-v3", "spark2_5", "youtu", "qwen35", "bloom",
                                           "viking", "tekken", "gpt-4o", "granite-embed-multi-97m",
                                           "tiny_aya", "kimi-k2", "superbpe", "bailingmoe",
                                           "seed-coder", "ufakzeka", "laguna", "exaone-moe",
                                           "minicpm5", "jais-2", "chameleon"));

}  // namespace
}  // namespace cyb
