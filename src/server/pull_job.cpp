// The exchange belongs to the thread of the pull, but for the client that goes away.
#include "server/pull_job.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/json_text.hpp"
#include "server/model_wait.hpp"

namespace cyb::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTell{500};
constexpr const char* kEvents = "text/event-stream";

/// Texts of N codes and of wrong input are about the source; others may hold paths of this machine.
ApiError pull_error(const Error& error) {
  const std::string text = error.message();
  if (error.code() == kPullNotAllowed) return {403, text, "pull_not_allowed", "source"};
  if (error.kind() == ErrorKind::kCancelled) return {499, "The pull was stopped.", "cancelled"};
  if (error.code().starts_with('N') && error.code().size() == 3) {
    const bool choice = error.code() == "N06" || error.code() == "N10" || error.code() == "N11";
    if (error.code() == "N08") return {507, "There is not enough space.", "no_space"};
    return {choice ? 400u : 502u, error.code() + ": " + text, "pull_failed", "source"};
  }
  if (error.kind() == ErrorKind::kInvalidInput) return {400, text, "invalid_value", "source"};
  return {500, "The pull failed; the server's log says why.", "pull_failed", "source"};
}

class PullJob : public std::enable_shared_from_this<PullJob> {
 public:
  PullJob(Service& service, std::shared_ptr<Call> call, PullOrder order, PullManner manner,
          std::function<std::string(std::size_t)> answer)
      : service_(service),
        call_(std::move(call)),
        order_(std::move(order)),
        manner_(manner),
        answer_(std::move(answer)) {}

  void start() {
    const auto self = shared_from_this();
    order_.stop = stop_.get_token();
    if (manner_.stream && !manner_.detach) {
      order_.progress = [this](std::uint64_t done, std::uint64_t total, const std::string& what) {
        tell(done, total, what);
      };
      call_->stream_error = [](const ApiError& error) {
        return "data: " + error_json(error) + "\n\n";
      };
    }
    if (!manner_.detach)
      call_->exchange->on_gone([stop = stop_]() mutable { stop.request_stop(); });
    const std::string source = order_.source;
    const auto begun = service_.pulls()->begin(source, stop_, [self] { self->run(); });
    if (!begun) {
      call_->exchange->on_gone({});
      return service_.respond(*call_, begun.error());
    }
    if (manner_.detach) accepted(source);
  }

 private:
  void accepted(const std::string& source) {
    const std::string body = R"({"status":"pulling","source":)" + json_quote(source) + "}";
    service_.respond(*call_, http::Response{202, "application/json", body});
  }

  void tell(std::uint64_t done, std::uint64_t total, const std::string& what) {
    const Clock::time_point now = Clock::now();
    if (now - told_ < kTell) return;
    told_ = now;
    begin_stream(*call_, kEvents,
                 fmt::format("data: {{\"status\":\"pulling\",\"file\":{},\"done_bytes\":{},"
                             "\"total_bytes\":{}}}\n\n",
                             json_quote(what), done, total));
  }

  void run() {
    auto model = serve();
    if (!manner_.detach) call_->exchange->on_gone({});
    const std::string what = json_quote(order_.source);
    service_.note(model ? fmt::format("pulled {}: {}", what, service_.shelf().name(*model))
                        : fmt::format("could not pull {}: {}", what, log_text_));
    if (manner_.detach) return;
    if (!model) return service_.respond(*call_, model.error());
    if (!manner_.stream) return service_.respond_json(*call_, answer_(*model));
    begin_stream(
        *call_, kEvents,
        "data: {\"status\":\"success\",\"model\":" + answer_(*model) + "}\n\ndata: [DONE]\n\n");
    call_->exchange->end();
    service_.record(*call_, 200);
  }

  /// Pulls, and puts the model on the shelf.
  ApiResult<std::size_t> serve() {
    auto pulled = service_.pulls()->puller()(order_);
    if (!pulled) return failed(pulled.error(), pull_error(pulled.error()));
    const auto model = service_.shelf().add(*std::move(pulled));
    if (model) return *model;
    const bool taken = model.error().code() == "name_taken";
    const ApiError full{507, "The server has as many models as it can.", "too_many_models"};
    return failed(
        model.error(),
        taken ? ApiError{409, "Another model has this name here.", "name_taken", "name"} : full);
  }
  ApiResult<std::size_t> failed(const Error& error, ApiError told) {
    log_text_ = error.text();
    return refuse(std::move(told));
  }

  Service& service_;
  std::shared_ptr<Call> call_;
  PullOrder order_;
  PullManner manner_;
  std::function<std::string(std::size_t)> answer_;
  std::stop_source stop_;
  Clock::time_point told_{};
  std::string log_text_;
};

}  // namespace

void start_pull(Service& service, const std::shared_ptr<Call>& call, PullOrder order,
                PullManner manner, std::function<std::string(std::size_t)> answer) {
  std::make_shared<PullJob>(service, call, std::move(order), manner, std::move(answer))->start();
}

}  // namespace cyb::server
