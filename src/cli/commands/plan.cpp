// plan: what a model will take of memory, before anything is loaded. What does not fit is the
// answer of the command, not its failure: it is printed as ever, and the exit code says it.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/memory_text.hpp"
#include "cli/model_flags.hpp"
#include "cli/usage.hpp"
#include "runtime/memory.hpp"
#include "runtime/tensor_session.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm plan MODEL
  cyb-llm plan MODEL --ctx 8192 --batch 4 --kv q8
  cyb-llm plan DETECTOR.onnx --dim batch=1 --json
The peak of a run with the same options, by pool, when every context is full. No weight is read, packed or written.
Exit code 0: it fits in the memory that can be used now; 4: it does not.)";

/// One line per pool: its name in MemoryPools, its name for people, what is in it.
struct Row {
  std::string_view pool, name, what;
};
constexpr Row kRows[] = {
    {"weights_mapped", "weights, file", "read where the model file is mapped"},
    {"weights_packed", "weights, packed", "mapped from the cache folder"},
    {"weights_own", "weights, own", "packed, decoded or computed in memory"},
    {"kv", "KV cache", "K and V of every position"},
    {"run", "run", "activations, scratch, tables"},
    {"text", "text", "vocabulary, tokenizer, chat template"},
    {"process", "process", "the program itself"},
};

class PlanCommand final : public Command {
 public:
  void declare(Options& options) override {
    model_.declare_model(options);
    model_.declare_context(options);
    options.integer("--batch", batch_, {1, 65536}, "N",
                    "Sequences that run together, each with a full context (default 1)");
    options.texts("--dim", dims_, "NAME=N",
                  "For a model of tensors: size of a named dimension of its inputs, or of "
                  "INPUT.AXIS; may be given again");
    model_.declare_engine(options);
    options.flag("--json", json_,
                 "One JSON object: {\"path\", \"backend\", \"ctx_tokens\", \"batch\", \"kv\", "
                 "\"devices\": [{\"device\", \"memory\": {...}, \"usable_bytes\", \"fits\"}]}");
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    CYB_TRY(model_.check_kv());
    const std::stop_token stop = context.interrupts.begin();
    CYB_ASSIGN(std::shared_ptr<const Model> model, model_.open(context, stop));
    CYB_ASSIGN(const bool tensors, is_tensor_model(*model));
    EngineOptions options = model_.engine_options();
    if (tensors) return plan_tensors(context.output, std::move(model), options);
    if (!dims_.empty())
      return fail(usage_error("--dim is for a model of tensors; this is one of text: --ctx"));
    if (options.ctx_tokens != 0) CYB_TRY(check_positions(*model, options.ctx_tokens, "--ctx"));
    options.max_sequences = static_cast<std::uint32_t>(batch_.value_or(1));
    CYB_TRY(model_.add_adapters(*model, options));
    auto made = Engine::plan(std::move(model), options);
    if (!made) return fail(with_origin(std::move(made).error(), options));
    const MemoryPlan& plan = *made;
    for (const std::string& note : plan.notes) context.output.warning(note);
    const std::string title =
        fmt::format("{} path on {}: {} sequence{} of {} tokens, K and V {}", path_name(plan.path),
                    plan.backend, plan.n_sequences, plan.n_sequences == 1 ? "" : "s",
                    plan.ctx_tokens, dtype_name(plan.kv_dtype));
    return print(context.output, title,
                 {{"path", path_name(plan.path)},
                  {"backend", plan.backend},
                  {"ctx_tokens", plan.ctx_tokens},
                  {"batch", plan.n_sequences},
                  {"kv", dtype_name(plan.kv_dtype)}},
                 plan.bytes);
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  Result<std::vector<NamedSize>> sizes() const {
    std::vector<NamedSize> out;
    for (const std::string& dim : dims_) {
      const auto named = split_named(dim);
      const auto size = named ? parse_integer(named->second) : std::nullopt;
      if (!size || *size > INT32_MAX) {
        return fail(usage_error(fmt::format("--dim {}: write NAME=N", dim)));
      }
      out.push_back({std::string(named->first), static_cast<std::int64_t>(*size)});
    }
    return out;
  }

  Result<int> plan_tensors(Output& output, std::shared_ptr<const Model> model,
                           const EngineOptions& options) const {
    const std::pair<bool, const char*> text_only[] = {{model_.has_context(), "--ctx"},
                                                      {model_.has_kv_type(), "--kv"},
                                                      {batch_.has_value(), "--batch"},
                                                      {model_.has_adapters(), "--lora"}};
    for (const auto& [given, name] : text_only) {
      if (given)
        return fail(usage_error(
            fmt::format("{} is for a model of text; this is one of tensors: --dim", name)));
    }
    CYB_ASSIGN(const std::vector<NamedSize> given, sizes());
    auto made = plan_tensor_session(std::move(model), options, given);
    if (!made) return fail(with_origin(std::move(made).error(), options));
    Json inputs = Json::array();
    std::string shapes;
    for (const std::string& input : made->inputs) {
      inputs.push_back(json_text(input));
      shapes += (shapes.empty() ? "" : "; ") + input;
    }
    return print(output, fmt::format("graph path on {}: {}", made->backend, shapes),
                 {{"path", "graph"}, {"backend", made->backend}, {"inputs", std::move(inputs)}},
                 made->bytes);
  }

  Result<int> print(Output& output, const std::string& title, Json json,
                    const MemoryPools& pools) const {
    const std::uint64_t total = pools.total(), usable = usable_memory_bytes();
    // What the process has already is not taken once more.
    const bool fits = usable == 0 || total - pools.process <= usable;
    const int code = fits ? kExitOk : kExitMemory;
    if (json_) {
      json["devices"] = Json::array({{{"device", "host"},
                                      {"memory", memory_json(pools)},
                                      {"usable_bytes", usable},
                                      {"fits", fits}}});
      output.line(json.dump());
      return code;
    }
    output.line(title);
    for (const MemoryPool& pool : memory_pools(pools)) {
      for (const Row& row : kRows) {
        if (row.pool == pool.name && pool.bytes != 0) line(output, row.name, pool.bytes, row.what);
      }
    }
    line(output, "total", total, "");
    if (usable != 0) {
      line(output, "usable", usable, fits ? "it fits" : "it does not fit");
    }
    return code;
  }

  static void line(Output& output, std::string_view name, std::uint64_t bytes,
                   std::string_view what) {
    output.line(fmt::format("{:<16} {:>15} {:>12}{}{}", name, bytes, size_text(bytes),
                            what.empty() ? "" : "  ", what));
  }

  ModelFlags model_;
  std::optional<std::uint64_t> batch_;
  std::vector<std::string> dims_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_plan_command() {
  return std::make_unique<PlanCommand>();
}

}  // namespace cyb::cli
