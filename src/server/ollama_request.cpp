// Names and meanings: https://github.com/ollama/ollama/blob/main/docs/api.md.
#include "server/ollama_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "server/completion_fields.hpp"
#include "server/translated_request.hpp"
#include "text/template/chat_json.hpp"

namespace cyb::server {
namespace {

using enum FieldType;
using enum FieldState;
using Kind = ChatValue::Kind;

constexpr double kBig = 2147483647.0, kSeed = 9007199254740991.0, kLongText = 1e7;
constexpr std::size_t kMaxCalls = 128;
constexpr std::string_view kLoad = "it is set where the server is started";

constexpr Field kOptions[] = {
    {"temperature", kNumber, kBuilt, 0, 100, "the model's", "0: the likeliest token"},
    {"top_k", kInteger, kBuilt, -1, kBig, "the model's", "0, -1: off"},
    {"top_p", kNumber, kBuilt, 0, 1, "the model's", "0: the likeliest token"},
    {"min_p", kNumber, kBuilt, 0, 1, "the model's", "[0, 1)"},
    {"typical_p", kNumber, kBuilt, 0, 1, "the model's", "(0, 1]"},
    {"repeat_penalty", kNumber, kBuilt, 0, 100, "the model's", "1: off"},
    {"presence_penalty", kNumber, kBuilt, -2, 2, "0", "of a token that was seen"},
    {"frequency_penalty", kNumber, kBuilt, -2, 2, "0", "the same, times how often"},
    {"seed", kInteger, kBuilt, -kSeed, kSeed, "-1", "-1: a new one"},
    {"num_predict", kInteger, kBuilt, -2, kBig, "-1", "-1, -2: to the end of the context"},
    {"num_ctx", kInteger, kBuilt, 1, kBig, "the server's", "at most the server's context"},
    {"stop", kStrings, kBuilt, 0, kMaxStops, "[]", "texts of at most 256 bytes"},
    {"repeat_last_n", kInteger, kRefused},
    {"mirostat", kInteger, kOnly, 0, 0, "0"},
    {"mirostat_tau", kNumber, kRefused},
    {"mirostat_eta", kNumber, kRefused},
    {"tfs_z", kNumber, kOnly, 0, 0, "1"},
    {"penalize_newline", kBool, kRefused},
    {"num_keep", kInteger, kRefused},
    {"numa", kBool, kRefused, 0, 0, "", kLoad},
    {"num_batch", kInteger, kRefused, 0, 0, "", kLoad},
    {"num_gpu", kInteger, kRefused, 0, 0, "", kLoad},
    {"main_gpu", kInteger, kRefused, 0, 0, "", kLoad},
    {"low_vram", kBool, kRefused, 0, 0, "", kLoad},
    {"f16_kv", kBool, kRefused, 0, 0, "", kLoad},
    {"logits_all", kBool, kRefused, 0, 0, "", kLoad},
    {"vocab_only", kBool, kRefused, 0, 0, "", kLoad},
    {"use_mmap", kBool, kRefused, 0, 0, "", kLoad},
    {"use_mlock", kBool, kRefused, 0, 0, "", kLoad},
    {"embedding_only", kBool, kRefused, 0, 0, "", kLoad},
    {"num_thread", kInteger, kRefused, 0, 0, "", kLoad},
};

constexpr Field kShared[] = {
    {"model", kString, kBuilt, 1, 512, "the one that is loaded", "its name or id"},
    {"stream", kBool, kBuilt, 0, 0, "true", "one JSON object a line"},
    {"options", kObject, kBuilt, 0, 0, "{}", "", false, ollama_option_fields},
    {"format", kAny, kBuilt, 0, 0, "\"\"", "\"json\" or a JSON schema", false, nullptr,
     "OllamaFormat"},
    {"think", kBool, kBuilt, 0, 0, "the template's", "its variable enable_thinking"},
    {"logprobs", kBool, kBuilt, 0, 0, "false", "of the chosen tokens"},
    {"top_logprobs", kInteger, kBuilt, 0, kMaxTopLogprobs, "0", "needs logprobs"},
    {"keep_alive", kAny, kBuilt, 0, 0, "the server's",
     "how long the model stays when nobody uses it", false, nullptr, "KeepAlive"},
};

constexpr Field kChat[] = {
    {"messages", kList, kBuilt, 0, kMaxMessages, "[]", "role and content of each", false, nullptr,
     "OllamaMessage"},
    {"tools", kList, kBuilt, 0, kMaxTools, "[]", "functions that the answer may call", false,
     nullptr, "Tool"},
};

constexpr Field kMessage[] = {
    {"role", kString, kBuilt, 1, 16, "", "system, user, assistant or tool", true},
    {"content", kString, kBuilt, 0, kLongText, "", "may be left out beside tool_calls"},
    {"thinking", kString, kBuilt, 0, kLongText, "", "of an answer that is sent back"},
    {"images", kList, kOnly, 0, 0, "[]"},
    {"tool_calls", kList, kBuilt, 0, kMaxCalls, "[]", "of an answer that is sent back", false,
     nullptr, "OllamaCall"},
    {"tool_name", kString, kBuilt, 0, 64, "", "of a result: the function"},
    {"tool_call_id", kString, kBuilt, 1, 256, "", "of a result: the call"},
};

constexpr Field kCall[] = {
    {"id", kString, kBuilt, 0, 256, "", "what its result may name"},
    {"type", kString, kOnly, 0, 0, "\"function\""},
    {"function", kObject, kBuilt, 0, 0, "", "", true, ollama_function_fields},
};

constexpr Field kFunction[] = {
    {"name", kString, kBuilt, 1, 64, "", "", true},
    {"arguments", kObject, kBuilt, 0, 4096, "{}"},
    {"description", kString, kBuilt, 0, 1 << 20, "", "of an answer that is sent back"},
    {"index", kInteger, kBuilt, 0, kBig, "", "of an answer that is sent back"},
};

constexpr Field kGenerate[] = {
    {"prompt", kString, kBuilt, 0, kLongText, "\"\"", "a user's message, or all of it with raw"},
    {"system", kString, kBuilt, 0, kLongText, "", "a system message before it"},
    {"raw", kBool, kBuilt, 0, 0, "false", "the prompt as it is, without the model's template"},
    {"template", kString, kOnly, 0, 0, "\"\"", "the model's own is used"},
    {"suffix", kString, kOnly, 0, 0, "\"\""},
    {"context", kList, kOnly, 0, 0, "[]", "what was said before goes into messages of /api/chat"},
    {"images", kList, kOnly, 0, 0, "[]"},
    {"width", kInteger, kRefused, 0, 0, "", "answers are text"},
    {"height", kInteger, kRefused, 0, 0, "", "answers are text"},
    {"steps", kInteger, kRefused, 0, 0, "", "answers are text"},
};

constexpr Field kShow[] = {
    {"model", kString, kBuilt, 1, 512, "the one that is loaded", "its name or id"},
    {"name", kString, kBuilt, 1, 512, "", "the same, as older clients say it"},
    {"verbose", kBool, kOnly, 0, 0, "false"},
    {"system", kString, kOnly, 0, 0, "\"\""},
    {"template", kString, kOnly, 0, 0, "\"\""},
    {"options", kObject, kOnly, 0, 0, "{}"},
};

std::vector<Field> joined(std::span<const Field> own) {
  std::vector<Field> out(own.begin(), own.end());
  out.insert(out.end(), std::begin(kShared), std::end(kShared));
  return out;
}

ApiResult<void> set_options(const Fields& options, const Served& served, TranslatedRequest& out) {
  for (const char* name : {"temperature", "top_k", "top_p", "min_p", "typical_p",
                           "presence_penalty", "frequency_penalty", "stop"}) {
    out.copy(options, name, name, "options.");
  }
  out.copy(options, "repeat_penalty", "repetition_penalty", "options.");
  if (options.integer("seed").value_or(-1) != -1) out.copy(options, "seed", "seed", "options.");
  const std::int64_t most = options.integer("num_predict").value_or(-1);
  if (most == 0) return refuse(bad_value("options.num_predict", "must be -1, -2 or at least 1"));
  if (most > 0) out.copy(options, "num_predict", "max_tokens", "options.");
  const std::uint32_t held = served.engine.ctx_tokens();
  if (options.integer("num_ctx").value_or(0) > held) {
    return refuse(bad_value("options.num_ctx",
                            fmt::format("is more than the {} tokens that the model is loaded with "
                                        "(--ctx)",
                                        held)));
  }
  return {};
}

/// "json" or a schema as chat's response_format.
ApiResult<void> set_format(const Fields& fields, TranslatedRequest& out) {
  const ChatValue* format = fields.find("format");
  if (format == nullptr || (format->kind == Kind::kString && format->text.empty())) return {};
  const bool schema = format->kind == Kind::kObject;
  if (!schema && (format->kind != Kind::kString || format->text != "json")) {
    return refuse(bad_value("format", "must be \"json\" or a JSON schema"));
  }
  ChatValue value = ChatValue::object();
  value.members.emplace_back("type", ChatValue::of(schema ? "json_schema" : "json_object"));
  if (schema) {
    ChatValue named = ChatValue::object();
    named.members.emplace_back("name", ChatValue::of("format"));
    named.members.emplace_back("schema", *format);
    value.members.emplace_back("json_schema", std::move(named));
  }
  out.set("response_format", "format", std::move(value));
  return {};
}

ApiResult<void> set_shared(const Fields& fields, const Served& served, TranslatedRequest& out) {
  if (const auto name = fields.text("model")) {
    out.set("model", "model", ChatValue::of(ollama_model_name(*name)));
  }
  out.set("stream", "stream", ChatValue::of(fields.flag("stream").value_or(true)));
  if (const ChatValue* options = fields.find("options")) {
    CYB_API_TRY(set_options(Fields(*options), served, out));
  }
  return set_format(fields, out);
}

void set_thinking(const Fields& fields, TranslatedRequest& out) {
  const ChatValue* think = fields.find("think");
  if (think == nullptr) return;
  ChatValue variables = ChatValue::object();
  variables.members.emplace_back("enable_thinking", *think);
  out.set("chat_template_kwargs", "think", std::move(variables));
}

ApiResult<CompletionRequest> read_messages_of(ChatValue messages, std::string_view field,
                                              const Fields& fields, const Served& served) {
  TranslatedRequest chat;
  chat.set("messages", field, std::move(messages));
  CYB_API_TRY(set_shared(fields, served, chat));
  set_thinking(fields, chat);
  chat.copy(fields, "logprobs");
  chat.copy(fields, "top_logprobs");
  chat.copy(fields, "tools");
  CYB_API_ASSIGN(CompletionRequest out, chat.read_chat(served));
  out.prompt_field = field == "prompt" ? "prompt" : "messages";
  return out;
}

/// Ollama's messages as chat's. Calls have no ids there: they are given some, and a result is of
/// the first call of its function that has none yet.
class Conversation {
 public:
  ApiResult<ChatValue> read(const ChatValue& message, const std::string& where) {
    if (message.kind != Kind::kObject) return refuse(bad_value(where, "must be an object"));
    CYB_API_ASSIGN(const Fields fields, check_fields(message, kMessage, where));
    const std::string_view role = *fields.text("role");
    ChatValue out = ChatValue::object({{"role", ChatValue::of(role)}});
    const ChatValue* calls = fields.find("tool_calls");
    const bool calling = calls != nullptr && !calls->items.empty();
    const ChatValue* content = fields.find("content");
    if (content == nullptr && !calling) return refuse(bad_value(where + ".content", "is missing"));
    if (content != nullptr && !(calling && content->text.empty())) {
      out.members.emplace_back("content", *content);
    }
    if (const ChatValue* thinking = fields.find("thinking")) {
      out.members.emplace_back("reasoning_content", *thinking);
    }
    if (calling) {
      CYB_API_ASSIGN(ChatValue list, read_calls(*calls, where + ".tool_calls"));
      out.members.emplace_back("tool_calls", std::move(list));
    }
    for (const char* name : {"tool_name", "tool_call_id"}) {
      if (role != "tool" && fields.find(name) != nullptr) {
        return refuse(bad_value(where + "." + name, "belongs to messages of the role tool"));
      }
    }
    if (role == "tool") add_names(fields, out);
    return out;
  }

