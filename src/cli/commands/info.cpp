// info: what a model is, without running it.
#include <fmt/format.h>

#include <map>

#include "base/hash.hpp"
#include "cli/command.hpp"
#include "cli/config_json.hpp"
#include "cli/json.hpp"
#include "cli/model_flags.hpp"

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
      print(context.output, *model, json);
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

  static void print(Output& output, const Model& model, const Json& json) {
    const auto row = [&](std::string_view name, const std::string& value) {
      output.line(fmt::format("{:<14} {}", name, value));
    };
    const auto config = [&](std::string_view path) { return value_text(model, path); };
    row("name", model.name());
    row("file", fmt::format("{} ({})", model.path(), size_text(model.file_bytes())));
    row("model id", json["model_id"].get<std::string>());
    row("type", fmt::format("{}, {} parameters", model.model_type(), config("parameters")));
    row("sizes",
        fmt::format("{} layers, hidden {}, heads {}/{} of {}, ffn {}",
                    config("architecture.num_hidden_layers"), config("architecture.hidden_size"),
                    config("architecture.num_attention_heads"),
                    config("architecture.num_key_value_heads"), config("architecture.head_dim"),
                    config("architecture.intermediate_size")));
    row("vocabulary", fmt::format("{} tokens, tokenizer {} {}", config("architecture.vocab_size"),
                                  config("tokenizer.type"), config("tokenizer.pre")));
    row("context", config("architecture.max_position_embeddings"));
    row("stop ids", config("tokenizer.eos_token_ids"));
    row("chat template", model.chat() != nullptr ? "yes" : "none");
    row("graph part", model.has_graph() ? "yes" : "none");
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
