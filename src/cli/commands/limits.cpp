// limits: the one table of what files and requests may ask for.
#include "base/limits.hpp"

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/json.hpp"

namespace cyb::cli {
namespace {

class LimitsCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.flag("--json", json_, "One JSON object: {\"limits\": [{name, value, unit, what}]}");
  }

  Result<int> run(Context& context) override {
    if (json_) {
      Json rows = Json::array();
      for (const Limit& limit : all_limits()) {
        rows.push_back({{"name", limit.name},
                        {"value", limit.value},
                        {"unit", limit.unit},
                        {"what", limit.what}});
      }
      context.output.line(Json{{"limits", rows}}.dump());
      return kExitOk;
    }
    for (const Limit& limit : all_limits()) {
      context.output.line(
          fmt::format("{:<16} {:>14} {:<11} {}", limit.name, limit.value, limit.unit, limit.what));
    }
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_limits_command() {
  return std::make_unique<LimitsCommand>();
}

}  // namespace cyb::cli
