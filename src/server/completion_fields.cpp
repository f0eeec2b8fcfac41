// Names and meanings: https://platform.openai.com/docs/api-reference; samplers: docs/sampling.md.
#include "server/completion_fields.hpp"

#include <vector>

namespace cyb::server {
namespace {

using enum FieldType;
using enum FieldState;

constexpr double kBig = 2147483647.0, kSeed = 9007199254740991.0;

constexpr Field kStreamOptions[] = {
    {"include_usage", kBool, kBuilt, 0, 0, "false", "tokens, before the end of the stream"},
    {"include_obfuscation", kBool, kOnly, 0, 0, "false"},
};

constexpr Field kShared[] = {
    {"model", kString, kBuilt, 1, 512, "the one that is loaded", "its name or id"},
    {"n", kInteger, kBuilt, 1, kMaxAnswers, "1", "answers to one prompt"},
    {"stream", kBool, kBuilt, 0, 0, "false", "server-sent events"},
    {"stream_options", kObject, kBuilt, 0, 0, "", "needs stream", false, stream_option_fields},
    {"max_tokens", kInteger, kBuilt, 1, kBig, "to the end of the context", "of one answer"},
    {"stop", kStrings, kBuilt, 0, kMaxStops, "[]", "texts of at most 256 bytes"},
    {"seed", kInteger, kBuilt, -kSeed, kSeed, "a new one", "the same seed, the same answer"},
    {"temperature", kNumber, kBuilt, 0, 100, "the model's", "0: the likeliest token"},
    {"top_p", kNumber, kBuilt, 0, 1, "the model's", "0: the likeliest token"},
    {"top_k", kInteger, kBuilt, -1, kBig, "the model's", "0, -1: off"},
    {"min_p", kNumber, kBuilt, 0, 1, "the model's", "[0, 1)"},
    {"typical_p", kNumber, kBuilt, 0, 1, "the model's", "(0, 1]"},
    {"repetition_penalty", kNumber, kBuilt, 0, 100, "the model's", "1: off"},
    {"presence_penalty", kNumber, kBuilt, -2, 2, "0", "of a token that was seen"},
    {"frequency_penalty", kNumber, kBuilt, -2, 2, "0", "the same, times how often"},
    {"logit_bias", kObject, kBuilt, 0, kMaxBiases, "{}", "token id to -100 .. 100"},
    {"ignore_eos", kBool, kBuilt, 0, 0, "false", "to measure: no early end"},
    {"overflow", kString, kBuilt, 1, 16, "error", "error, truncate or shift"},
    {"grammar", kString, kBuilt, 1, 1 << 20, "", "what the answer must be, in GBNF"},
    {"regex", kString, kBuilt, 1, 1 << 20, "", "the same, a regular expression"},
    {"lark", kString, kBuilt, 1, 1 << 20, "", "the same, a Lark grammar"},
    {"priority", kInteger, kBuilt, -100, 100, "0",
     "higher ones are admitted first; above 0 with an admin key"},
    {"prompt_lookup_num_tokens", kInteger, kBuilt, 0, kMaxGuesses, "0: off",
     "guesses from the text so far; the answer stays the same"},
    {"user", kString, kBuilt, 0, 512, "", "a label; it stands in the server's log"},
    {"service_tier", kString, kOnly, 0, 0, "\"auto\"|\"default\""},
    {"store", kBool, kOnly, 0, 0, "false"},
    {"metadata", kObject, kOnly, 0, 0, "{}"},
};

constexpr Field kChat[] = {
    {"messages", kList, kBuilt, 1, kMaxMessages, "", "role and content of each", true, nullptr,
     "Message"},
    {"max_completion_tokens", kInteger, kBuilt, 1, kBig, "as max_tokens", "the same"},
    {"logprobs", kBool, kBuilt, 0, 0, "false", "of the chosen tokens"},
    {"top_logprobs", kInteger, kBuilt, 0, kMaxTopLogprobs, "0", "needs logprobs"},
    {"chat_template_kwargs", kObject, kBuilt, 0, 64, "{}", "variables of the template"},
    {"response_format", kObject, kBuilt, 1, 2, "{\"type\":\"text\"}", "json_object, json_schema",
     false, nullptr, "ResponseFormat"},
    {"tools", kList, kBuilt, 0, kMaxTools, "[]", "functions that the answer may call", false,
     nullptr, "Tool"},
    {"tool_choice", kAny, kBuilt, 0, 0, "auto", "none, auto, required or a function", false,
     nullptr, "ToolChoice"},
    {"parallel_tool_calls", kBool, kBuilt, 0, 0, "true", "false: one call at most"},
    {"functions", kList, kOnly, 0, 0, "[]"},
    {"function_call", kString, kOnly, 0, 0, "\"none\""},
    {"modalities", kList, kOnly, 0, 0, "[\"text\"]"},
    {"audio", kObject, kRefused, 0, 0, "", "answers are text"},
    {"prediction", kObject, kRefused, 0, 0, "", "predicted answers are not built"},
    {"reasoning_effort", kString, kRefused, 0, 0, "", "chat_template_kwargs says it to a template"},
    {"verbosity", kString, kRefused},
    {"web_search_options", kObject, kRefused, 0, 0, "", "the server fetches nothing"},
    {"prompt_cache_key", kString, kRefused, 0, 0, "", "equal beginnings are found by themselves"},
    {"prompt_cache_retention", kString, kRefused},
    {"safety_identifier", kString, kRefused},
};

constexpr Field kCompletion[] = {
    {"prompt", kAny, kBuilt, 0, 0, "", "a text or a list of token ids; one prompt", true, nullptr,
     "Prompt"},
    {"logprobs", kInteger, kBuilt, 0, kMaxTopLogprobs, "none", "likeliest tokens of each step"},
    {"json_schema", kObject, kBuilt, 0, 4096, "", "what the answer must be"},
    {"best_of", kInteger, kOnly, 0, 0, "1"},
    {"echo", kBool, kOnly, 0, 0, "false"},
    {"suffix", kString, kOnly, 0, 0, "\"\""},
};

std::vector<Field> joined(std::span<const Field> own) {
  std::vector<Field> out(own.begin(), own.end());
  out.insert(out.end(), std::begin(kShared), std::end(kShared));
  return out;
}

}  // namespace

std::span<const Field> stream_option_fields() {
  return kStreamOptions;
}

std::span<const Field> chat_fields() {
  static const std::vector<Field> all = joined(kChat);
  return all;
}

std::span<const Field> completion_fields() {
  static const std::vector<Field> all = joined(kCompletion);
  return all;
}

}  // namespace cyb::server
