// check: whether a model does what its source does, as a table of rows.
#include "api/check/check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/model_flags.hpp"
#include "cli/progress.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm check model.gguf                                the model against itself: paths, backends, text
  cyb-llm check NAME --against model.gguf                 and against the file that it was made of
  cyb-llm check NAME --against FOLDER                     a Hugging Face folder, and its check_goldens.json if it has one
  cyb-llm check NAME --against check_goldens.json         what transformers says (tools/make_check.py makes the file)
A row that was not run says why and never counts as passed. Exit code 6 if any row fails.)";

class CheckCommand final : public Command {
 public:
  void declare(Options& options) override {
    model_.declare_model(options);
    options.optional_text("--against", against_, "PATH",
                          "The original: a GGUF file, a folder, a tokenizer file or goldens");
    options.flag("--all", all_, "The reference backend also for models over 1 GiB");
    options.integer("--threads", threads_, {1, 1024}, "N", "Threads of the runs");
    options.flag("--json", json_,
                 "One JSON object: {\"ok\", \"passed\", \"failed\", \"not_run\", \"checks\"}");
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    CYB_TRY(Output::check_writable());
    const std::stop_token stop = context.interrupts.begin();
    CYB_ASSIGN(const std::shared_ptr<const Model> model, model_.open(context, stop));
    Progress progress(context.output, "check");
    api::CheckOptions options;
    options.against = against_.value_or("");
    options.n_threads = static_cast<unsigned>(threads_.value_or(0));
    options.all = all_;
    options.stop = stop;
    std::uint64_t n_begun = 0;
    options.progress = [&](std::string_view row) { progress.update(n_begun++, kRows, row); };
    CYB_ASSIGN(const api::CheckReport report, api::check_model(model, options));
    progress.clear();
    show(context.output, *model, report);
    return report.count(api::Verdict::kFail) == 0 ? kExitOk : kExitTestFailed;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  static constexpr std::uint64_t kRows = 19;

  void show(Output& output, const Model& model, const api::CheckReport& report) const {
    const std::size_t failed = report.count(api::Verdict::kFail),
                      passed = report.count(api::Verdict::kPass),
                      not_run = report.count(api::Verdict::kNotRun);
    if (json_) {
      Json checks = Json::array();
      for (const api::CheckRow& row : report.rows) {
        checks.push_back({{"name", row.name},
                          {"verdict", std::string(api::verdict_name(row.verdict))},
                          {"detail", json_text(row.detail)}});
      }
      output.line(Json{{"ok", failed == 0},
                       {"path", json_text(model.path())},
                       {"against", json_text(against_.value_or(""))},
                       {"passed", passed},
                       {"failed", failed},
                       {"not_run", not_run},
                       {"checks", std::move(checks)}}
                      .dump());
      return;
    }
    std::size_t width = 0;
    for (const api::CheckRow& row : report.rows) width = std::max(width, row.name.size());
    for (const api::CheckRow& row : report.rows) {
      output.line(fmt::format("{:<{}}  {:<7}  {}", row.name, width, api::verdict_name(row.verdict),
                              row.detail));
    }
    output.line(fmt::format("{} passed, {} failed, {} not run", passed, failed, not_run));
  }

  ModelFlags model_;
  std::optional<std::string> against_;
  std::optional<std::uint64_t> threads_;
  bool all_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_check_command() {
  return std::make_unique<CheckCommand>();
}

}  // namespace cyb::cli
