// pull: a model from a hub or an address into the store, or its files into a folder.
#include <fmt/format.h>

#include "api/pull/pull.hpp"
#include "base/file.hpp"
#include "cli/command.hpp"
#include "cli/environment.hpp"
#include "cli/json.hpp"
#include "cli/output_file.hpp"
#include "cli/progress.hpp"
#include "cli/text_input.hpp"
#include "cli/usage.hpp"
#include "net/sha.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm pull HuggingFaceTB/SmolLM2-135M-Instruct       the checkpoint, then: cyb-llm run SmolLM2-135M-Instruct
  cyb-llm pull Qwen/Qwen2.5-0.5B-Instruct-GGUF:q8_0      one file of several, by a part of its name
  cyb-llm pull ORG/NAME@v1.0:model-Q4_K_M.gguf           of a branch, tag or commit
  cyb-llm pull https://example.org/m.gguf --sha256 HEX   any address; without --sha256 the digest is kept for later pulls
  cyb-llm pull cyb://box.example/smollm2                 a model of `cyb-llm serve --share-models` on another machine
  cyb-llm pull ORG/NAME --output FOLDER                  the files as they are
A download that breaks, is interrupted or killed goes on where it was: give the same command again. Bytes are held against the
digests that the hub announces; a token (--token-file, or the variable HF_TOKEN) goes to the hub alone. HF_ENDPOINT names another
hub. cyb:// is TLS, but on this machine; cyb+http:// and cyb+https:// say it, the port is 8080. Proxies as curl takes them (https_proxy, no_proxy). Nothing else in this program uses the network unasked.)";

constexpr std::uint64_t kMaxTokenBytes = 4096;

class PullCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.positional(
        "SOURCE", source_,
        "ORG/NAME[@REVISION][:FILE] of a hub, an address that ends in .gguf, "
        ".model, .safetensors or .onnx, or cyb://HOST[:PORT]/NAME of another server");
    options.text("--name", name_, "NAME", "Name of the model (default: from the source)");
    options.optional_text("--output", output_, "FOLDER",
                          "Keep the files there instead of importing them");
    options.flag("--no-import", no_import_, "Keep the files in the store's downloads folder");
    options.text("--sha256", sha256_, "HEX", "What the file of an address must have");
    options.text("--hub", hub_, "URL", "Another hub (default: HF_ENDPOINT, else huggingface.co)");
    options.text("--token-file", token_file_, "FILE",
                 "Token of the hub or server (default: HF_TOKEN, for a server CYB_TOKEN)");
    options.integer("--connections", connections_, {1, 16}, "N",
                    "Ranges and files fetched at once (default 4)");
    options.integer("--retries", retries_, {0, 100}, "N",
                    "Tries of one range without progress (default 5)");
    options.integer("--stall", stall_s_, {1, 3600}, "SECONDS",
                    "Give a connection up that is slower than 512 B/s for so long (default 30)");
    options.flag("--json", json_, "One JSON object on stdout");
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    CYB_ASSIGN(api::PullOptions options, read_options());
    Progress progress(context.output, "pulling"), importing(context.output, "importing");
    options.source.stop = options.download.stop = context.interrupts.begin();
    options.download.progress = [&](std::uint64_t done, std::uint64_t total,
                                    const std::string& what) {
      progress.update(done, total,
                      fmt::format("{} of {} {}", size_text(done), size_text(total), what));
    };
    options.source.progress = [&](const ImportProgress& p) {
      progress.clear();
      importing.update(p.bytes_done, p.bytes_total, p.what);
    };
    options.source.note = options.download.note = [&](const std::string& text) {
      progress.clear();
      importing.clear();
      context.output.note(text);
    };
    if (!token_file_.empty()) warn_if_open_to_others(context.output, token_file_);
    std::vector<std::string> warnings;
    options.source.on_imported = [&](const ImportReport& report) { warnings = report.warnings; };
    CYB_ASSIGN(const api::Pulled pulled, api::pull(source_, options));
    progress.clear();
    importing.clear();
    for (const std::string& warning : warnings) context.output.warning(warning);
    if (json_) {
      context.output.line(json_of(pulled).dump(-1, ' ', false, Json::error_handler_t::replace));
      return kExitOk;
    }
    if (pulled.already) context.output.note("it is in the store already");
    if (!pulled.name.empty()) context.output.note(fmt::format("try: cyb-llm run {}", pulled.name));
    context.output.line(pulled.path);
    return kExitOk;
  }

  bool wants_json() const noexcept override { return json_; }

 private:
  Result<api::PullOptions> read_options() const {
    CYB_TRY(check_model_name(name_));
    if (output_ && no_import_)
      return fail(usage_error("--no-import has no effect with --output: nothing is imported then"));
    if (!name_.empty() && (output_ || no_import_))
      return fail(usage_error("--name has no effect where nothing is imported"));
    if (!sha256_.empty() && !net::is_hex(sha256_, 64))
      return fail(usage_error("--sha256: write 64 lower-case hex digits"));
    api::PullOptions options;
    options.hub = hub_.empty() ? environment("HF_ENDPOINT", options.hub.c_str()) : hub_;
    options.token = environment("HF_TOKEN");
    options.server_token = environment("CYB_TOKEN");
    if (!token_file_.empty()) {
      CYB_ASSIGN(options.token, read_text_file(token_file_, kMaxTokenBytes));
      while (options.token.ends_with('\n') || options.token.ends_with('\r'))
        options.token.pop_back();
      if (options.token.empty()) return fail(usage_error("--token-file: the file is empty"));
      options.server_token = options.token;
    }
    options.sha256 = sha256_;
    options.name = name_;
    options.output = output_;
    options.import = !no_import_;
    options.download.connections = static_cast<unsigned>(connections_.value_or(4));
    options.download.retries = static_cast<unsigned>(retries_.value_or(5));
    options.download.http.stall_s = static_cast<unsigned>(stall_s_.value_or(30));
    return options;
  }

  static Json json_of(const api::Pulled& pulled) {
    Json json;
    json["source"] = json_text(pulled.source);
    if (!pulled.commit.empty()) json["commit"] = pulled.commit;
    json["path"] = json_text(pulled.path);
    if (!pulled.name.empty()) json["name"] = pulled.name;
    if (!pulled.model_id.empty()) json["model_id"] = pulled.model_id;
    json["already"] = pulled.already;
    json["waited"] = pulled.waited;
    json["pinned"] = pulled.pinned;
    json["files"] = Json::array();
    for (const api::PulledFile& file : pulled.files) {
      json["files"].push_back({{"name", json_text(file.name)},
                               {"size_bytes", file.result.size},
                               {"sha256", file.result.sha256},
                               {"fetched_bytes", file.result.fetched_bytes},
                               {"already", file.result.already}});
    }
    return json;
  }

  std::string source_, name_, sha256_, hub_, token_file_;
  std::optional<std::string> output_;
  std::optional<std::uint64_t> connections_, retries_, stall_s_;
  bool no_import_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_pull_command() {
  return std::make_unique<PullCommand>();
}

}  // namespace cyb::cli