 private:
  struct Open {
    std::string id, function;
  };

  /// Nine letters and digits, which every template takes.
  std::string new_id() { return fmt::format("call{:05}", ++n_ids_); }

  ApiResult<ChatValue> read_calls(const ChatValue& calls, const std::string& where) {
    ChatValue out = ChatValue::list();
    for (std::size_t i = 0; i < calls.items.size(); ++i) {
      const std::string at = fmt::format("{}[{}]", where, i);
      if (calls.items[i].kind != Kind::kObject) return refuse(bad_value(at, "must be an object"));
      CYB_API_ASSIGN(const Fields call, check_fields(calls.items[i], kCall, at));
      const Fields function(*call.find("function"));
      const ChatValue* arguments = function.find("arguments");
      const std::string text = arguments == nullptr ? "{}" : chat_json_text(*arguments);
      std::string id(call.text("id").value_or(""));
      if (id.empty()) id = new_id();
      open_.push_back({id, std::string(*function.text("name"))});
      out.items.push_back(ChatValue::object(
          {{"id", ChatValue::of(std::string_view(id))},
           {"type", ChatValue::of("function")},
           {"function",
            ChatValue::object({{"name", *function.find("name")},
                               {"arguments", ChatValue::of(std::string_view(text))}})}}));
    }
    return out;
  }

