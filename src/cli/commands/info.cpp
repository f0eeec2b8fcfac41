// info: what a model is, without running it.
#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "cli/command.hpp"
#include "cli/config_json.hpp"
#include "cli/json.hpp"
#include "cli/model_flags.hpp"
#include "runtime/tensor_session.hpp"

namespace cyb::cli {
namespace {

struct Encodings {
  std::uint64_t tensors = 0, bytes = 0;
};

class InfoCommand final : public Command {
 public:
  void declare(Options& options) override {
    model_.declare_model(options);
    options.flag("--json", json_, "One JSON object, with the whole configuration");
    options.examples(
        "A GGUF file or folder is imported into the store first, as by every other command.\n"
        "Here, as on an ordinary run, the text parts and the layout of the file are checked, not "
        "the weights: `cyb-llm verify`\nand `run --verify` read them all and compare their "
        "hashes.");
  }

  Result<int> run(Context& context) override {
    CYB_ASSIGN(const std::shared_ptr<const Model> model,
               model_.open(context, context.interrupts.begin()));
    CYB_ASSIGN(const Json json, describe(*model));
    if (json_) {
      context.output.line(json.dump(-1, ' ', false, Json::error_handler_t::replace));
    } else {
      CYB_ASSIGN(const bool tensors, is_tensor_model(*model));
      CYB_ASSIGN(const Rows about, tensors ? about_graph(*model) : about_text(*model));
      print(context.output, *model, json, about);
    }
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  static Result<Json> describe(const Model& model) {
    CYB_ASSIGN(const Digest id, model.model_id());
    std::map<std::string, Encodings> encodings;
    for (const TensorEntry& tensor : model.tensors()) {
      Encodings& entry = encodings[std::string(dtype_name(tensor.dtype))];
      ++entry.tensors;
      entry.bytes += tensor.size_bytes;
    }
    Json list = Json::array();
    for (const auto& [name, entry] : encodings) {
      list.push_back({{"encoding", name}, {"tensors", entry.tensors}, {"bytes", entry.bytes}});
    }
    return Json{{"name", json_text(model.name())},
                {"path", json_text(model.path())},
                {"model_id", digest_text(id)},
                {"file_bytes", model.file_bytes()},
                {"model_type", json_text(model.model_type())},
                {"tensors", model.tensors().size()},
                {"encodings", list},
                {"graph", model.has_graph()},
                {"program_bytes", model.program().size()},
                {"chat_template", model.chat() != nullptr},
                {"config", config_json(model.config())},
                {"frontmatter", config_json(model.frontmatter())}};
  }

  /// A value by dotted path as text, "-" where absent.
  static std::string value_text(const Model& model, std::string_view path) {
    const ConfigValue* value = model.config().at(path);
    if (value == nullptr) return "-";
    const Json json = config_json(*value);
    return json.is_string() ? json.get<std::string>() : json.dump();
  }

  using Rows = std::vector<std::pair<std::string_view, std::string>>;

  /// What a model of tensors takes, and how large its graph is.
  static Result<Rows> about_graph(const Model& model) {
    CYB_ASSIGN(const Graph graph, model.graph());
    Rows rows = {{"type", fmt::format("graph of {} nodes, {} parameters", graph.nodes.size(),
                                      value_text(model, "parameters"))}};
    for (const GraphInput& input : graph.inputs) {
      rows.emplace_back("input", fmt::format("{} {}", input.name, input.spec.text(graph.symbols)));
    }
    for (const std::string& output : graph.outputs) rows.emplace_back("output", output);
    return rows;
  }

  static Result<Rows> about_text(const Model& model) {
    const auto config = [&](std::string_view path) { return value_text(model, path); };
    return Rows{
        {"type", fmt::format("{}, {} parameters", model.model_type(), config("parameters"))},
        {"sizes",
         fmt::format("{} layers, hidden {}, heads {}/{} of {}, ffn {}",
                     config("architecture.num_hidden_layers"), config("architecture.hidden_size"),
                     config("architecture.num_attention_heads"),
                     config("architecture.num_key_value_heads"), config("architecture.head_dim"),
                     config("architecture.intermediate_size"))},
        {"vocabulary", fmt::format("{} tokens, tokenizer {} {}", config("architecture.vocab_size"),
                                   config("tokenizer.type"), config("tokenizer.pre"))},
        {"context", config("architecture.max_position_embeddings")},
        {"stop ids", config("tokenizer.eos_token_ids")},
        {"chat template", model.chat() != nullptr ? "yes" : "none"},
        {"graph part", model.has_graph() ? "yes" : "none"}};
  }

  static void print(Output& output, const Model& model, const Json& json, const Rows& about) {
    const auto row = [&](std::string_view name, const std::string& value) {
      output.line(fmt::format("{:<14} {}", name, value));
    };
    row("name", model.name());
    row("file", fmt::format("{} ({})", model.path(), size_text(model.file_bytes())));
    row("model id", json["model_id"].get<std::string>());
    for (const auto& [name, value] : about) row(name, value);
    row("checked", "text parts and layout; the weights by `cyb-llm verify` or `run --verify`");
    for (const Json& entry : json["encodings"]) {
      row("weights", fmt::format("{:<6} {:>4} tensors, {}", entry["encoding"].get<std::string>(),
                                 entry["tensors"].get<std::uint64_t>(),
                                 size_text(entry["bytes"].get<std::uint64_t>())));
    }
    if (!model.card().empty())
      output.print(fmt::format("\n{}{}", model.card(), model.card().ends_with('\n') ? "" : "\n"));
  }

  ModelFlags model_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_info_command() {
  return std::make_unique<InfoCommand>();
}

}  // namespace cyb::cli
