// cyb.h: sessions and answers.
#include <cyb/cyb.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "api/answer_json.hpp"
#include "api/handles.hpp"
#include "api/text_check.hpp"
#include "runtime/chat.hpp"
#include "runtime/session_file.hpp"

namespace cyb::api {
namespace {

std::optional<double> unless_nan(double value) {
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

Result<void> take_count(int64_t given, const char* name, std::optional<std::uint32_t>& to) {
  if (given < 0) return {};
  if (given > std::numeric_limits<std::uint32_t>::max())
    return fail(invalid_input(std::string(name) + " is out of range"));
  to = static_cast<std::uint32_t>(given);
  return {};
}

Result<void> take_samplers(const cyb_answer_options& c, SamplingOverrides& out) {
  out.temperature_range = unless_nan(c.temperature_range);
  out.temperature_exponent = unless_nan(c.temperature_exponent);
  out.typical_p = unless_nan(c.typical_p);
  out.top_n_sigma = unless_nan(c.top_n_sigma);
  out.xtc_probability = unless_nan(c.xtc_probability);
  out.xtc_threshold = unless_nan(c.xtc_threshold);
  out.presence_penalty = unless_nan(c.presence_penalty);
  out.frequency_penalty = unless_nan(c.frequency_penalty);
  out.dry_multiplier = unless_nan(c.dry_multiplier);
  out.dry_base = unless_nan(c.dry_base);
  out.mirostat_tau = unless_nan(c.mirostat_tau);
  out.mirostat_eta = unless_nan(c.mirostat_eta);
  CYB_TRY(take_count(c.penalty_last_n, "penalty_last_n", out.penalty_last_n));
  CYB_TRY(take_count(c.dry_allowed_length, "dry_allowed_length", out.dry_allowed_length));
  CYB_TRY(take_count(c.dry_last_n, "dry_last_n", out.dry_last_n));
  if (c.dry_breakers != nullptr) out.dry_breakers.emplace();
  for (std::size_t i = 0; c.dry_breakers != nullptr && i < c.n_dry_breakers; ++i) {
    CYB_TRY(need(c.dry_breakers[i], "a sequence breaker"));
    CYB_TRY(check_utf8(c.dry_breakers[i], "a sequence breaker"));
    out.dry_breakers->emplace_back(c.dry_breakers[i]);
  }
  if (c.n_logit_bias != 0) CYB_TRY(need(c.logit_bias, "logit_bias"));
  for (std::size_t i = 0; i < c.n_logit_bias; ++i)
    out.logit_bias.push_back({c.logit_bias[i].id, {}, c.logit_bias[i].bias});
  if (c.samplers == nullptr) return {};
  CYB_ASSIGN(out.order, parse_samplers(c.samplers));
  return {};
}

Result<void> take_ways(const cyb_answer_options& c, GenerateOptions& out) {
  out.row = c.row;
  out.speculation.lookup_tokens = c.lookup_tokens;
  out.speculation.draft_tokens = c.draft_tokens;
  if (c.draft != nullptr) out.speculation.draft = c.draft->engine;
  if (c.overflow == nullptr) return {};
  for (const Overflow mode : {Overflow::kError, Overflow::kTruncate, Overflow::kShift}) {
    out.overflow = mode;
    if (overflow_name(mode) == c.overflow) return {};
  }
  return fail(invalid_input("overflow is none of error, truncate, shift"));
}

Result<GenerateOptions> to_options(const cyb_answer_options& c) {
  GenerateOptions options;
  options.max_tokens = c.max_tokens;
  options.sampling.temperature = unless_nan(c.temperature);
  options.sampling.top_p = unless_nan(c.top_p);
  options.sampling.min_p = unless_nan(c.min_p);
  options.sampling.repetition_penalty = unless_nan(c.repetition_penalty);
  if (c.top_k > std::numeric_limits<std::uint32_t>::max())
    return fail(invalid_input("top_k is out of range"));
  if (c.top_k >= 0) options.sampling.top_k = static_cast<std::uint32_t>(c.top_k);
  CYB_TRY(take_samplers(c, options.sampling));
  CYB_TRY(take_ways(c, options));
  if (c.logprobs >= 0) options.logprobs = static_cast<std::uint32_t>(c.logprobs);
  options.seed = c.seed;
  if (c.n_stops != 0) CYB_TRY(need(c.stops, "stops"));
  for (std::size_t i = 0; i < c.n_stops; ++i) {
    CYB_TRY(need(c.stops[i], "a stop"));
    if (*c.stops[i] == '\0') return fail(invalid_input("a stop is the empty text"));
    CYB_TRY(check_utf8(c.stops[i], "a stop"));
    options.stop.emplace_back(c.stops[i]);
  }
  return options;
}

/// Generates from `prompt` into a new answer handle.
Result<void> answer_into(cyb_session* session, std::span<const std::int32_t> prompt,
                         const cyb_answer_options* given, cyb_answer** answer) {
  CYB_TRY(need(answer, "answer"));
  CYB_ASSIGN(const cyb_answer_options c, read_options(given, &cyb_answer_options_init));
  CYB_ASSIGN(GenerateOptions options, to_options(c));
  options.cancel = session->begin();
  TextSink sink;
  if (c.on_text != nullptr) {
    sink = [&](std::string_view text) {
      if (c.on_text(c.user, text.data(), text.size()) != 0) session->stop();
    };
  }
  CYB_ASSIGN(GenerateResult result, generate(session->session, prompt, options, sink));
  auto handle = std::make_unique<cyb_answer>();
  handle->json = answer_json(result, options.logprobs.has_value());
  handle->result = std::move(result);
  *answer = handle.release();
  return {};
}

}  // namespace
}  // namespace cyb::api

using namespace cyb;  // NOLINT(google-build-using-namespace): this file only defines C functions
                      // below
using namespace cyb::api;  // NOLINT(google-build-using-namespace)

extern "C" {

void cyb_answer_options_init(cyb_answer_options* options) {
  constexpr double kOwn = std::numeric_limits<double>::quiet_NaN();
  *options = cyb_answer_options{};
  options->struct_size = sizeof(*options);
  options->temperature = options->top_p = options->min_p = options->repetition_penalty = kOwn;
  options->top_k = -1;
  options->logprobs = -1;
  options->temperature_range = options->temperature_exponent = kOwn;
  options->typical_p = options->top_n_sigma = kOwn;
  options->xtc_probability = options->xtc_threshold = kOwn;
  options->presence_penalty = options->frequency_penalty = kOwn;
  options->dry_multiplier = options->dry_base = kOwn;
  options->mirostat_tau = options->mirostat_eta = kOwn;
  options->penalty_last_n = options->dry_allowed_length = options->dry_last_n = -1;
}

cyb_error* cyb_session_new(cyb_model* model, cyb_session** session) {
  return guarded([&]() -> Result<void> {
    CYB_TRY(need(model, "model"));
    CYB_TRY(need(session, "session"));
    *session = new cyb_session(model->engine);
    return {};
  });
}

void cyb_session_free(cyb_session* session) {
  delete session;
}

cyb_error* cyb_session_reset(cyb_session* session) {
  return guarded([&]() -> Result<void> {
    CYB_TRY(need(session, "session"));
    return session->session.reset();
  });
}

cyb_error* cyb_session_save(cyb_session* session, const char* path) {
  return guarded([&]() -> Result<void> {
    CYB_TRY(need(session, "session"));
    CYB_TRY(need(path, "path"));
    return save_session(session->session, path, {"api"});
  });
}

cyb_error* cyb_session_restore(cyb_session* session, const char* path, uint32_t* n_tokens) {
  return guarded([&]() -> Result<void> {
    CYB_TRY(need(session, "session"));
    CYB_TRY(need(path, "path"));
    CYB_ASSIGN(const RestoredSession restored, restore_session(session->session, path, "api"));
    if (n_tokens != nullptr) *n_tokens = restored.n_tokens;
    return {};
  });
}

void cyb_session_cancel(cyb_session* session) {
  if (session != nullptr) session->stop();
}

cyb_error* cyb_chat(cyb_session* session, const cyb_message* messages, size_t n_messages,
                    const cyb_answer_options* options, cyb_answer** answer) {
  return guarded([&]() -> Result<void> {
    CYB_TRY(need(session, "session"));
    CYB_TRY(need(messages, "messages"));
    std::vector<ChatMessage> list;
    for (std::size_t i = 0; i < n_messages; ++i) {
      CYB_TRY(need(messages[i].role, "a role"));
      CYB_TRY(need(messages[i].content, "a content"));
      CYB_TRY(check_utf8(messages[i].role, "a role"));
      CYB_TRY(check_utf8(messages[i].content, "a content"));
      list.push_back({messages[i].role, messages[i].content});
    }
    CYB_ASSIGN(const std::vector<std::int32_t> ids, encode_chat(session->session.engine(), list));
    return answer_into(session, ids, options, answer);
  });
}

cyb_error* cyb_complete(cyb_session* session, const char* text, const cyb_answer_options* options,
                        cyb_answer** answer) {
  return guarded([&]() -> Result<void> {
    CYB_TRY(need(session, "session"));
    CYB_TRY(need(text, "text"));
    CYB_TRY(check_utf8(text, "text"));
    CYB_ASSIGN(const Tokenizer* tokenizer, session->session.engine().need_tokenizer());
    CYB_ASSIGN(const std::vector<std::int32_t> ids, encode_raw(*tokenizer, text));
    return answer_into(session, ids, options, answer);
  });
}

cyb_error* cyb_complete_ids(cyb_session* session, const int32_t* ids, size_t n_ids,
                            const cyb_answer_options* options, cyb_answer** answer) {
  return guarded([&]() -> Result<void> {
    CYB_TRY(need(session, "session"));
    CYB_TRY(need(ids, "ids"));
    return answer_into(session, std::span(ids, n_ids), options, answer);
  });
}

const char* cyb_answer_text(const cyb_answer* answer) {
  return answer->result.text.c_str();
}

const int32_t* cyb_answer_tokens(const cyb_answer* answer, size_t* n_tokens) {
  *n_tokens = answer->result.tokens.size();
  return answer->result.tokens.data();
}

const char* cyb_answer_finish_reason(const cyb_answer* answer) {
  return finish_reason_name(answer->result.finish_reason).data();  // of a literal: zero-terminated
}

uint64_t cyb_answer_seed(const cyb_answer* answer) {
  return answer->result.seed;
}
const char* cyb_answer_json(const cyb_answer* answer) {
  return answer->json.c_str();
}
void cyb_answer_free(cyb_answer* answer) {
  delete answer;
}

}  // extern "C"
