// Service: a shelf of models behind the routes, and what is counted and logged.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/model_shelf.hpp"
#include "server/access.hpp"
#include "server/completion_request.hpp"
#include "server/grammar_cache.hpp"
#include "server/http/message.hpp"
#include "server/http/worker_pool.hpp"
#include "server/metrics.hpp"
#include "server/pull_desk.hpp"
#include "server/registry.hpp"

namespace cyb::server {

class Service;
struct Call;
using RouteHandler = void (*)(Service&, const std::shared_ptr<Call>&);

struct Route {
  std::string_view name, method, path;
  bool open = false;  // needs no key
  RouteHandler handler = nullptr;
};

#define CYB_ROUTE(name, method, path, open) \
  void name##_route(Service& service, const std::shared_ptr<Call>& call);
#include "server/route_list.inc"
#undef CYB_ROUTE

/// One request on its way. Belongs to one thread at a time.
struct Call {
  std::shared_ptr<http::Exchange> exchange;
  const Route* route = nullptr;
  std::string id;              // "req-...", in X-Request-Id
  std::size_t key_number = 0;  // 0: no keys
  std::string peer{};          // the client's address
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  // For the log.
  std::string user{};
  std::uint64_t prompt_tokens = 0, answer_tokens = 0;
  double first_token_ms = 0;
  ModelLease model{};        // that answers; given back before the answer ends
  std::string model_name{};  // the same, for counters
  /// An error as the last event of a stream; set where the stream may begin while the model is
  /// loaded, with comments (server-sent events).
  std::function<std::string(const ApiError&)> stream_error{};
  bool stream_begun = false;  // the head is out

  const http::Request& request() const noexcept { return exchange->request(); }
  double seconds() const noexcept {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
};

struct ServiceOptions {
  std::string model_name{};      // of the engine that a server is started with
  std::string version{};         // of this program
  SchedulerOptions scheduler{};  // of that engine
  AccessOptions access{};
  Puller puller{};                                   // empty: nothing is pulled
  bool share_models = false;                         // their files, for download
  std::function<void(std::string_view line)> log{};  // one line a request; from any thread
};

class Service {
 public:
  Service(std::unique_ptr<ModelShelf> shelf, ServiceOptions options, http::WorkerPool& workers);

  std::optional<http::Response> check_head(const http::RequestHead& head);
  void handle(const std::shared_ptr<http::Exchange>& exchange);
  /// An answer to what is no request: `why` is a sentence, or "".
  http::Response refuse(unsigned status, std::string_view why, std::string_view peer);
  void log(std::string_view line) const {
    if (options_.log) options_.log(line);
  }

  /// Gives the model back, answers, counts and logs.
  void respond(Call& call, http::Response response);
  /// The same; where a stream has begun, as its last event.
  void respond(Call& call, const ApiError& error);
  void respond_json(Call& call, std::string body) {
    respond(call, http::Response{200, "application/json", std::move(body)});
  }
  /// Counts and logs what was answered.
  void record(const Call& call, unsigned status);
  /// A line in the log.
  void note(std::string_view line) const {
    if (options_.log) options_.log(line);
  }
  /// Downloads and pulls end: they go on from there at another time.
  void end_transfers();

  ModelShelf& shelf() noexcept { return *shelf_; }
  /// Null where no files are shared.
  Registry* registry() noexcept { return registry_.get(); }
  /// Null where nothing is pulled.
  PullDesk* pulls() noexcept { return pulls_.get(); }
  Access& access() noexcept { return access_; }
  Metrics& metrics() noexcept { return metrics_; }
  const GrammarCache& grammars() const noexcept { return grammars_; }
  http::WorkerPool& workers() noexcept { return workers_; }
  /// Of a call that has its model.
  Served served(const Call& call) const noexcept {
    return {call.model.engine(), call.model.name(), call.model.scheduler().options().max_running,
            &grammars_};
  }
  const std::string& version() const noexcept { return options_.version; }
  std::int64_t started() const noexcept { return started_; }
  std::string new_id(std::string_view prefix);
  /// Before set_ready().
  void set_connections(std::function<std::uint32_t()> count) { n_connections_ = std::move(count); }
  std::uint32_t n_connections() const {
    return ready_.load() && n_connections_ ? n_connections_() : 0;
  }
  bool ready() const noexcept { return ready_.load(); }
  void set_ready(bool ready) noexcept { ready_ = ready; }
  /// Cancels what is left; afterwards no event comes any more.
  void stop();

 private:
  ServiceOptions options_;
  http::WorkerPool& workers_;
  Access access_;
  Metrics metrics_;
  mutable GrammarCache grammars_;
  std::int64_t started_ = 0;
  std::uint64_t id_base_ = 0;
  std::atomic<std::uint64_t> last_id_{0};
  std::atomic<bool> ready_{false};
  std::function<std::uint32_t()> n_connections_;
  std::unique_ptr<ModelShelf> shelf_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<PullDesk> pulls_;
};

/// Of model and numerics: equal ones give equal bits.
std::string fingerprint(const Engine& engine);

/// Seconds since 1970.
std::int64_t unix_time();

}  // namespace cyb::server