  void add_names(const Fields& result, ChatValue& out) {
    const std::string_view name = result.text("tool_name").value_or("");
    std::string id(result.text("tool_call_id").value_or(""));
    const auto call = std::ranges::find_if(open_, [&](const Open& one) {
      return id.empty() ? name.empty() || one.function == name : one.id == id;
    });
    if (id.empty()) id = call == open_.end() ? new_id() : call->id;
    if (call != open_.end()) open_.erase(call);
    out.members.emplace_back("tool_call_id", ChatValue::of(std::string_view(id)));
    if (!name.empty()) out.members.emplace_back("name", ChatValue::of(name));
  }

  std::vector<Open> open_;  // calls without a result
  std::size_t n_ids_ = 0;
};

/// The completion API's logprobs is a number.
ApiResult<void> set_raw_logprobs(const Fields& fields, TranslatedRequest& out) {
  const auto top = fields.integer("top_logprobs");
  if (!fields.is_true("logprobs")) {
    if (top) return refuse(bad_value("top_logprobs", "needs 'logprobs': true"));
    return {};
  }
  out.set("logprobs", "top_logprobs", ChatValue::of(top.value_or(0)));
  return {};
}

ApiResult<CompletionRequest> read_raw(const Fields& fields, const Served& served) {
  for (const char* name : {"system", "think"}) {
    if (fields.find(name) != nullptr) {
      return refuse(bad_value(name, "goes into the model's template, which 'raw' leaves out"));
    }
  }
  TranslatedRequest text;
  text.copy(fields, "prompt");
  CYB_API_TRY(set_shared(fields, served, text));
  CYB_API_TRY(set_raw_logprobs(fields, text));
  return text.read_completion(served);
}

}  // namespace

std::span<const Field> ollama_chat_fields() {
  static const std::vector<Field> all = joined(kChat);
  return all;
}

std::span<const Field> ollama_generate_fields() {
  static const std::vector<Field> all = joined(kGenerate);
  return all;
}

std::span<const Field> ollama_option_fields() {
  return kOptions;
}

std::span<const Field> ollama_message_fields() {
  return kMessage;
}

std::span<const Field> ollama_call_fields() {
  return kCall;
}

std::span<const Field> ollama_function_fields() {
  return kFunction;
}

std::span<const Field> ollama_show_fields() {
  return kShow;
}

ApiResult<CompletionRequest> read_ollama_chat(const Fields& fields, const Served& served) {
  std::vector<ChatValue> messages;
  Conversation conversation;
  const ChatValue& list = *fields.find("messages");
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    CYB_API_ASSIGN(ChatValue message,
                   conversation.read(list.items[i], fmt::format("messages[{}]", i)));
    messages.push_back(std::move(message));
  }
  return read_messages_of(ChatValue::list(std::move(messages)), "messages", fields, served);
}

ApiResult<CompletionRequest> read_ollama_generate(const Fields& fields, const Served& served) {
  if (fields.is_true("raw")) return read_raw(fields, served);
  std::vector<ChatValue> messages;
  if (const ChatValue* system = fields.find("system"); system != nullptr && !system->text.empty()) {
    messages.push_back(plain_message("system", *system));
  }
  messages.push_back(plain_message("user", *fields.find("prompt")));
  return read_messages_of(ChatValue::list(std::move(messages)), "prompt", fields, served);
}

bool asks_for_load(const Fields& fields) {
  if (const ChatValue* list = fields.find("messages")) return list->items.empty();
  return fields.text("prompt").value_or("").empty();
}

std::string_view ollama_model_name(std::string_view name) noexcept {
  constexpr std::string_view kTag = ":latest";
  if (name.ends_with(kTag)) name.remove_suffix(kTag.size());
  return name;
}

}  // namespace cyb::server
