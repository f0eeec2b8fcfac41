// import: a source becomes one .model file, in the store or where -o says.
#include <fmt/format.h>

#include "api/model_source.hpp"
#include "base/hash.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/model_flags.hpp"
#include "cli/output_file.hpp"
#include "cli/progress.hpp"
#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm import smollm2.gguf                    into the store, under the file's name
  cyb-llm import ./Qwen2.5-0.5B --name qwen      a Hugging Face folder
  cyb-llm import small-q4.model --name small     a .model file of one's own, checked
  cyb-llm import big-00001-of-00003.gguf -o big.model
  cyb-llm import cl100k_base.tiktoken --tokenizer-only -o cl100k.model
Prints what was understood (with -q only the path of the .model): family, sizes, tokenizer, template, context, every
assumption. A tensor or key that changes the result and is not understood is refused by name. An import that fails or is
interrupted leaves nothing behind.)";

class ImportCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.positional(
        "SOURCE", source_,
        "A GGUF file (the first of a split one), a Hugging Face folder, an ONNX file, or a .model "
        "to put into the store; with --tokenizer-only also a tokenizer.json, a sentencepiece "
        ".model or tiktoken ranks");
    options.optional_text("-o,--output", output_, "FILE",
                          "Write this file instead of adding to the store");
    options.flag("--force", force_, "With -o: overwrite FILE where it exists");
    options.text("--name", name_, "NAME", "Name of the model (default: from the source)");
    options.texts("--dim", dims_, "NAME=N",
                  "ONNX: the dimension NAME of the inputs is N; may be given again");
    options.flag("--tokenizer-only", tokenizer_only_,
                 "Only the vocabulary and the chat template, for tokenize, render and the like");
    options.text("--encoding", encoding_, "NAME",
                 "Of a tiktoken rank file: r50k_base, p50k_base, cl100k_base, o200k_base, qwen or "
                 "llama3 (default: by the file's name)");
    options.flag("--json", json_, "One JSON object on stdout instead of the report");
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    if (force_ && !output_) return fail(usage_error("--force has no effect without -o FILE"));
    if (output_) CYB_TRY(check_output_file(*output_, force_));
    CYB_TRY(check_model_name(name_));
    api::SourceOptions options;
    for (const std::string& dim : dims_) {
      const auto named = split_named(dim);
      const auto size = named ? parse_integer(named->second) : std::nullopt;
      if (!size || *size > INT32_MAX)
        return fail(usage_error(fmt::format("--dim {}: write NAME=N", dim)));
      for (const auto& [name, value] : options.dims) {
        if (name == named->first)
          return fail(usage_error(fmt::format("--dim {}: {} is {} already", dim, name, value)));
      }
      options.dims.emplace_back(named->first, static_cast<std::int64_t>(*size));
    }
    options.tokenizer_only = tokenizer_only_;
    if (!encoding_.empty() && !tokenizer_only_) {
      return fail(usage_error("--encoding goes with --tokenizer-only"));
    }
    options.encoding = encoding_;
    Progress progress(context.output, "importing");
    options.stop = context.interrupts.begin();
    options.progress = [&](const ImportProgress& p) {
      progress.update(p.bytes_done, p.bytes_total, p.what);
    };
    options.note = [&](const std::string& text) {
      progress.clear();
      context.output.note(text);
    };
    if (is_own_file()) return add_own(context, progress, options);
    CYB_ASSIGN(const api::ImportedModel imported,
               api::import_to(source_, output_.value_or(""), name_, options));
    progress.clear();
    if (json_) {
      Json json = Json::parse(report_json(imported.report), nullptr, false);
      json["path"] = json_text(imported.path);
      context.output.line(json.dump(-1, ' ', false, Json::error_handler_t::replace));
      return kExitOk;
    }
    if (!context.output.quiet()) context.output.print(report_text(imported.report));
    context.output.line(imported.path);
    for (const std::string& warning : imported.report.warnings) context.output.warning(warning);
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  /// A sentencepiece model has the same ending, and is read with --tokenizer-only.
  bool is_own_file() const {
    return source_.ends_with(".model") && !tokenizer_only_ && !is_import_source(source_);
  }

  Result<int> add_own(Context& context, Progress& progress, const api::SourceOptions& options) {
    if (output_) {
      return fail(
          usage_error("-o: the source is a .model already; copy it, or leave out -o to put "
                      "it into the store"));
    }
    if (!dims_.empty()) return fail(usage_error("--dim goes with an ONNX file"));
    CYB_ASSIGN(const StoredModel stored, api::add_to_store({source_, name_}, options));
    progress.clear();
    if (json_) {
      const Json answer{{"name", stored.name},
                        {"path", json_text(stored.path)},
                        {"source", json_text(source_)},
                        {"source_format", "model"},
                        {"model_id", digest_text(stored.model_id)},
                        {"file_id", digest_text(stored.file_id)}};
      context.output.line(answer.dump());
      return kExitOk;
    }
    context.output.note(fmt::format("checked, and in the store as \"{}\"", stored.name));
    context.output.line(stored.path);
    return kExitOk;
  }

  std::string source_, name_, encoding_;
  std::vector<std::string> dims_;
  std::optional<std::string> output_;
  bool force_ = false, json_ = false, tokenizer_only_ = false;
};

}  // namespace

std::unique_ptr<Command> make_import_command() {
  return std::make_unique<ImportCommand>();
}

}  // namespace cyb::cli
