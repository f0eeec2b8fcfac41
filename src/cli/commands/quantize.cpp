// quantize: a model with its matrices in another encoding, in the store or where -o says.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "api/quantize_source.hpp"
#include "base/hash.hpp"
#include "cli/command.hpp"
#include "cli/commands/quantize_report.hpp"
#include "cli/model_flags.hpp"
#include "cli/output_file.hpp"
#include "cli/progress.hpp"
#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm quantize ./Qwen2.5-0.5B --to q4k             a checkpoint, into the store as Qwen2.5-0.5B-q4k
  cyb-llm quantize big.model --to q5k -o small.model
  cyb-llm quantize big.model --to q4k --keep '*.v_proj.weight=q6k' --keep 'lm_head.weight=f16'
Norms, biases and tables stay as they are; the head (a tied embedding) gets q6k. Rows that are no multiple of the 256
values of a k block get an encoding of 32 values, said per tensor. The error of each encoding is printed. A failed or
interrupted run leaves nothing behind.)";

std::string names_of(std::span<const DType> dtypes) {
  std::string out;
  for (const DType dtype : dtypes) {
    if (!out.empty()) out += ", ";
    out += dtype_name(dtype);
  }
  return out;
}

/// One of `allowed` by its name.
Result<DType> read_encoding(std::string_view option, std::string_view text,
                            std::span<const DType> allowed) {
  const auto dtype = find_dtype(text);
  if (dtype && std::ranges::find(allowed, *dtype) != allowed.end()) return *dtype;
  return fail(usage_error(
      fmt::format("{}: \"{}\" is none of {}", option, terminal_safe(text), names_of(allowed))));
}

class QuantizeCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.positional("MODEL", model_,
                       "A .model file, a name in the store, a GGUF file or a Hugging Face folder");
    options.text("--to", to_, "ENC", "q2k, q3k, q4, q4k, q4_1, q5_0, q5k, q5_1, q6k or q8");
    options.texts(
        "--keep", keep_, "PATTERN=ENC",
        "Tensors of these names (* and ? match) get ENC, also f16, bf16 or f32; the first "
        "that matches counts; may be given again");
    options.flag("--allow-requantize", allow_, "Also matrices that are quantised already");
    options.optional_text("-o,--output", output_, "FILE",
                          "Write this file instead of adding to the store");
    options.flag("--force", force_, "With -o: overwrite FILE where it exists");
    options.text("--name", name_, "NAME", "Name of the model (default: the source's and ENC)");
    options.integer("--threads", threads_, {1, 1024}, "N", "Threads (default: one per core)");
    options.flag("--json", json_, "One JSON object on stdout instead of the report");
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    CYB_ASSIGN(const QuantizeOptions options, read_options());
    if (force_ && !output_) return fail(usage_error("--force has no effect without -o FILE"));
    if (output_) CYB_TRY(check_output_file(*output_, force_));
    Progress progress(context.output, "quantizing");
    api::SourceOptions source;
    source.stop = context.interrupts.begin();
    source.progress = [&](const ImportProgress& p) {
      progress.update(p.bytes_done, p.bytes_total, p.what);
    };
    source.note = [&](const std::string& text) {
      progress.clear();
      context.output.note(text);
    };
    QuantizeReport report;
    CYB_ASSIGN(const api::QuantizedModel made,
               api::quantize_to(model_, output_.value_or(""), name_, options, source, report));
    progress.clear();
    std::vector<std::string> warnings = made.imported.warnings;
    if (report.n_requantized > 0) {
      warnings.push_back(fmt::format(
          "{} matrices were quantised before: their errors are not in the figures above",
          report.n_requantized));
    }
    if (std::ranges::all_of(report.tensors, [](const auto& row) { return row.to == row.from; })) {
      warnings.push_back(fmt::format(
          "nothing was encoded as {}: each tensor is kept, or has rows that fit no blocks", to_));
    }
    if (json_) {
      context.output.line(quantize_json({made, options.to, report, warnings}));
      return kExitOk;
    }
    if (!context.output.quiet()) context.output.print(quantize_text(report));
    context.output.line(made.path);
    for (const std::string& warning : warnings) context.output.warning(warning);
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  Result<QuantizeOptions> read_options() const {
    if (to_.empty()) return fail(usage_error("--to ENC is missing"));
    CYB_TRY(check_model_name(name_));
    const std::vector<DType> all = quantize_targets();
    std::vector<DType> blocks;
    std::ranges::copy_if(all, std::back_inserter(blocks), is_quantize_target);
    QuantizeOptions options;
    CYB_ASSIGN(options.to, read_encoding("--to", to_, blocks));
    for (const std::string& text : keep_) {
      const auto named = split_named(text);
      if (!named) return fail(usage_error(fmt::format("--keep {}: write PATTERN=ENC", text)));
      CYB_ASSIGN(const DType to, read_encoding("--keep " + text, named->second, all));
      options.keep.push_back({std::string(named->first), to});
    }
    options.allow_requantize = allow_;
    options.n_threads = static_cast<unsigned>(threads_.value_or(0));
    return options;
  }

  std::string model_, to_, name_;
  std::vector<std::string> keep_;
  std::optional<std::string> output_;
  std::optional<std::uint64_t> threads_;
  bool allow_ = false, force_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_quantize_command() {
  return std::make_unique<QuantizeCommand>();
}

}  // namespace cyb::cli
