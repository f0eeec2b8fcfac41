// Streams of every API: whatever a model writes and wherever it is cut, every text is whole events
// of valid JSON, and what they add up to is the answer that is not streamed.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.hpp"
#include "server/ollama_shape.hpp"
#include "server/openai_shape.hpp"
#include "server/responses_shape.hpp"
#include "server/split_choice.hpp"
#include "server_engine.hpp"

namespace {

using namespace cyb;
using namespace cyb::server;
using Json = nlohmann::json;

void need(bool condition) {
  if (!condition) std::abort();
}

/// What a client has of one choice.
struct Said {
  std::string content, reasoning;
  std::vector<std::pair<std::string, std::string>> calls;  // name, arguments
  std::string reason;
  bool operator==(const Said&) const = default;
};

void add_text(std::string& to, const Json& object, const char* key) {
  if (object.contains(key) && object[key].is_string()) to += object[key].get<std::string>();
}

void add_openai_calls(Said& said, const Json& message) {
  if (!message.contains("tool_calls")) return;
  for (const Json& call : message["tool_calls"]) {
    const std::size_t index = call.value("index", said.calls.size());
    if (index == said.calls.size()) {
      need(call["type"] == "function" && !call["id"].get<std::string>().empty());
      said.calls.emplace_back(call["function"]["name"], "");
    }
    need(index < said.calls.size());
    said.calls[index].second += call["function"]["arguments"].get<std::string>();
  }
}

void add_openai(Said& said, const Json& object) {
  for (const Json& choice : object["choices"]) {
    const Json& message = choice.contains("delta")     ? choice["delta"]
                          : choice.contains("message") ? choice["message"]
                                                       : choice;
    add_text(said.content, message, choice.contains("text") ? "text" : "content");
    add_text(said.reasoning, message, "reasoning_content");
    add_openai_calls(said, message);
    add_text(said.reason, choice, "finish_reason");
  }
}

void add_ollama(Said& said, const Json& object) {
  const bool chat = object.contains("message");
  const Json& message = chat ? object["message"] : object;
  add_text(said.content, message, chat ? "content" : "response");
  add_text(said.reasoning, message, "thinking");
  if (message.contains("tool_calls")) {
    for (const Json& call : message["tool_calls"]) {
      need(call["function"]["arguments"].is_object());
      said.calls.emplace_back(call["function"]["name"], call["function"]["arguments"].dump());
    }
  }
  add_text(said.reason, object, "done_reason");
}

void add_response(Said& said, const Json& response) {
  said.reason = response["status"];
  for (const Json& item : response["output"]) {
    if (item["type"] == "function_call") said.calls.emplace_back(item["name"], item["arguments"]);
    if (!item.contains("content")) continue;
    std::string& to = item["type"] == "reasoning" ? said.reasoning : said.content;
    for (const Json& part : item["content"]) add_text(to, part, "text");
  }
}

void add_response_event(Said& said, const Json& event) {
  const std::string type = event["type"];
  if (type == "response.output_text.delta") add_text(said.content, event, "delta");
  if (type == "response.reasoning_text.delta") add_text(said.reasoning, event, "delta");
  if (type == "response.output_item.added" && event["item"]["type"] == "function_call") {
    said.calls.emplace_back(event["item"]["name"], "");
  }
  if (type == "response.function_call_arguments.delta") {
    need(!said.calls.empty());
    add_text(said.calls.back().second, event, "delta");
  }
  if (type != "response.completed" && type != "response.incomplete") return;
  Said whole;
  add_response(whole, event["response"]);
  said.reason = whole.reason;
  need(said == whole);
}

enum class Api : std::uint8_t { kChat, kCompletion, kResponses, kOllamaChat, kOllamaGenerate };

struct Case {
  Api api;
  bool logprobs, complete;
  SplitOptions split;
  std::size_t piece;
  bool ollama() const { return api == Api::kOllamaChat || api == Api::kOllamaGenerate; }
  bool plain() const { return api == Api::kCompletion || api == Api::kOllamaGenerate; }
};

std::unique_ptr<AnswerShape> make_shape(const Case& c) {
  AnswerFrame frame{.chat = !c.plain(),
                    .id = "resp_1",
                    .model = "m\"\xC3\xA9",
                    .fingerprint = "fp_1",
                    .usage_wanted = c.complete,
                    .logprobs = c.logprobs,
                    .tokenizer = fuzz::server_engine().tokenizer()};
  if (c.api == Api::kResponses) return responses_shape(std::move(frame), R"("temperature":1)");
  if (c.ollama()) return ollama_shape(std::move(frame), c.api == Api::kOllamaChat);
  return openai_shape(std::move(frame));
}

/// The whole events of one text of a stream.
void read_events(const Case& c, std::string_view text, Said& said) {
  need(utf8_find_invalid(text) == std::string_view::npos);
  const std::string_view mark = c.ollama() ? "\n" : "\n\n";
  need(text.empty() || text.ends_with(mark));
  while (!text.empty()) {
    std::string_view event = text.substr(0, text.find(mark));
    text.remove_prefix(event.size() + mark.size());
    if (c.api == Api::kResponses) {
      need(event.starts_with("event: response."));
      event.remove_prefix(std::min(event.find('\n') + 1, event.size()));
    }
    if (!c.ollama()) {
      need(event.starts_with("data: "));
      event.remove_prefix(6);
    }
    need(event.find_first_of("\r\n") == std::string_view::npos);
    if (event == "[DONE]") continue;
    const Json json = Json::parse(event, nullptr, false);
    need(json.is_object());
    if (c.ollama()) {
      add_ollama(said, json);
    } else {
      c.api == Api::kResponses ? add_response_event(said, json) : add_openai(said, json);
    }
  }
}

SplitChoice::NewId new_id() {
  return [n = 0](std::string_view prefix) mutable {
    return std::string(prefix) + "00000000" + std::to_string(++n);
  };
}

GenerateResult result_of(const Case& c, std::string_view text) {
  GenerateResult out;
  out.text = text;
  out.finish_reason = c.complete ? FinishReason::kStop : FinishReason::kLength;
  for (const char byte : text) {
    const std::int32_t id = static_cast<unsigned char>(byte);
    out.tokens.push_back(id);
    if (c.logprobs) out.logprobs.push_back({id, std::string(1, byte), -0.5f, {{256, -1.0f}}});
  }
  return out;
}

/// One choice as the answer job streams it.
Said stream(const Case& c, const GenerateResult& result) {
  Said said;
  const auto shape = make_shape(c);
  SplitChoice choice(c.split, new_id());
  const std::string_view text = result.text;
  read_events(c, shape->begin(), said);
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t end = std::min(at + c.piece, text.size());
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
    const bool over = end == text.size();
    choice.push(text.substr(at, end - at), over, result.finish_reason);
    auto tokens = std::span(result.logprobs);
    if (c.logprobs) tokens = tokens.subspan(at, end - at);
    choice.visit([&](AnswerPiece piece) {
      piece.tokens = std::exchange(tokens, {});
      read_events(c, shape->piece(piece), said);
    });
    if (over) break;
    at = end;
  }
  read_events(c, shape->finish({.reason = result.finish_reason, .tool_calls = choice.has_calls()}),
              said);
  const Answer answer = split_answer(c.split, new_id(), result);
  read_events(c, shape->end({&answer, 1}), said);
  return said;
}

