// Events come from the scheduler's thread: a chunk is a few strings there, the JSON of a whole
// answer is left to the workers.
#include "server/answer_job.hpp"

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>
#include <vector>

#include "server/model_wait.hpp"
#include "server/request_recipe.hpp"
#include "server/split_choice.hpp"

namespace cyb::server {
namespace {

using Clock = std::chrono::steady_clock;

class AnswerJob : public std::enable_shared_from_this<AnswerJob> {
 public:
  AnswerJob(Service& service, std::shared_ptr<Call> call, const CompletionRequest& request,
            std::unique_ptr<AnswerShape> shape)
      : service_(service),
        call_(std::move(call)),
        shape_(std::move(shape)),
        split_(request.split),
        stream_(request.stream) {
    choices_.resize(request.generate.n_answers, Choice{SplitChoice(split_, new_id())});
  }

  void start(CompletionRequest request) {
    const std::size_t n_prompt = request.generate.prompt.size();
    const std::string_view field = request.prompt_field;
    call_->user = std::move(request.user);
    call_->prompt_tokens = n_prompt;
    const auto self = shared_from_this();
    RequestEvents events{
        [self](const AnswerDelta& delta) { self->on_delta(delta); },
        [self](Result<std::vector<GenerateResult>> results) { self->on_done(std::move(results)); }};
    const ModelLease model = call_->model;  // the answer may be over before this returns
    Scheduler& scheduler = model.scheduler();
    const auto id = scheduler.submit(std::move(request.generate), std::move(events));
    if (!id) {
      return service_.respond(*call_,
                              submit_error(id.error(), n_prompt, service_.served(*call_), field));
    }
    call_->exchange->on_gone([&scheduler, number = *id] { scheduler.cancel(number); });
    if (done_.load()) call_->exchange->on_gone({});
  }

 private:
  struct Choice {
    SplitChoice split;
    Clock::time_point last{};
    std::uint32_t n_tokens = 0;
  };

  void observe(Choice& choice, const AnswerDelta& delta) {
    const Clock::time_point now = Clock::now();
    if (call_->first_token_ms == 0) {
      call_->first_token_ms = call_->seconds() * 1e3;
      service_.metrics().observe_first_token(call_->model_name, call_->seconds());
    }
    if (choice.last != Clock::time_point{}) {
      const double seconds = std::chrono::duration<double>(now - choice.last).count();
      service_.metrics().observe_tokens(call_->model_name, seconds,
                                        delta.n_tokens - choice.n_tokens);
    }
    choice.last = now;
    choice.n_tokens = delta.n_tokens;
  }

  void on_delta(const AnswerDelta& delta) {
    const bool lost = delta.over && delta.finish_reason == FinishReason::kCancelled;
    Choice& choice = choices_[std::min<std::size_t>(delta.index, choices_.size() - 1)];
    if (delta.n_tokens > choice.n_tokens) observe(choice, delta);
    if (!stream_ || lost) return;
    std::string out = begun_ ? "" : shape_->begin();
    auto tokens = delta.tokens;  // with the first piece
    choice.split.push(delta.text, delta.over, delta.finish_reason);
    choice.split.visit([&](AnswerPiece piece) {
      piece.index = delta.index;
      piece.tokens = std::exchange(tokens, {});
      out += shape_->piece(piece);
    });
    if (delta.over) {
      out += shape_->finish({.index = delta.index,
                             .reason = delta.finish_reason,
                             .tool_calls = choice.split.has_calls()});
    }
    send(std::move(out));
  }

  SplitChoice::NewId new_id() {
    return [service = &service_](std::string_view beginning) { return service->new_id(beginning); };
  }

  /// The choices as a whole.
  std::vector<Answer> answers_of(std::span<const GenerateResult> results) {
    std::vector<Answer> out;
    for (const GenerateResult& result : results) {
      out.push_back(split_answer(split_, new_id(), result));
    }
    return out;
  }

  void send(std::string text) {
    if (begun_) {
      if (!text.empty()) call_->exchange->write(text);
      return;
    }
    begun_ = true;
    begin_stream(*call_, shape_->stream_type(), std::move(text));
  }

  void on_done(Result<std::vector<GenerateResult>> results) {
    done_ = true;
    call_->exchange->on_gone({});
    if (!results) return fail(api_error(results.error()));
    for (const GenerateResult& result : *results) call_->answer_tokens += result.tokens.size();
    if (std::ranges::any_of(*results, [](const GenerateResult& result) {
          return result.finish_reason == FinishReason::kCancelled;
        })) {
      // Nobody may be there to read it; it is 499 in the log and the counters.
      return fail({499, "The request was cancelled.", "cancelled"});
    }
    if (stream_) return end_stream(*results);
    const auto shared = std::make_shared<std::vector<GenerateResult>>(*std::move(results));
    const auto answer = [self = shared_from_this(), shared] {
      self->service_.respond_json(*self->call_, self->shape_->whole(self->answers_of(*shared)));
    };
    if (!service_.workers().post(answer)) answer();
  }

  void end_stream(const std::vector<GenerateResult>& results) {
    std::string last = shape_->end(answers_of(results));
    call_->model.reset();
    send(std::move(last));
    call_->exchange->end();
    service_.record(*call_, 200);
  }

  void fail(const ApiError& error) {
    if (!begun_) return service_.respond(*call_, error);
    call_->model.reset();
    call_->exchange->write(shape_->error(error));
    call_->exchange->end();
    service_.record(*call_, error.status);
  }

  Service& service_;
  std::shared_ptr<Call> call_;
  std::unique_ptr<AnswerShape> shape_;
  SplitOptions split_;
  bool stream_, begun_ = false;
  std::vector<Choice> choices_;
  std::atomic<bool> done_{false};
};

}  // namespace

void start_answer(Service& service, const std::shared_ptr<Call>& call, CompletionRequest request,
                  std::unique_ptr<AnswerShape> shape) {
  if (request.generate.priority > 0) {
    if (const auto refused = service.access().check_admin(call->request()))
      return service.respond(*call, *refused);
  }
  if (call->key_number > 0) {
    request.generate.tenant = "key " + std::to_string(call->key_number);
  }
  const auto job = std::make_shared<AnswerJob>(service, call, request, std::move(shape));
  job->start(std::move(request));
}

AnswerFrame answer_frame(Service& service, const Call& call, const CompletionRequest& request,
                         std::string_view id_prefix) {
  const Engine& engine = call.model.engine();
  return {.chat = request.chat,
          .id = service.new_id(id_prefix),
          .model = call.model.name(),
          .fingerprint = fingerprint(engine),
          .recipe = request_recipe(engine, request),
          .created = unix_time(),
          .n_choices = request.generate.n_answers,
          .usage_wanted = request.include_usage,
          .logprobs = request.logprobs,
          .tokenizer = engine.tokenizer()};
}

}  // namespace cyb::server
