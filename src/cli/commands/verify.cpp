// verify: everything about a model that can be checked.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/hash.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/model_flags.hpp"

namespace cyb::cli {
namespace {

class VerifyCommand final : public Command {
 public:
  void declare(Options& options) override {
    model_.declare_model(options);
    options.flag(
        "--json", json_,
        "One JSON object: {\"ok\", \"path\", \"model_id\", \"file_id\", \"outside_model_id\"}");
    options.examples(
        "Checks the stated id, the hash of every tensor, that all weights are finite, and the "
        "graph.");
  }

  Result<int> run(Context& context) override {
    const std::stop_token stop = context.interrupts.begin();
    CYB_ASSIGN(const std::shared_ptr<const Model> model, model_.open(context, stop));
    CYB_TRY(model->verify(stop));
    CYB_ASSIGN(const Digest model_id, model->model_id());
    CYB_ASSIGN(const Digest file_id, model->file_id());
    const std::vector<std::string> outside = model->outside_model_id();
    if (json_) {
      const Json answer{{"ok", true},
                        {"path", json_text(model->path())},
                        {"model_id", digest_text(model_id)},
                        {"file_id", digest_text(file_id)},
                        {"outside_model_id", outside}};
      context.output.line(answer.dump());
    } else {
      std::string names;
      for (const std::string& name : outside) names += (names.empty() ? "" : ", ") + name;
      context.output.line(fmt::format("{}: ok\nmodel_id {}\nfile_id  {}\nnot part of model_id: {}",
                                      model->path(), digest_text(model_id), digest_text(file_id),
                                      names));
    }
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  ModelFlags model_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_verify_command() {
  return std::make_unique<VerifyCommand>();
}

}  // namespace cyb::cli
