// list: what the store holds.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "model/store.hpp"

namespace cyb::cli {
namespace {

class ListCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.flag("--json", json_,
                 "One JSON object: {\"store\", \"models\": [{name, model_id, file_id, path, bytes, "
                 "problem}]}; "
                 "problem: null, or why the copy cannot be used");
    options.examples(
        "A model is named by its name, or by the first 6 or more digits of one of its ids.");
  }

  Result<int> run(Context& context) override {
    const Store store;
    CYB_ASSIGN(const std::vector<StoredModel> models, store.list());
    if (json_) {
      Json rows = Json::array();
      for (const StoredModel& model : models) {
        const Json problem = model.problem.empty() ? Json() : Json(json_text(model.problem));
        rows.push_back({{"name", json_text(model.name)},
                        {"model_id", digest_text(model.model_id)},
                        {"file_id", digest_text(model.file_id)},
                        {"path", json_text(model.path)},
                        {"bytes", model.file_bytes},
                        {"problem", problem}});
      }
      context.output.line(Json{{"store", json_text(store.root())}, {"models", rows}}.dump());
      return kExitOk;
    }
    for (const StoredModel& model : models) {
      context.output.line(
          fmt::format("{:<32} {}  {:>10}{}", model.name, hex(model.model_id).substr(0, 12),
                      size_text(model.file_bytes),
                      model.problem.empty() ? "" : fmt::format("  damaged: {}", model.problem)));
    }
    if (models.empty())
      context.output.note(
          fmt::format("No models in {}. `cyb-llm import SOURCE` adds one.", store.root()));
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_list_command() {
  return std::make_unique<ListCommand>();
}

}  // namespace cyb::cli
