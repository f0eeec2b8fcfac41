// serve: a model behind the HTTP API that OpenAI's clients speak.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <mutex>
#include <utility>

#include "api/version.hpp"
#include "base/file.hpp"
#include "cli/command.hpp"
#include "cli/model_flags.hpp"
#include "cli/text_input.hpp"
#include "cli/usage.hpp"
#include "server/openapi.hpp"
#include "server/server.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm serve smollm2.gguf
  cyb-llm serve smollm2 --port 0 --slots 16 --ctx 4096
  cyb-llm serve coder --host 0.0.0.0 --api-key-file keys.txt --allow-host box.example
  cyb-llm serve smollm2 --unix "$XDG_RUNTIME_DIR/cyb-llm.sock"
  curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' \
       -d '{"messages": [{"role": "user", "content": "Hi"}], "stream": true}'
stdout gets one line, `listening on http://HOST:PORT`, once requests are taken; stderr one line a request, never its text.
Clients of Ollama's API: http://127.0.0.1:8080. Clients of OpenAI's: base URL http://127.0.0.1:8080/v1, any key where there is no key file. docs/http-api.md lists
routes and fields; a field that is not built is refused by its name.
A host that others can reach needs --api-key-file: keys of at least 16 characters, one a line, # begins a comment.
Ctrl-C or SIGTERM: no more requests are taken, what runs is finished, exit code 0; a second one ends at once.)";

constexpr std::uint64_t kMaxSlots = 256, kMaxQueue = 65536;

class ServeCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.optional_positional("MODEL", model_name_,
                                "A .model, a GGUF or ONNX file or a Hugging Face folder, or a name "
                                "or id in the store");
    options.flag("--openapi", openapi_, "Print the OpenAPI file of the server and end");
    options.text("--host", host_, "H", "Address to listen on (default: 127.0.0.1)");
    options.integer("--port", port_, {0, 65535}, "P", "Port; 0: any that is free (default: 8080)");
    options.optional_text("--unix", unix_path_, "PATH",
                          "Listen on this Unix socket (only this user may use it), on no port");
    options.optional_text("--tls-cert", tls_certificate_, "FILE",
                          "Certificate chain (PEM): HTTPS instead of HTTP; needs --tls-key");
    options.optional_text("--tls-key", tls_key_, "FILE", "The certificate's private key (PEM)");
    options.optional_text("--api-key-file", key_file_, "FILE",
                          "Keys that clients must have one of");
    options.texts("--allow-host", allow_hosts_, "NAME",
                  "A further name that clients reach this server by (may be given several times)");
    options.optional_text("--name", name_, "NAME",
                          "What clients call the model (default: its file's name)");
    options.integer("--slots", slots_, {1, kMaxSlots}, "N",
                    "Answers that grow at the same time; memory is kept for a context of each "
                    "(default: 8)");
    options.integer("--max-queue", max_queue_, {0, kMaxQueue}, "N",
                    "Requests that wait; one more is refused with 503 (default: 256)");
    model_.declare_context(options);
    model_.declare_engine(options);
    model_.declare_verify(options);
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    CYB_TRY(Output::check_writable());
    if (openapi_) {
      context.output.line(server::openapi_json(api::kVersion));
      return kExitOk;
    }
    if (model_name_.value_or("").empty()) return fail(usage_error("MODEL is missing"));
    model_.set_name(*model_name_);
    const std::stop_token stop = context.interrupts.begin();
    CYB_TRY(model_.check_kv());
    server::ServerOptions options;
    CYB_TRY(read_options(context, options));
    raise_file_limit();
    EngineOptions engine_options = model_.engine_options();
    engine_options.max_sequences = static_cast<std::uint32_t>(slots());
    engine_options.max_outputs =
        std::max(engine_options.max_outputs, static_cast<std::uint32_t>(slots()));
    CYB_ASSIGN(std::shared_ptr<Engine> engine, model_.load(context, stop, engine_options));
    CYB_ASSIGN(const std::unique_ptr<server::Server> server,
               server::Server::start(std::move(engine), std::move(options)));
    context.output.line("listening on " + server->address());
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any never;
    never.wait(lock, stop, [] { return false; });
    context.output.note("finishing what runs; a second signal ends at once");
    server->drain();
    return kExitOk;
  }

 private:
  std::uint64_t slots() const noexcept { return slots_.value_or(8); }

  /// Before the model is loaded: what is wrong here must not cost that time.
  Result<void> read_options(Context& context, server::ServerOptions& out) {
    out.http.host = host_;
    out.http.port = static_cast<std::uint16_t>(port_.value_or(8080));
    CYB_TRY(read_transport(out.http));
    out.service.model_name = name_.value_or(std::filesystem::path(model_.name()).stem().string());
    if (out.service.model_name.empty()) out.service.model_name = "model";
    out.service.version = api::kVersion;
    out.service.scheduler.max_running = static_cast<std::uint32_t>(slots());
    out.service.scheduler.max_waiting = static_cast<std::uint32_t>(max_queue_.value_or(256));
    out.service.access.more_hosts = allow_hosts_;
    if (key_file_) {
      CYB_ASSIGN(const std::string text, read_text(*key_file_, context.interrupts.wake_fd()));
      CYB_ASSIGN(out.service.access.keys, server::read_keys(text, *key_file_));
    } else if (!unix_path_ && !http::is_loopback_host(host_)) {
      return fail(usage_error(fmt::format(
          "others reach --host {}: it needs --api-key-file FILE, so that not everybody may ask",
          host_)));
    }
    if (!context.output.quiet()) {
      out.service.log = [this, &context](std::string_view line) { log(context.output, line); };
    }
    return {};
  }

  Result<void> read_transport(http::HttpOptions& out) const {
    if (tls_certificate_.has_value() != tls_key_.has_value()) {
      return fail(usage_error("--tls-cert and --tls-key go together"));
    }
    if (unix_path_ && port_)
      return fail(usage_error("--unix listens on no port: leave out --port"));
    if (unix_path_ && unix_path_->empty()) return fail(usage_error("--unix needs a path"));
    out.unix_path = unix_path_.value_or("");
    out.tls_certificate = tls_certificate_.value_or("");
    out.tls_key = tls_key_.value_or("");
    return {};
  }

  void log(Output& output, std::string_view line) {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    const std::lock_guard lock(log_mutex_);
    output.err(fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z {}\n", utc.tm_year + 1900,
                           utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, line));
  }

  /// Each connection is a file; the soft limit is often 1024.
  static void raise_file_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }

  ModelFlags model_;
  std::optional<std::string> model_name_;
  bool openapi_ = false;
  std::string host_ = "127.0.0.1";
  std::optional<std::string> key_file_, name_, unix_path_, tls_certificate_, tls_key_;
  std::vector<std::string> allow_hosts_;
  std::optional<std::uint64_t> port_, slots_, max_queue_;
  std::mutex log_mutex_;
};

}  // namespace

std::unique_ptr<Command> make_serve_command() {
  return std::make_unique<ServeCommand>();
}

}  // namespace cyb::cli
