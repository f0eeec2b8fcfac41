// Prefill and decode speed of a .model file, as lines of JSON: for runs in alternation with other
// programs, and to see what a change costs. usage: engine_bench MODEL [PROMPT DECODE THREADS
// REPEATS]
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "runtime/bench.hpp"

namespace {

unsigned number(const char* text, unsigned fallback) {
  unsigned value = 0;
  const auto parsed = std::from_chars(text, text + std::strlen(text), value);
  return parsed.ec == std::errc() ? value : fallback;
}

int report(const cyb::Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return cyb::exit_code(error.kind());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: engine_bench MODEL [PROMPT DECODE THREADS REPEATS]\n");
    return 1;
  }
  const auto argument = [&](int i, unsigned fallback) {
    return argc > i ? number(argv[i], fallback) : fallback;
  };
  const auto model = cyb::Model::open(argv[1]);
  if (!model) return report(model.error());
  cyb::BenchOptions options;
  options.prompts = {argument(2, 512)};
  options.decodes = {argument(3, 128)};
  options.threads = {argument(4, 0)};
  options.n_repeats = argument(5, 5);
  options.on_row = [](const cyb::BenchRow& row) {
    std::printf(
        "{\"case\": \"%s\", \"tps\": %.2f, \"min\": %.2f, \"max\": %.2f, \"peak_bytes\": %llu}\n",
        row.what.name().c_str(), row.tps_median, row.tps_min, row.tps_max,
        static_cast<unsigned long long>(row.peak_bytes));
    std::fflush(stdout);
  };
  const auto rows = cyb::run_bench(*model, options);
  return rows ? 0 : report(rows.error());
}
