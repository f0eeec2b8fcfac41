// perplexity: exp of the mean negative log-probability of a text's tokens.
#include <fmt/format.h>

#include <cmath>

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/memory_text.hpp"
#include "cli/model_flags.hpp"
#include "cli/progress.hpp"
#include "cli/text_input.hpp"
#include "cli/usage.hpp"
#include "runtime/logits.hpp"
#include "text/tokenizer.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Example:
  cyb-llm perplexity MODEL --file text.txt --ctx 2048
The text is cut into windows of the context's length that do not overlap; a window's first token is not predicted. With
--second-half only what has half a window before it is, as llama-perplexity counts (its windows: --ctx 512).)";

class PerplexityCommand final : public Command {
 public:
  void declare(Options& options) override {
    model_.declare_model(options);
    options.optional_text("--file", file_, "FILE", "The text (-: standard input)");
    model_.declare_context(options);
    options.flag("--second-half", second_half_,
                 "Full windows only, and of each the second half: figures to hold beside "
                 "llama-perplexity's");
    model_.declare_engine(options);
    model_.declare_verify(options);
    options.flag("--json", json_,
                 "One JSON object: {\"perplexity\", \"mean_nll\", \"tokens\", \"windows\", ...}");
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    CYB_TRY(Output::check_writable());
    const std::stop_token stop = context.interrupts.begin();
    CYB_ASSIGN(const std::string text,
               text_argument(std::nullopt, file_, {"the text", "with --file FILE"},
                             context.interrupts.wake_fd()));
    if (text.empty()) {
      return fail(usage_error("the text is empty: give it with --file FILE or through a pipe"));
    }
    EngineOptions engine_options = model_.engine_options();
    engine_options.max_outputs = 32;
    CYB_ASSIGN(const std::shared_ptr<Engine> engine, model_.load(context, stop, engine_options));
    CYB_ASSIGN(const Tokenizer* tokenizer, engine->need_tokenizer());
    const std::uint32_t least = tokenizer->config().add_bos_token ? 3 : 2;
    if (engine->ctx_tokens() < least) {
      return fail(usage_error(
          fmt::format("--ctx {}: a window needs {} tokens or more", engine->ctx_tokens(), least)));
    }
    CYB_ASSIGN(const std::vector<std::int32_t> ids, tokenizer->encode(text));
    Progress progress(context.output, "perplexity");
    PerplexityOptions options;
    options.stop = stop;
    options.second_half = second_half_;
    options.progress = [&](std::uint64_t done, std::uint64_t total, double mean_nll) {
      progress.update(done, total, fmt::format("mean {:.4f} nats", mean_nll));
    };
    CYB_ASSIGN(const PerplexityReport report, perplexity(*engine, ids, options));
    progress.clear();
    // Every token as likely as every other: a head that is missing or zero, not a bad text.
    const double vocab = engine->vocab_size();
    const bool uniform = std::abs(report.perplexity - vocab) <= 0.001 * vocab;
    if (uniform) {
      context.output.warning(
          fmt::format("the perplexity is the size of the vocabulary ({}): the model's output says "
                      "nothing, as where its head is missing or empty",
                      engine->vocab_size()));
    }
    if (json_) {
      context.output.line(Json{{"perplexity", report.perplexity},
                               {"mean_nll", report.mean_nll},
                               {"tokens", report.n_tokens},
                               {"windows", report.n_windows},
                               {"uniform", uniform},
                               {"path", std::string(path_name(engine->path()))},
                               {"backend", std::string(engine->backend().name())},
                               {"model_id", engine->model_id()},
                               {"memory", memory_json(engine->memory())}}
                              .dump());
    } else {
      context.output.line(
          fmt::format("perplexity {:.4f}  ({:.6f} nats a token, {} tokens predicted in {} windows)",
                      report.perplexity, report.mean_nll, report.n_tokens, report.n_windows));
    }
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  ModelFlags model_;
  std::optional<std::string> file_;
  bool json_ = false, second_half_ = false;
};

}  // namespace

std::unique_ptr<Command> make_perplexity_command() {
  return std::make_unique<PerplexityCommand>();
}

}  // namespace cyb::cli
