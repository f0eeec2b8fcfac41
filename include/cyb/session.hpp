// Session: a conversation on a model; answers stream through a callback.
#pragma once

#include <cyb/model.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cyb {
inline namespace v1 {

struct Message {
  std::string role, content;
};

/// A piece of the answer, whole UTF-8. Return true to end the answer.
using OnText = std::function<bool(std::string_view text)>;

struct AnswerOptions {
  std::uint32_t max_tokens = 0;  // 0: to a stop or a full context
  std::optional<double> temperature{}, top_p{}, min_p{}, repetition_penalty{};
  std::optional<std::uint32_t> top_k{};
  std::uint64_t seed = 0;  // 0: a new one each time
  std::optional<std::uint32_t> logprobs{};
  std::vector<std::string> stop{};
  OnText on_text{};
  // What is not set is the model's own or off; the meanings are those of docs/sampling.md.
  std::optional<double> temperature_range{}, temperature_exponent{}, typical_p{}, top_n_sigma{};
  std::optional<double> xtc_probability{}, xtc_threshold{}, presence_penalty{}, frequency_penalty{};
  std::optional<double> dry_multiplier{}, dry_base{}, mirostat_tau{}, mirostat_eta{};
  std::optional<std::uint32_t> penalty_last_n{}, dry_allowed_length{}, dry_last_n{};
  std::optional<std::vector<std::string>> dry_breakers{};
  std::vector<cyb_logit_bias> logit_bias{};
  std::string samplers{};           // "temperature,top_p": these only, in this order
  std::uint32_t row = 0;            // number of the answer: random numbers of its own
  std::string overflow{};           // "error", "truncate" or "shift"
  std::uint32_t lookup_tokens = 0;  // guesses from the text so far; the answer is the same
  std::optional<Model> draft{};     // a smaller model that guesses
  std::uint32_t draft_tokens = 4;
};

/// A finished answer. Views live as long as it.
class Answer {
 public:
  explicit Answer(cyb_answer* answer) : answer_(answer, &cyb_answer_free) {}

  std::string_view text() const { return cyb_answer_text(answer_.get()); }
  std::span<const std::int32_t> tokens() const {
    std::size_t n = 0;
    const std::int32_t* ids = cyb_answer_tokens(answer_.get(), &n);
    return {ids, n};
  }
  /// "stop", "length" or "cancelled".
  std::string_view finish_reason() const { return cyb_answer_finish_reason(answer_.get()); }
  std::uint64_t seed() const { return cyb_answer_seed(answer_.get()); }
  /// The object of `cyb-llm run --json`: timings, log-probabilities and all.
  std::string_view json() const { return cyb_answer_json(answer_.get()); }

 private:
  std::unique_ptr<cyb_answer, decltype(&cyb_answer_free)> answer_;
};

/// One call at a time; another thread may call cancel().
class Session {
 public:
  static Result<Session> create(const Model& model) {
    cyb_session* session = nullptr;
    if (cyb_error* error = cyb_session_new(model.handle(), &session))
      return std::unexpected(Error(error));
    return Session(session);
  }

  /// By the model's chat template. What the session holds already is not computed again.
  Result<Answer> chat(std::span<const Message> messages, const AnswerOptions& options = {}) {
    std::vector<cyb_message> list;
    for (const Message& m : messages) list.push_back({m.role.c_str(), m.content.c_str()});
    return call(options, [&](const cyb_answer_options* c, cyb_answer** out) {
      return cyb_chat(session_.get(), list.data(), list.size(), c, out);
    });
  }
  Result<Answer> chat(const std::string& text, const AnswerOptions& options = {}) {
    const Message message{"user", text};
    return chat(std::span(&message, 1), options);
  }
  /// Continues a text; control tokens in it are read as such.
  Result<Answer> complete(const std::string& text, const AnswerOptions& options = {}) {
    return call(options, [&](const cyb_answer_options* c, cyb_answer** out) {
      return cyb_complete(session_.get(), text.c_str(), c, out);
    });
  }
  /// Continues token ids.
  Result<Answer> complete(std::span<const std::int32_t> ids, const AnswerOptions& options = {}) {
    return call(options, [&](const cyb_answer_options* c, cyb_answer** out) {
      return cyb_complete_ids(session_.get(), ids.data(), ids.size(), c, out);
    });
  }

  Result<void> reset() {
    if (cyb_error* error = cyb_session_reset(session_.get())) return std::unexpected(Error(error));
    return {};
  }
  /// The tokens with their K and V, to a file and back; how many were restored.
  Result<void> save(const std::string& path) {
    if (cyb_error* error = cyb_session_save(session_.get(), path.c_str()))
      return std::unexpected(Error(error));
    return {};
  }
  Result<std::uint32_t> restore(const std::string& path) {
    std::uint32_t n_tokens = 0;
    if (cyb_error* error = cyb_session_restore(session_.get(), path.c_str(), &n_tokens))
      return std::unexpected(Error(error));
    return n_tokens;
  }
  void cancel() { cyb_session_cancel(session_.get()); }

 private:
  explicit Session(cyb_session* session) : session_(session, &cyb_session_free) {}

  template <class Function>
  Result<Answer> call(const AnswerOptions& options, Function&& function) {
    constexpr double kOwn = std::numeric_limits<double>::quiet_NaN();
    std::vector<const char*> stops;
    for (const std::string& stop : options.stop) stops.push_back(stop.c_str());
    cyb_answer_options c;
    cyb_answer_options_init(&c);
    c.max_tokens = options.max_tokens;
    c.temperature = options.temperature.value_or(kOwn);
    c.top_p = options.top_p.value_or(kOwn);
    c.min_p = options.min_p.value_or(kOwn);
    c.repetition_penalty = options.repetition_penalty.value_or(kOwn);
    c.top_k = options.top_k ? static_cast<std::int64_t>(*options.top_k) : -1;
    c.seed = options.seed;
    c.logprobs = options.logprobs ? static_cast<std::int32_t>(*options.logprobs) : -1;
    c.stops = stops.data();
    c.n_stops = stops.size();
    c.on_text = options.on_text ? &call_text : nullptr;
    c.user = const_cast<OnText*>(&options.on_text);
    std::vector<const char*> breakers{nullptr};  // never null itself: no breakers are a value
    if (options.dry_breakers) {
      breakers.clear();
      breakers.reserve(options.dry_breakers->size() + 1);
      for (const std::string& text : *options.dry_breakers) breakers.push_back(text.c_str());
      breakers.push_back(nullptr);
      c.dry_breakers = breakers.data();
      c.n_dry_breakers = breakers.size() - 1;
    }
    fill_samplers(options, c);
    cyb_answer* answer = nullptr;
    if (cyb_error* error = function(&c, &answer)) return std::unexpected(Error(error));
    return Answer(answer);
  }
  static void fill_samplers(const AnswerOptions& options, cyb_answer_options& c) {
    const auto set = [](const std::optional<double>& from, double& to) { to = from.value_or(to); };
    set(options.temperature_range, c.temperature_range);
    set(options.temperature_exponent, c.temperature_exponent);
    set(options.typical_p, c.typical_p);
    set(options.top_n_sigma, c.top_n_sigma);
    set(options.xtc_probability, c.xtc_probability);
    set(options.xtc_threshold, c.xtc_threshold);
    set(options.presence_penalty, c.presence_penalty);
    set(options.frequency_penalty, c.frequency_penalty);
    set(options.dry_multiplier, c.dry_multiplier);
    set(options.dry_base, c.dry_base);
    set(options.mirostat_tau, c.mirostat_tau);
    set(options.mirostat_eta, c.mirostat_eta);
    if (options.penalty_last_n) c.penalty_last_n = *options.penalty_last_n;
    if (options.dry_allowed_length) c.dry_allowed_length = *options.dry_allowed_length;
    if (options.dry_last_n) c.dry_last_n = *options.dry_last_n;
    c.logit_bias = options.logit_bias.data();
    c.n_logit_bias = options.logit_bias.size();
    c.samplers = options.samplers.empty() ? nullptr : options.samplers.c_str();
    c.row = options.row;
    c.overflow = options.overflow.empty() ? nullptr : options.overflow.c_str();
    c.lookup_tokens = options.lookup_tokens;
    c.draft = options.draft ? options.draft->handle() : nullptr;
    c.draft_tokens = options.draft_tokens;
  }
  static int call_text(void* user, const char* text, std::size_t n_bytes) {
    return (*static_cast<const OnText*>(user))(std::string_view(text, n_bytes)) ? 1 : 0;
  }

  std::unique_ptr<cyb_session, decltype(&cyb_session_free)> session_;
};

}  // namespace v1
}  // namespace cyb
