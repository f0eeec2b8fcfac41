// bench: tokens per second of prefill and decode, median and spread, peak memory.
#include "runtime/bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/cpu_count.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "cli/command.hpp"
#include "cli/commands/bench_tensors.hpp"
#include "cli/commands/bench_tokenize.hpp"
#include "cli/json.hpp"
#include "cli/memory_text.hpp"
#include "cli/model_flags.hpp"
#include "cli/usage.hpp"
#include "runtime/tensor_session.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm bench MODEL
  cyb-llm bench MODEL -p 512 -n 128 -t 1,2 -b 1,8 -r 10 --json
  cyb-llm bench DETECTOR --input images=IMAGES.npy -t 1,2
  cyb-llm bench MODEL --tokenize FILE
pp512 is the prefill of 512 tokens, tg128 the decode of 128 tokens from an empty context; b8 means 8 sequences together.)";

const std::vector<std::uint32_t> kPrompts{128, 512}, kDecodes{128}, kBatches{1};

class BenchCommand final : public Command {
 public:
  void declare(Options& options) override {
    model_.declare_model(options);
    options.integers("-p,--prompts", prompts_, {0, 1 << 20}, "LIST",
                     "Prefill lengths (default 128,512; 0: none)");
    options.integers("-n,--decodes", decodes_, {0, 1 << 20}, "LIST",
                     "Decode lengths (default 128; 0: none)");
    options.integers("-t,--thread-counts", threads_, {1, 1024}, "LIST",
                     "Thread counts (default: one per physical core)");
    options.integers("-b,--batches", batches_, {1, 1024}, "LIST",
                     "Sequences that run together (default 1)");
    options.integer("-r,--repeats", repeats_, {1, 1000}, "N",
                    "Repeats of each measurement (default 5)");
    options.texts("--input", inputs_, "NAME=FILE",
                  "For a model of tensors: input NAME from a .npy file; milliseconds a run");
    options.optional_text("--tokenize", tokenize_, "FILE",
                          "The tokenizer alone: megabytes of this text a second, on one thread");
    options.integer("--document", document_, {1, kMaxPromptBytes}, "BYTES",
                    "With --tokenize: cut the text into documents of this size (default: one)");
    model_.declare_engine(options);
    options.flag("--json", json_, "One JSON object: {\"model\", \"model_id\", \"rows\": [...]}");
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    CYB_TRY(check_options());
    const std::stop_token stop = context.interrupts.begin();
    CYB_ASSIGN(std::shared_ptr<const Model> model, model_.open(context, stop));
    if (tokenize_) {
      return bench_tokenize(context, *model,
                            {*tokenize_, document_.value_or(0), repeats_.value_or(5), json_});
    }
    CYB_ASSIGN(const bool tensors, is_tensor_model(*model));
    if (tensors || !inputs_.empty()) return measure_tensors(context, std::move(model), stop);
    for (const std::uint32_t n : prompts_) CYB_TRY(check_positions(*model, n, "-p"));
    for (const std::uint32_t n : decodes_) CYB_TRY(check_positions(*model, n, "-n"));
    BenchOptions options = bench_options();
    CYB_TRY(model_.add_adapters(*model, options.engine));
    options.stop = stop;
    if (!json_) {
      options.on_row = [&](const BenchRow& row) {
        if (!print_row(context.output, row)) context.interrupts.stop();
      };
    }
    const auto measured = run_bench(model, options);
    if (!measured) return fail(with_origin(measured.error(), options.engine));
    const std::vector<BenchRow>& rows = *measured;
    if (json_) {
      CYB_ASSIGN(const Digest id, model->model_id());
      context.output.line(rows_json(*model, id, rows).dump());
    }
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  Result<void> check_options() const {
    if (!threads_.empty() && model_.has_threads()) {
      return fail(usage_error("-t and --threads both say the thread counts: give one of them"));
    }
    if (document_ && !tokenize_) return fail(usage_error("--document goes with --tokenize"));
    if (tokenize_ && (!inputs_.empty() || prompts_ != kPrompts || decodes_ != kDecodes ||
                      batches_ != kBatches || !threads_.empty() || model_.has_adapters())) {
      return fail(usage_error("--tokenize measures the tokenizer alone: only -r goes with it"));
    }
    for (const auto& [name, list] : {std::pair("-p", &prompts_), std::pair("-n", &decodes_)}) {
      if (list->size() > 1 && std::ranges::find(*list, 0u) != list->end()) {
        return fail(usage_error(fmt::format("{}: 0 (none) stands alone, not in a list", name)));
      }
    }
    if (is_none(prompts_) && is_none(decodes_)) {
      return fail(usage_error("-p 0 -n 0 leaves nothing to measure"));
    }
    return {};
  }

  Result<int> measure_tensors(Context& context, std::shared_ptr<const Model> model,
                              std::stop_token stop) const {
    if (prompts_ != kPrompts || decodes_ != kDecodes || batches_ != kBatches)
      return fail(usage_error("-p, -n and -b are for language models; this is a model of tensors"));
    if (model_.has_adapters())
      return fail(usage_error("--lora is for language models; this is a model of tensors"));
    const BenchOptions options = bench_options();
    return bench_tensors(
        context, std::move(model),
        {inputs_, options.threads, options.n_repeats, options.engine, json_, stop});
  }

  BenchOptions bench_options() const {
    BenchOptions options;
    options.engine = model_.engine_options();
    if (!is_none(prompts_)) options.prompts = prompts_;
    if (!is_none(decodes_)) options.decodes = decodes_;
    options.batches = batches_;
    options.threads.assign(threads_.begin(), threads_.end());
    if (options.threads.empty()) {
      const unsigned asked = options.engine.n_threads;
      options.threads = {asked != 0 ? asked : usable_cores()};
    }
    options.n_repeats = static_cast<std::uint32_t>(repeats_.value_or(5));
    return options;
  }

  static bool is_none(const std::vector<std::uint32_t>& list) {
    return list == std::vector<std::uint32_t>{0};
  }

  /// False: stdout takes no more.
  static bool print_row(Output& output, const BenchRow& row) {
    log_info("memory: " + memory_text(row.memory));
    const std::string threads =
        fmt::format("{} thread{}", row.what.n_threads, row.what.n_threads == 1 ? "" : "s");
    return output.line(fmt::format(
        "{:<12} {:>10}  {:>9.1f} tokens/s  ({:.1f} .. {:.1f}, {} run{})  peak {}", row.what.name(),
        threads, row.tps_median, row.tps_min, row.tps_max, row.seconds.size(),
        row.seconds.size() == 1 ? "" : "s", size_text(row.peak_bytes)));
  }

  static Json rows_json(const Model& model, const Digest& id, const std::vector<BenchRow>& rows) {
    Json list = Json::array();
    for (const BenchRow& row : rows) {
      list.push_back({{"name", row.what.name()},
                      {"n_prompt", row.what.n_prompt},
                      {"n_decode", row.what.n_decode},
                      {"batch", row.what.batch},
                      {"threads", row.what.n_threads},
                      {"tps_median", row.tps_median},
                      {"tps_min", row.tps_min},
                      {"tps_max", row.tps_max},
                      {"seconds", row.seconds},
                      {"peak_bytes", row.peak_bytes},
                      {"memory", memory_json(row.memory)}});
    }
    return Json{{"model", json_text(model.name())}, {"model_id", digest_text(id)}, {"rows", list}};
  }

  ModelFlags model_;
  std::vector<std::string> inputs_;
  std::vector<std::uint32_t> prompts_ = kPrompts, decodes_ = kDecodes, batches_ = kBatches,
                             threads_;
  std::optional<std::uint64_t> repeats_, document_;
  std::optional<std::string> tokenize_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_command() {
  return std::make_unique<BenchCommand>();
}

}  // namespace cyb::cli
