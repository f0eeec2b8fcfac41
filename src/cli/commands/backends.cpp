// backends: what can run models here, and why something cannot.
#include "backends/backend.hpp"

#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/isa_names.hpp"
#include "cli/json.hpp"

namespace cyb::cli {
namespace {

Result<std::shared_ptr<Backend>> create(std::string_view name, std::string_view isa) {
  BackendOptions options;
  options.n_threads = isa.empty() ? 0 : 1;  // as a run has them; the question for an ISA needs none
  options.isa = isa;
  return create_backend(name, options);
}

class BackendsCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.flag("--json", json_,
                 "One JSON object: {\"backends\": [{name, available, description, isas}]}");
    options.examples(
        "`--backend auto` takes the first one that is available. CYB_ISA chooses among the ISAs of "
        "a backend.");
  }

  Result<int> run(Context& context) override {
    Json rows = Json::array();
    for (const std::string_view name : backend_names()) {
      const auto backend = create(name, "");
      Json row = {{"name", name}, {"available", backend.has_value()}};
      row["description"] = backend ? (*backend)->description() : backend.error().text();
      row["isas"] = isas_of(name);
      rows.push_back(row);
    }
    if (json_) {
      context.output.line(Json{{"backends", rows}}.dump());
      return kExitOk;
    }
    for (const Json& row : rows) {
      std::string isas;
      for (const Json& isa : row["isas"]) isas += " " + isa.get<std::string>();
      context.output.line(fmt::format("{:<12} {:<4} {}{}", row["name"].get<std::string>(),
                                      row["available"].get<bool>() ? "yes" : "no",
                                      row["description"].get<std::string>(),
                                      isas.empty() ? "" : "; ISAs:" + isas));
    }
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  /// Which of them this machine has is found by asking for each.
  static Json isas_of(std::string_view name) {
    Json isas = Json::array();
    for (const std::string_view isa : kIsaNames) {
      if (name != "reference" && create(name, isa)) isas.push_back(isa);
    }
    return isas;
  }

  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_backends_command() {
  return std::make_unique<BackendsCommand>();
}

}  // namespace cyb::cli
