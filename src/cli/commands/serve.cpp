// serve: models behind the HTTP API that OpenAI's clients speak.
#include <fmt/format.h>
#include <sys/resource.h>

#include <condition_variable>
#include <ctime>
#include <mutex>
#include <utility>

#include "api/version.hpp"
#include "cli/command.hpp"
#include "cli/serve_config.hpp"
#include "cli/serve_pull.hpp"
#include "cli/serve_shelf.hpp"
#include "cli/text_input.hpp"
#include "server/openapi.hpp"
#include "server/server.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm serve smollm2.gguf
  cyb-llm serve smollm2 --port 0 --slots 16 --ctx 4096
  cyb-llm serve coder --host 0.0.0.0 --api-key-file keys.txt --allow-host box.example
  cyb-llm serve smollm2 --unix "$XDG_RUNTIME_DIR/cyb-llm.sock"
  cyb-llm serve small=smollm2 coder.gguf --memory 8G --keep-alive 10m --pin small --lora coder:sql=adapters/sql
  cyb-llm serve --config serve.toml --print-config
  curl http://127.0.0.1:8080/v1/chat/completions -H 'Content-Type: application/json' \
       -d '{"messages": [{"role": "user", "content": "Hi"}], "stream": true}'
stdout gets one line, `listening on http://HOST:PORT`, once requests are taken; stderr one line a request, never its text.
Clients of Ollama's API: http://127.0.0.1:8080. Clients of OpenAI's: base URL http://127.0.0.1:8080/v1, any key where there is no key file. docs/http-api.md lists
routes and fields; a field that is not built is refused by its name.
A host that others can reach needs --api-key-file: keys of at least 16 characters, one a line, # begins a comment.
Every option has one name: --max-queue N, CYB_SERVE_MAX_QUEUE=N, in the file of --config max-queue = N; the first of these that is given counts. SIGHUP: file, keys,
hosts and certificate are read again, no connection ends.
Ctrl-C or SIGTERM: no more requests are taken, what runs is finished, exit code 0; a second one ends at once.)";

class ServeCommand final : public Command {
 public:
  void declare(Options& options) override {
    config_.declare(options);
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    CYB_TRY(Output::check_writable());
    if (config_.options().openapi) {
      context.output.line(server::openapi_json(api::kVersion));
      return kExitOk;
    }
    const std::stop_token stop = context.interrupts.begin();
    CYB_TRY(config_.read(context.interrupts.wake_fd()));
    if (config_.options().print_config) {
      context.output.print(config_.toml());
      return kExitOk;
    }
    context.interrupts.on_hangup([this] {
      const std::lock_guard lock(mutex_);
      renewal_asked_ = true;
      changed_.notify_all();
    });
    const Result<int> code = serve(context, stop);
    context.interrupts.on_hangup({});
    return code;
  }

 private:
  Result<int> serve(Context& context, const std::stop_token& stop) {
    ServeOptions told = config_.options();
    // What is wrong here must not cost the time of a load.
    CYB_ASSIGN(server::ServerOptions options, told.server_options(context.interrupts.wake_fd()));
    CYB_ASSIGN(options.service.puller, make_puller(told));
    if (!context.output.quiet()) {
      options.service.log = [this, &context](std::string_view line) { log(context.output, line); };
    }
    for (const auto* secret : {&told.key_file, &told.admin_key_file, &told.tls_key}) {
      if (*secret) warn_if_open_to_others(context.output, **secret);
    }
    raise_file_limit();
    CYB_ASSIGN(std::unique_ptr<ModelShelf> shelf,
               make_shelf(told, context, stop, [this, &context](const std::string& line) {
                 if (!context.output.quiet()) log(context.output, line);
               }));
    CYB_ASSIGN(const std::unique_ptr<server::Server> server,
               server::Server::start(std::move(shelf), std::move(options)));
    context.output.line("listening on " + server->address());
    CYB_TRY(context.output.result());  // who starts it waits for that line
    while (wait(stop)) renew(context, *server);
    context.output.note("finishing what runs; a second signal ends at once");
    server->drain();
    return kExitOk;
  }

  /// True: SIGHUP came. False: the end.
  bool wait(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [this] { return renewal_asked_; });
    return std::exchange(renewal_asked_, false) && !stop.stop_requested();
  }

  void renew(Context& context, server::Server& server) {
    auto renewed = config_.renew(context.interrupts.wake_fd());
    Result<void> done;
    if (renewed) done = server.renew(renewed->options);
    if (!renewed || !done) {
      const Error& error = renewed ? done.error() : renewed.error();
      return log(context.output, "SIGHUP: all stays as it was: " + error.text());
    }
    const server::AccessOptions& access = renewed->options.service.access;
    std::string line =
        fmt::format("SIGHUP: read again: {} keys, {} further hosts{}", access.keys.size(),
                    access.more_hosts.size(),
                    renewed->options.http.tls_certificate.empty() ? "" : ", certificate");
    if (!renewed->unused.empty()) {
      line += fmt::format("; changed, and taken at the next start alone: {}",
                          fmt::join(renewed->unused, ", "));
    }
    log(context.output, line);
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

  ServeConfig config_;
  std::mutex log_mutex_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any changed_;
  bool renewal_asked_ = false;
};

}  // namespace

std::unique_ptr<Command> make_serve_command() {
  return std::make_unique<ServeCommand>();
}

}  // namespace cyb::cli
