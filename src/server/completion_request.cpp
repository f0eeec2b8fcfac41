// Types and ranges are the tables' (fields.hpp); here are the rules between fields.
#include "server/completion_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/chat.hpp"
#include "server/completion_fields.hpp"
#include "server/tool_fields.hpp"
#include "text/tools/tool_prompt.hpp"

namespace cyb::server {
namespace {

using Kind = ChatValue::Kind;

ApiResult<void> read_stops(const Fields& fields, GenerateOptions& options) {
  const ChatValue* stop = fields.find("stop");
  if (stop == nullptr) return {};
  if (stop->kind == Kind::kString) {
    options.stop.push_back(stop->text);
  } else {
    for (const ChatValue& item : stop->items) options.stop.push_back(item.text);
  }
  for (const std::string& text : options.stop) {
    if (text.empty() || text.size() > kMaxStopBytes) {
      return refuse(
          bad_value("stop", fmt::format("must be texts of 1 to {} bytes", kMaxStopBytes)));
    }
  }
  return {};
}

ApiResult<void> read_biases(const Fields& fields, const Served& served, SamplingOverrides& out) {
  const ChatValue* biases = fields.find("logit_bias");
  if (biases == nullptr) return {};
  for (const auto& [key, value] : biases->members) {
    BiasRequest bias;
    const char* end = key.data() + key.size();
    const auto [rest, code] = std::from_chars(key.data(), end, bias.id);
    if (code != std::errc() || rest != end || bias.id < 0 ||
        static_cast<std::uint32_t>(bias.id) >= served.engine.vocab_size()) {
      return refuse(bad_value("logit_bias", "has a key that is no token id of this model"));
    }
    const bool number = value.kind == Kind::kInt || value.kind == Kind::kFloat;
    bias.bias = value.kind == Kind::kInt ? static_cast<double>(value.integer) : value.number;
    if (!number || !(std::abs(bias.bias) <= 100)) {
      return refuse(bad_value("logit_bias", "must map token ids to numbers from -100 to 100"));
    }
    out.logit_bias.push_back(std::move(bias));
  }
  return {};
}

ApiResult<void> read_sampling_fields(const Fields& fields, const Served& served,
                                     SamplingOverrides& out) {
  out.temperature = fields.number("temperature");
  out.top_p = fields.number("top_p");
  out.min_p = fields.number("min_p");
  out.typical_p = fields.number("typical_p");
  out.repetition_penalty = fields.number("repetition_penalty");
  out.presence_penalty = fields.number("presence_penalty");
  out.frequency_penalty = fields.number("frequency_penalty");
  if (const auto k = fields.integer("top_k"))
    out.top_k = static_cast<std::uint32_t>(std::max(*k, std::int64_t{0}));
  // The filter keeps one token at least: so little is the likeliest alone.
  if (out.top_p == 0.0) out.top_p = std::numeric_limits<float>::min();
  for (const char* name : {"typical_p", "repetition_penalty"}) {
    if (fields.number(name) == 0.0) return refuse(bad_value(name, "must be more than 0"));
  }
  if (fields.number("min_p") == 1.0) return refuse(bad_value("min_p", "must be less than 1"));
  return read_biases(fields, served, out);
}

ApiResult<void> read_stream(const Fields& fields, CompletionRequest& out) {
  out.stream = fields.is_true("stream");
  const ChatValue* options = fields.find("stream_options");
  if (options == nullptr) return {};
  if (!out.stream) return refuse(bad_value("stream_options", "needs 'stream': true"));
  out.include_usage = Fields(*options).is_true("include_usage");
  return {};
}

/// 0 of GenerateOptions is "any": a client's 0 is a seed like every other, and the largest one
/// stands for it.
std::uint64_t read_seed(const Fields& fields) {
  const auto seed = fields.integer("seed");
  if (!seed) return 0;
  return *seed == 0 ? (std::uint64_t{1} << 53) - 1 : static_cast<std::uint64_t>(*seed);
}

ApiResult<void> read_guesses(const Fields& fields, const Served& served, SpeculationOptions& out) {
  out.lookup_tokens =
      static_cast<std::uint32_t>(fields.integer("prompt_lookup_num_tokens").value_or(0));
  const std::uint32_t most = served.engine.max_outputs() - 1;
  if (out.lookup_tokens <= most) return {};
  return refuse(bad_value("prompt_lookup_num_tokens",
                          fmt::format("is more than the {} guesses that one run of this server "
                                      "checks",
                                      most)));
}

ApiResult<void> read_shared(const Fields& fields, const Served& served, CompletionRequest& out) {
  CYB_API_TRY(check_model(fields, served));
  GenerateOptions& options = out.generate.options;
  out.generate.n_answers = static_cast<std::uint32_t>(fields.integer("n").value_or(1));
  if (out.generate.n_answers > served.slots) {
    return refuse(bad_value("n", fmt::format("is more than the {} answers that this server has "
                                             "room for (--slots)",
                                             served.slots)));
  }
  const auto most = fields.integer("max_completion_tokens");
  if (most && fields.integer("max_tokens").value_or(*most) != *most) {
    return refuse(bad_value("max_completion_tokens", "and 'max_tokens' contradict each other"));
  }
  options.max_tokens =
      static_cast<std::uint32_t>(most.value_or(fields.integer("max_tokens").value_or(0)));
  options.seed = read_seed(fields);
  options.ignore_stop_ids = fields.is_true("ignore_eos");
  if (const auto name = fields.text("overflow")) {
    const auto modes = {Overflow::kError, Overflow::kTruncate, Overflow::kShift};
    const auto mode = std::ranges::find(modes, *name, overflow_name);
    if (mode == modes.end()) {
      return refuse(bad_value("overflow", "must be \"error\", \"truncate\" or \"shift\""));
    }
    options.overflow = *mode;
  }
  out.user = fields.text("user").value_or("");
  out.generate.priority = static_cast<std::int32_t>(fields.integer("priority").value_or(0));
  CYB_API_TRY(read_guesses(fields, served, options.speculation));
  CYB_API_TRY(read_stops(fields, options));
  CYB_API_TRY(read_sampling_fields(fields, served, options.sampling));
  // Drawn here, where the request's hash can name it.
  options.seed =
      resolve_sampling(served.engine.sampling_defaults(), options.sampling, options.seed).seed;
  return read_stream(fields, out);
}

ApiResult<ChatValue> read_content(const ChatValue& content, const std::string& where) {
  if (content.kind == Kind::kString) return content;
  if (content.kind != Kind::kList) {
    return refuse(bad_value(where, "must be a string or a list of text parts"));
  }
  std::string text;
  for (const ChatValue& part : content.items) {
    const Fields members(part);
    if (part.kind != Kind::kObject || members.text("type") != "text") {
      return refuse(unsupported(where, "parts other than text"));
    }
    const ChatValue* own = members.find("text");
    if (own == nullptr || own->kind != Kind::kString || part.members.size() != 2) {
      return refuse(bad_value(where, "has a part that is not {\"type\": \"text\", \"text\": ...}"));
    }
    if (&part != content.items.data()) text += '\n';
    text += own->text;
  }
  return ChatValue::of(std::string_view(text));
}

/// OpenAI's later name of the system role, where the model's template does not know it.
bool knows_developer(const Engine& engine) {
  return engine.chat_template() != nullptr &&
         std::ranges::any_of(engine.chat_template()->literals(), [](const std::string& text) {
           return text.find("developer") != std::string::npos;
         });
}

ApiResult<ChatValue> read_role(const ChatValue& role, const std::string& where,
                               const Engine& engine) {
  const std::string& name = role.text;
  if (role.kind == Kind::kString && name == "function") {
    return refuse(unsupported(where, "results of functions have the role \"tool\""));
  }
  if (name == "developer") return ChatValue::of(knows_developer(engine) ? "developer" : "system");
  if (role.kind != Kind::kString ||
      (name != "system" && name != "user" && name != "assistant" && name != "tool")) {
    return refuse(
        bad_value(where, "must be \"system\", \"developer\", \"user\", \"assistant\" or \"tool\""));
  }
  return role;
}

/// What must and must not stand together.
ApiResult<void> check_message(ChatValue& message, const std::string& at) {
  const Fields members(message);
  const auto role = members.text("role");
  if (!role) return refuse(bad_value(at + ".role", "is missing"));
  const bool calls = members.find("tool_calls") != nullptr;
  const bool result = members.find("tool_call_id") != nullptr;
  if (calls && *role != "assistant") {
    return refuse(bad_value(at + ".tool_calls", "belong to messages of the assistant"));
  }
  if (result != (*role == "tool")) {
    return refuse(bad_value(at + ".tool_call_id",
                            result ? "belongs to messages of the role tool" : "is missing"));
  }
  if (members.find("content") != nullptr) return {};
  if (!calls) return refuse(bad_value(at + ".content", "is missing"));
  message.members.emplace_back("content", ChatValue::null());
  return {};
}

ApiResult<ChatValue> read_message(const ChatValue& message, std::size_t index,
                                  const Engine& engine) {
  const std::string at = fmt::format("messages[{}]", index);
  if (message.kind != Kind::kObject) return refuse(bad_value(at, "must be an object"));
  ChatValue out = ChatValue::object();
  for (const auto& [key, value] : message.members) {
    const std::string where = at + "." + key.substr(0, 64);
    // Clients send back what they were given: members that say nothing.
    if (value.kind == Kind::kNull || (value.kind == Kind::kList && value.items.empty())) continue;
    if (key == "role") {
      CYB_API_ASSIGN(ChatValue role, read_role(value, where, engine));
      out.members.emplace_back(key, std::move(role));
    } else if (key == "content") {
      CYB_API_ASSIGN(ChatValue content, read_content(value, where));
      out.members.emplace_back(key, std::move(content));
    } else if (key == "tool_calls") {
      CYB_API_ASSIGN(ChatValue calls, read_tool_calls(value, where));
      out.members.emplace_back(key, std::move(calls));
    } else if (key == "name" || key == "reasoning_content" || key == "tool_call_id") {
      if (value.kind != Kind::kString) return refuse(bad_value(where, "must be a string"));
      out.members.emplace_back(key, value);
    } else {
      return refuse(unsupported(where, ""));
    }
  }
  CYB_API_TRY(check_message(out, at));
  return out;
}

ApiResult<std::vector<std::int32_t>> ids_of(const ChatValue& list) {
  std::vector<std::int32_t> ids;
  ids.reserve(list.items.size());
  for (const ChatValue& item : list.items) {
    if (item.kind != Kind::kInt || item.integer < 0 || item.integer > INT32_MAX) {
      return refuse(bad_value("prompt", "must be a text or a list of token ids"));
    }
    ids.push_back(static_cast<std::int32_t>(item.integer));
  }
  return ids;
}

/// One prompt, alone or as the one element of a list.
ApiResult<std::vector<std::int32_t>> read_prompt(const Fields& fields, const Engine& engine) {
  const ChatValue* prompt = fields.find("prompt");
  if (prompt == nullptr) return refuse(bad_value("prompt", "is missing"));
  const bool list = prompt->kind == Kind::kList;
  if (list && prompt->items.empty()) return refuse(bad_value("prompt", "is empty"));
  if (list && prompt->items[0].kind != Kind::kInt) {
    if (prompt->items.size() > 1) {
      return refuse(unsupported("prompt", "more than one prompt in a request"));
    }
    prompt = &prompt->items[0];
  }
  if (prompt->kind == Kind::kList) {
    if (prompt->items.empty()) return refuse(bad_value("prompt", "is empty"));
    return ids_of(*prompt);
  }
  if (prompt->kind != Kind::kString) {
    return refuse(bad_value("prompt", "must be a text or a list of token ids"));
  }
  const auto tokenizer = engine.need_tokenizer();
  if (!tokenizer) return refuse(api_error(tokenizer.error()));
  auto ids = encode_raw(**tokenizer, prompt->text);
  if (!ids) {
    ApiError error = api_error(ids.error());
    error.param = "prompt";
    return refuse(std::move(error));
  }
  return *std::move(ids);
}

}  // namespace

ApiResult<void> check_model(const Fields& fields, const Served& served) {
  const auto name = fields.text("model");
  return name ? check_model_name(*name, served) : ApiResult<void>{};
}

ApiResult<void> check_model_name(std::string_view name, const Served& served) {
  if (name == served.name || name == served.engine.model_id()) return {};
  return refuse({404,
                 fmt::format("The model is not loaded here; this server has '{}'.", served.name),
                 "model_not_found", "model"});
}

ApiResult<ChatInput> read_messages(const Fields& fields, const Engine& engine) {
  const ChatValue* messages = fields.find("messages");
  if (messages == nullptr) return refuse(bad_value("messages", "is missing"));
  ChatInput input;
  input.messages.reserve(messages->items.size());
  for (std::size_t i = 0; i < messages->items.size(); ++i) {
    CYB_API_ASSIGN(ChatValue message, read_message(messages->items[i], i, engine));
    input.messages.push_back(std::move(message));
  }
  if (const ChatValue* variables = fields.find("chat_template_kwargs")) {
    for (const auto& [key, value] : variables->members) {
      static constexpr std::string_view kTaken[] = {"messages", "tools", "documents", "bos_token",
                                                    "eos_token"};
      if (std::ranges::find(kTaken, key) != std::end(kTaken)) {
        return refuse(bad_value("chat_template_kwargs", "must not set what the server sets"));
      }
      input.variables.emplace_back(key, value);
    }
  }
  return input;
}

ApiResult<CompletionRequest> read_chat_request(const ChatValue& body, const Served& served) {
  CYB_API_ASSIGN(const Fields fields, check_fields(body, chat_fields()));
  CompletionRequest out;
  out.chat = true;
  out.prompt_field = "messages";
  CYB_API_TRY(read_shared(fields, served, out));
  out.logprobs = fields.is_true("logprobs");
  const auto top = fields.integer("top_logprobs");
  if (top && !out.logprobs) return refuse(bad_value("top_logprobs", "needs 'logprobs': true"));
  if (out.logprobs) out.generate.options.logprobs = static_cast<std::uint32_t>(top.value_or(0));
  CYB_API_ASSIGN(const ToolRequest tools, read_tools(fields));
  CYB_API_ASSIGN(ChatInput input, read_messages(fields, served.engine));
  CYB_API_TRY(put_tools(served.engine, tools, input));
  auto ids = encode_chat(served.engine, std::move(input));
  if (!ids) {
    ApiError error = api_error(ids.error());
    error.param = "messages";
    return refuse(std::move(error));
  }
  out.generate.prompt = *std::move(ids);
  CYB_API_TRY(shape_chat_answer(fields, served, tools, out));
  return out;
}

ApiResult<CompletionRequest> read_completion_request(const ChatValue& body, const Served& served) {
  CYB_API_ASSIGN(const Fields fields, check_fields(body, completion_fields()));
  CompletionRequest out;
  CYB_API_TRY(read_shared(fields, served, out));
  if (const auto top = fields.integer("logprobs")) {
    out.logprobs = true;
    out.generate.options.logprobs = static_cast<std::uint32_t>(*top);
  }
  CYB_API_TRY(shape_completion(fields, served, out));
  CYB_API_ASSIGN(out.generate.prompt, read_prompt(fields, served.engine));
  return out;
}

ApiError submit_error(const Error& error, std::size_t n_prompt, const Served& served,
                      std::string_view field) {
  ApiError out = api_error(error);
  if (error.kind() == ErrorKind::kContextOverflow) {
    // Clients look for OpenAI's words at the end.
    out.message = fmt::format(
        "The prompt has {0} tokens, the context of this server holds {1}: this model's maximum "
        "context length is {1} tokens.",
        n_prompt, served.engine.ctx_tokens());
    out.param = field;
  }
  return out;
}

}  // namespace cyb::server
