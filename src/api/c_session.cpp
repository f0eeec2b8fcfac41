// cyb.h: sessions and answers.
#include <cyb/cyb.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "api/answer_json.hpp"
#include "api/handles.hpp"
#include "api/text_check.hpp"
#include "runtime/chat.hpp"

namespace cyb::api {
namespace {

std::optional<double> unless_nan(double value) {
  return std::isnan(value) ? std::nullopt : std::optional(value);
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
