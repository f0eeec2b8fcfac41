// replay: the request of an answer that a server gave, again, and whether the answer is the same.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/model_flags.hpp"
#include "cli/text_input.hpp"
#include "cli/usage.hpp"
#include "server/service.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm replay answer.json
  cyb-llm replay answer.json ./smollm2.gguf --exact
  jq -n --slurpfile q request.json --slurpfile a answer.json '{request: $q[0], response: $a[0]}' | cyb-llm replay -
FILE is one JSON object: `request`, the body that was sent; `response`, the answer (not streamed); `path`, the route
(/v1/chat/completions, the default, or /v1/completions). The recipe in the answer (`cyb_llm`) names the model, which must be in the store unless MODEL is given.
Compared are texts, reasons, tool calls, numbers of tokens and every log-probability, not ids and times. Exit code 0: the same;
6: the first difference is printed.)";

/// What differs from one run to the next, in any object of an answer.
constexpr std::string_view kVolatile[] = {"id",
                                          "created",
                                          "created_at",
                                          "completed_at",
                                          "call_id",
                                          "item_id",
                                          "model",
                                          "prompt_tokens_details",
                                          "input_tokens_details",
                                          "total_duration",
                                          "load_duration",
                                          "prompt_eval_duration",
                                          "eval_duration"};

Json settled(const Json& value) {
  if (value.is_array()) {
    Json out = Json::array();
    for (const Json& item : value) out.push_back(settled(item));
    return out;
  }
  if (!value.is_object()) return value;
  Json out = Json::object();
  for (const auto& [key, item] : value.items()) {
    if (std::ranges::find(kVolatile, key) == std::end(kVolatile)) out[key] = settled(item);
  }
  return out;
}

/// Takes one answer and lets its reader wait for it.
class RecordedExchange final : public http::Exchange {
 public:
  explicit RecordedExchange(http::Request request) : request_(std::move(request)) {}
  const http::Request& request() const noexcept override { return request_; }
  void respond(http::Response response) override {
    const std::lock_guard lock(mutex_);
    response_ = std::move(response);
    over_ = true;
    done_.notify_all();
  }
  void begin(http::Response head) override {
    const std::lock_guard lock(mutex_);
    response_ = std::move(head);
  }
  bool write(std::string_view piece) override {
    const std::lock_guard lock(mutex_);
    response_.body += piece;
    return true;
  }
  void end() override {
    const std::lock_guard lock(mutex_);
    over_ = true;
    done_.notify_all();
  }
  void cut_off() override { end(); }
  void on_gone(std::function<void()> callback) override {
    const std::lock_guard lock(mutex_);
    gone_ = std::move(callback);
  }
  /// False: `stop` was asked for; the request is cancelled and has ended.
  bool wait(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (done_.wait(lock, stop, [this] { return over_; })) return true;
    if (const auto cancel = gone_) {
      lock.unlock();
      cancel();
      lock.lock();
      done_.wait(lock, [this] { return over_; });
    }
    return false;
  }
  const http::Response& response() const noexcept { return response_; }

 private:
  http::Request request_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any done_;
  std::function<void()> gone_;
  http::Response response_;
  bool over_ = false;
};

struct Saved {
  std::string path = "/v1/chat/completions";
  Json request, response;
  std::string model_id;

  const Json& recipe() const { return response["cyb_llm"]; }
};

Result<Saved> read_saved(const std::string& text, const std::string& name) {
  const auto bad = [&](std::string_view what) {
    return fail(invalid_input(fmt::format("{}: {}", name, what)));
  };
  Json root = Json::parse(text, nullptr, false);
  if (!root.is_object()) return bad("is no JSON object with `request` and `response`");
  Saved out;
  if (!root.contains("request") || !root["request"].is_object()) {
    return bad("has no `request`, the body that was sent");
  }
  if (!root.contains("response") || !root["response"].is_object()) {
    return bad("has no `response`, the answer as one JSON object (one that was not streamed)");
  }
  if (root.contains("path") && root["path"].is_string()) out.path = root["path"];
  if (out.path != "/v1/chat/completions" && out.path != "/v1/completions") {
    return fail(not_built(fmt::format("replay of the route \"{}\"", out.path)));
  }
  out.request = std::move(root["request"]);
  out.response = std::move(root["response"]);
  const auto recipe = out.response.find("cyb_llm");
  const auto has = [&](const char* key, bool number) {
    if (!recipe->contains(key)) return false;
    return number ? (*recipe)[key].is_number_unsigned() : (*recipe)[key].is_string();
  };
  if (recipe == out.response.end() || !recipe->is_object() || !has("model_id", false) ||
      !has("seed", true)) {
    return bad("the answer has no recipe (`cyb_llm` with `model_id` and `seed`)");
  }
  out.model_id = (*recipe)["model_id"];
  out.request["seed"] = (*recipe)["seed"];
  out.request["stream"] = false;
  out.request.erase("stream_options");
  out.request.erase("model");
  return out;
}

class ReplayCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.positional("FILE", file_, "Request and answer (-: standard input)");
    options.optional_positional("MODEL", model_,
                                "A model as in `run` (default: the recipe's, from the store)");
    flags_.declare_context(options);
    flags_.declare_engine(options);
    options.flag(
        "--json", json_,
        "One JSON object: {\"same\", \"difference\": {\"at\", \"saved\", \"now\"} or null, "
        "\"response\"}");
    options.examples(kExamples);
  }

  Result<int> run(Context& context) override {
    const std::stop_token stop = context.interrupts.begin();
    CYB_TRY(flags_.check_kv());
    CYB_TRY(Output::check_writable());
    CYB_ASSIGN(const std::string text, read_text(file_, context.interrupts.wake_fd()));
    CYB_ASSIGN(const Saved saved, read_saved(text, file_));
    ModelFlags flags = flags_;
    flags.set_name(model_.value_or(saved.model_id));
    EngineOptions options = flags.engine_options();
    options.max_sequences = kAnswers;
    options.max_outputs = std::max(options.max_outputs, kAnswers);
    CYB_ASSIGN(std::shared_ptr<Engine> engine, flags.load(context, stop, options));
    if (engine->model_id() != saved.model_id) {
      return fail(invalid_input(fmt::format("the answer is of the model {}, this is {}",
                                            saved.model_id, engine->model_id())));
    }
    CYB_ASSIGN(const Json now, ask(saved, std::move(engine), stop));
    return report(context, saved, now);
  }

 private:
  static constexpr std::uint32_t kAnswers = 16;

  static Result<Json> ask(const Saved& saved, std::shared_ptr<Engine> engine,
                          const std::stop_token& stop) {
    http::Request request;
    request.method = "POST";
    request.target = saved.path;
    request.body = saved.request.dump();
    const auto exchange = std::make_shared<RecordedExchange>(std::move(request));
    http::WorkerPool workers(1, 16);
    SchedulerOptions scheduler;
    scheduler.max_running = kAnswers;
    server::Service service(ModelShelf::of(std::move(engine), "model", scheduler), {}, workers);
    service.handle(exchange);
    const bool whole = exchange->wait(stop);
    workers.stop();
    service.stop();
    if (!whole) return fail(cancelled(0));
    Json answer = Json::parse(exchange->response().body, nullptr, false);
    if (exchange->response().status != 200) {
      return fail(
          invalid_input(fmt::format("the request is refused now ({}): {}",
                                    exchange->response().status, exchange->response().body)));
    }
    return answer;
  }

  int report(Context& context, const Saved& saved, const Json& now) const {
    const Json patch = Json::diff(settled(saved.response), settled(now));
    const bool same = patch.empty();
    Json difference;
    if (!same) {
      const Json::json_pointer at(patch[0]["path"].get<std::string>());
      const Json before = settled(saved.response), after = settled(now);
      difference = {{"at", patch[0]["path"]},
                    {"saved", before.contains(at) ? before[at] : Json()},
                    {"now", after.contains(at) ? after[at] : Json()}};
    }
    if (json_) {
      context.output.line(
          Json{{"same", same}, {"difference", difference}, {"response", now}}.dump());
    } else if (same) {
      context.output.line("the same answer, bit for bit");
    } else {
      context.output.line(fmt::format("another answer: {} was {}, is {}",
                                      difference["at"].get<std::string>(),
                                      difference["saved"].dump(), difference["now"].dump()));
    }
    return same ? kExitOk : kExitTestFailed;
  }

  std::string file_;
  std::optional<std::string> model_;
  ModelFlags flags_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_replay_command() {
  return std::make_unique<ReplayCommand>();
}

}  // namespace cyb::cli