Said whole(const Case& c, const GenerateResult& result) {
  Said said;
  const Answer answer = split_answer(c.split, new_id(), result);
  const Json json = Json::parse(make_shape(c)->whole({&answer, 1}), nullptr, false);
  need(json.is_object());
  if (c.ollama()) {
    add_ollama(said, json);
  } else {
    c.api == Api::kResponses ? add_response(said, json) : add_openai(said, json);
  }
  return said;
}

}  // namespace

/// The first byte picks the API and options, the second the format of calls, the third how the
/// text is cut; the rest is what the model writes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3 || size > 65536) return 0;
  Case c{static_cast<Api>(data[0] % 5U),
         (data[0] & 128U) != 0,
         (data[0] & 64U) != 0,
         {},
         1U + data[2] % 32U};
  const auto formats = tool_formats();
  const std::size_t pick = data[1] % (formats.size() + 1);
  if (!c.plain()) {
    c.split.format = pick == formats.size() ? nullptr : &formats[pick];
    c.split.functions = {"f", "python"};
    if ((data[1] & 64U) != 0) c.split.reasoning = {"<think>", "</think>"};
    c.split.in_reasoning = (data[1] & 192U) == 192U;
  }
  // Whole UTF-8 is what the engine gives.
  const std::string text =
      utf8_replace_invalid({reinterpret_cast<const char*>(data) + 3, size - 3});
  const GenerateResult result = result_of(c, text);
  need(stream(c, result) == whole(c, result));
  // Bytes that are none must not break the framing.
  GenerateResult bytes = result_of(c, {reinterpret_cast<const char*>(data) + 3, size - 3});
  (void)stream(c, bytes);
  return 0;
}
