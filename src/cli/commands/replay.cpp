// replay: the request of an answer that a server gave, again, and whether the answer is the same.
#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "cli/command.hpp"
#include "cli/commands/replay_saved.hpp"
#include "cli/json.hpp"
#include "cli/model_flags.hpp"
#include "cli/text_input.hpp"
#include "cli/usage.hpp"
#include "server/request_recipe.hpp"
#include "server/service.hpp"

namespace cyb::cli {
namespace {

constexpr const char* kExamples = R"(Examples:
  cyb-llm replay answer.json
  cyb-llm replay answers.jsonl ./smollm2.gguf --threads 1
  jq -n --slurpfile q request.json --slurpfile a answer.json '{request: $q[0], response: $a[0]}' | cyb-llm replay -
  jq -n --slurpfile q request.json --rawfile s answer.sse '{request: $q[0], stream: $s}' | cyb-llm replay -
FILE is one JSON object, or one a line: `request`, the body that was sent; `response`, the answer, or `stream`, the text of a streamed one;
`path`, the route (/v1/chat/completions, the default, or /v1/completions). The page's "Download" writes such a file.
The recipe in the answer (`cyb_llm`) names the model, which must be in the store unless MODEL is given, and path, backend, KV type and context,
which need no option here; adapters do (--lora). First the hash of the request is made again: another one is error R03, which says what is not as it was.
Then the request is answered. Compared are texts, reasons, tool calls, numbers of tokens and every log-probability, not ids and times.
Exit code 0: the same; 6: the first difference is printed.)";

/// What differs from one run to the next, in any object of an answer.
constexpr std::string_view kVolatile[] = {"id",
                                          "created",
                                          "created_at",
                                          "completed_at",
                                          "call_id",
                                          "item_id",
                                          "model",
                                          "prompt_tokens_details",
                                          "completion_tokens_details",
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

Error replay_error(std::string code, const SavedAnswer& saved, std::string_view what) {
  return {ErrorKind::kInvalidInput, std::move(code), fmt::format("{}: {}", saved.where, what)};
}

/// What of the recipe is an option of `run`, where it was not given: the server's own.
void take_recipe(const Json& recipe, const ModelFlags& flags, EngineOptions& options) {
  const auto text = [&](const char* name) {
    const auto found = recipe.find(name);
    return found != recipe.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const std::string numerics = text("numerics");
  const auto has = [&](std::string_view word) { return numerics.find(word) != std::string::npos; };
  if (options.path == "auto" && !text("path").empty()) options.path = text("path");
  if (options.backend == "auto" && !text("backend").empty()) options.backend = text("backend");
  options.exact = options.exact || has(", exact");
  options.fuse = options.fuse && !has(", not fused");
  options.rings = has(", rings") || numerics.empty();
  if (!flags.has_kv_type()) options.kv_dtype = find_dtype(text("kv"));
  const auto context = recipe.find("context_tokens");
  if (flags.has_context() || context == recipe.end() || !context->is_number_unsigned()) return;
  const auto n = context->get<std::uint64_t>();
  if (n <= UINT32_MAX) options.ctx_tokens = static_cast<std::uint32_t>(n);
}

/// The member that says most of why another hash came out.
std::string why_other(const Json& before, const Json& now) {
  for (const char* name : {"numerics", "template", "sampler", "context_tokens"}) {
    const auto old = before.find(name), is = now.find(name);
    if (old == before.end() || is == now.end() || *old == *is) continue;
    return fmt::format("{} was {}, is {}", name, old->dump(), is->dump());
  }
  return "model, numerics and samplers are the same, so it is not the request that was answered "
         "(its messages, seed, number of answers, limit, stop texts or grammar)";
}

class ReplayCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.positional("FILE", file_, "Request and answer (-: standard input)");
    options.optional_positional("MODEL", model_,
                                "A model as in `run` (default: the recipe's, from the store)");
    flags_.declare_context(options);
    flags_.declare_engine(options);
    options.flag("--json", json_,
                 "One JSON object for each: {\"same\", \"request_hash\", \"difference\": {\"at\", "
                 "\"saved\", \"now\"} or null, \"response\"}");
    options.examples(kExamples);
  }

  bool wants_json() const noexcept override { return json_; }

  Result<int> run(Context& context) override {
    const std::stop_token stop = context.interrupts.begin();
    CYB_TRY(flags_.check_kv());
    CYB_TRY(Output::check_writable());
    CYB_ASSIGN(const std::string text, read_text(file_, context.interrupts.wake_fd()));
    CYB_ASSIGN(const std::vector<SavedAnswer> all, read_saved_answers(text, file_));
    bool same = true;
    for (const SavedAnswer& saved : all) {
      CYB_TRY(load_for(context, saved, stop));
      CYB_ASSIGN(const Json now, ask(saved, stop));
      same = report(context, saved, now, all.size() > 1) && same;
    }
    return same ? kExitOk : kExitTestFailed;
  }

 private:
  static constexpr std::uint32_t kAnswers = 16;

  /// The engine of the answer before serves where it is of the same model and numerics.
  Result<void> load_for(Context& context, const SavedAnswer& saved, const std::stop_token& stop) {
    const Json& recipe = saved.recipe();
    const std::string key =
        fmt::format("{} {} {}", saved.model_id, recipe.value("numerics", Json()).dump(),
                    recipe.value("context_tokens", Json()).dump());
    if (engine_ != nullptr && key == engine_key_) return {};
    engine_.reset();
    ModelFlags flags = flags_;
    flags.set_name(model_.value_or(saved.model_id));
    EngineOptions options = flags.engine_options();
    take_recipe(recipe, flags, options);
    options.max_sequences = kAnswers;
    options.max_outputs = std::max(options.max_outputs, kAnswers);
    CYB_ASSIGN(engine_, flags.load(context, stop, options));
    if (engine_->model_id() != saved.model_id) {
      return fail(replay_error("R02", saved,
                               fmt::format("the answer is of the model {}, this is {}",
                                           saved.model_id, engine_->model_id())));
    }
    engine_key_ = key;
    return {};
  }

  /// Errors: R03 where the request, as this program and these options understand it, is not the
  /// one that was answered; R04 where it is refused.
  Result<void> check_hash(const SavedAnswer& saved, const std::string& body) const {
    if (saved.hash.empty()) {
      return fail(replay_error("R01", saved, "the recipe has no `request_hash`"));
    }
    server::GrammarCache grammars;
    const server::Served served{*engine_, kModel, kAnswers, &grammars};
    const auto parsed = server::parse_body(body);
    if (!parsed) return fail(replay_error("R04", saved, parsed.error().message));
    const auto request = saved.path == "/v1/completions"
                             ? server::read_completion_request(*parsed, served)
                             : server::read_chat_request(*parsed, served);
    if (!request) {
      return fail(replay_error(
          "R04", saved, fmt::format("the request is refused now: {}", request.error().message)));
    }
    const Json now =
        Json::parse("{" + server::request_recipe(*engine_, *request) + "}", nullptr, false);
    const std::string hash = now.value("request_hash", "");
    if (hash == saved.hash) return {};
    return fail(replay_error("R03", saved,
                             fmt::format("the request's hash is {} now, the answer says {}: {}",
                                         hash, saved.hash, why_other(saved.recipe(), now))));
  }

  Result<Json> ask(const SavedAnswer& saved, const std::stop_token& stop) const {
    http::Request request;
    request.method = "POST";
    request.target = saved.path;
    request.body = saved.request.dump(-1, ' ', false, Json::error_handler_t::replace);
    CYB_TRY(check_hash(saved, request.body));
    const auto exchange = std::make_shared<RecordedExchange>(std::move(request));
    http::WorkerPool workers(1, 16);
    SchedulerOptions scheduler;
    scheduler.max_running = kAnswers;
    server::Service service(ModelShelf::of(engine_, kModel, scheduler), {}, workers);
    service.handle(exchange);
    const bool whole = exchange->wait(stop);
    workers.stop();
    service.stop();
    if (!whole) return fail(cancelled(0));
    Json answer = Json::parse(exchange->response().body, nullptr, false);
    if (exchange->response().status != 200) {
      return fail(
          replay_error("R04", saved,
                       fmt::format("the request is refused now ({}): {}",
                                   exchange->response().status, exchange->response().body)));
    }
    if (!saved.response.contains("usage")) answer.erase("usage");  // a stream that was not asked
    return answer;
  }

  bool report(Context& context, const SavedAnswer& saved, const Json& now, bool several) const {
    const Json before = settled(saved.response), after = settled(now);
    const Json patch = Json::diff(before, after);
    const bool same = patch.empty();
    Json difference;
    if (!same) {
      const Json::json_pointer at(patch[0]["path"].get<std::string>());
      difference = {{"at", patch[0]["path"]},
                    {"saved", before.contains(at) ? before[at] : Json()},
                    {"now", after.contains(at) ? after[at] : Json()}};
    }
    if (json_) {
      Json line = {{"same", same},
                   {"request_hash", saved.hash},
                   {"difference", difference},
                   {"response", now}};
      if (several) line["at"] = saved.where;
      context.output.line(line.dump());
      return same;
    }
    const std::string where = several ? saved.where + ": " : "";
    context.output.line(same ? where + "the same answer, bit for bit"
                             : fmt::format("{}another answer: {} was {}, is {}", where,
                                           difference["at"].get<std::string>(),
                                           difference["saved"].dump(), difference["now"].dump()));
    return same;
  }

  static constexpr const char* kModel = "model";

  std::shared_ptr<Engine> engine_;
  std::string engine_key_;
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
