// Events come from the scheduler's thread: a chunk is a few strings there, the JSON of a whole
// answer is left to the workers.
#include "server/answer_job.hpp"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "server/openai_json.hpp"

namespace cyb::server {
namespace {

using Clock = std::chrono::steady_clock;

std::string event(const std::string& json) {
  return "data: " + json + "\n\n";
}

class AnswerJob : public std::enable_shared_from_this<AnswerJob> {
 public:
  AnswerJob(Service& service, std::shared_ptr<Call> call, const CompletionRequest& request)
      : service_(service),
        call_(std::move(call)),
        stream_(request.stream),
        include_usage_(request.include_usage),
        choices_(request.generate.n_answers) {
    frame_.chat = request.chat;
    frame_.id = service.new_id(request.chat ? "chatcmpl-" : "cmpl-");
    frame_.model = service.served().name;
    frame_.fingerprint = service.fingerprint();
    frame_.created = unix_time();
    frame_.usage_to_come = request.include_usage;
    frame_.logprobs = request.logprobs;
    frame_.tokenizer = service.served().engine.tokenizer();
    for (Choice& choice : choices_) choice.logprobs = LogprobsJson(frame_);
  }

  void start(CompletionRequest request) {
    const std::size_t n_prompt = request.generate.prompt.size();
    const bool chat = request.chat;
    call_->user = std::move(request.user);
    call_->prompt_tokens = n_prompt;
    const auto self = shared_from_this();
    RequestEvents events{
        [self](const AnswerDelta& delta) { self->on_delta(delta); },
        [self](Result<std::vector<GenerateResult>> results) { self->on_done(std::move(results)); }};
    const auto id = service_.scheduler().submit(std::move(request.generate), std::move(events));
    if (!id) {
      return service_.respond(*call_, submit_error(id.error(), n_prompt, service_.served(), chat));
    }
    call_->exchange->on_gone(
        [scheduler = &service_.scheduler(), number = *id] { scheduler->cancel(number); });
    if (done_.load()) call_->exchange->on_gone({});
  }

 private:
  struct Choice {
    LogprobsJson logprobs{AnswerFrame{}};
    Clock::time_point last{};
    std::uint32_t n_tokens = 0;
    bool begun = false;
  };

  void observe(Choice& choice, const AnswerDelta& delta) {
    const Clock::time_point now = Clock::now();
    if (call_->first_token_ms == 0) {
      call_->first_token_ms = call_->seconds() * 1e3;
      service_.metrics().observe_first_token(call_->seconds());
    }
    if (choice.last != Clock::time_point{}) {
      const double seconds = std::chrono::duration<double>(now - choice.last).count();
      service_.metrics().observe_tokens(seconds, delta.n_tokens - choice.n_tokens);
    }
    choice.last = now;
    choice.n_tokens = delta.n_tokens;
  }

  void on_delta(const AnswerDelta& delta) {
    const bool lost = delta.over && delta.finish_reason == FinishReason::kCancelled;
    Choice& choice = choices_[std::min<std::size_t>(delta.index, choices_.size() - 1)];
    if (delta.n_tokens > choice.n_tokens) observe(choice, delta);
    if (!stream_ || lost) return;
    std::string out;
    if (frame_.chat && !choice.begun) out += event(role_chunk(frame_, delta.index));
    choice.begun = true;
    if (!delta.text.empty() || !delta.tokens.empty()) {
      const std::string logprobs = frame_.logprobs ? choice.logprobs.next(delta.tokens) : "";
      out += event(text_chunk(frame_, delta.index, delta.text, logprobs));
    }
    if (delta.over && ++n_over_ < choices_.size()) {
      out += event(finish_chunk(frame_, delta.index, delta.finish_reason, {}));
    } else if (delta.over) {  // the last of all: it carries the recipe, which on_done() brings
      last_index_ = delta.index;
      last_reason_ = delta.finish_reason;
    }
    send(std::move(out));
  }

  void send(std::string text) {
    if (begun_) {
      call_->exchange->write(text);
      return;
    }
    begun_ = true;
    call_->exchange->begin({200,
                            "text/event-stream",
                            std::move(text),
                            {{"Cache-Control", "no-store"}, {"X-Request-Id", call_->id}}});
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
      self->service_.respond_json(*self->call_, answer_object(self->frame_, *shared));
    };
    if (!service_.workers().post(answer)) answer();
  }

  void end_stream(const std::vector<GenerateResult>& results) {
    std::string out =
        event(finish_chunk(frame_, last_index_, last_reason_, recipe_json(results.front())));
    if (include_usage_) out += event(usage_chunk(frame_, results));
    send(out + "data: [DONE]\n\n");
    call_->exchange->end();
    service_.record(*call_, 200);
  }

  /// In the middle of a stream the error is its last event, without [DONE].
  void fail(const ApiError& error) {
    if (!begun_) return service_.respond(*call_, error);
    call_->exchange->write(event(error_json(error)));
    call_->exchange->end();
    service_.record(*call_, error.status);
  }

  Service& service_;
  std::shared_ptr<Call> call_;
  AnswerFrame frame_;
  bool stream_, include_usage_, begun_ = false;
  std::vector<Choice> choices_;
  std::size_t n_over_ = 0;
  std::uint32_t last_index_ = 0;
  FinishReason last_reason_ = FinishReason::kStop;
  std::atomic<bool> done_{false};
};

}  // namespace

void start_answer(Service& service, const std::shared_ptr<Call>& call, CompletionRequest request) {
  const auto job = std::make_shared<AnswerJob>(service, call, request);
  job->start(std::move(request));
}

}  // namespace cyb::server
