// Every format as its models write it, cut at every place: the parts are the same.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "text/tools/answer_splitter.hpp"

namespace cyb {
namespace {

using Call = std::pair<std::string, std::string>;

struct Case {
  std::string format, text;
  std::string content, reasoning;
  std::vector<Call> calls;
};

std::string shown(const SplitAnswer& answer) {
  std::string out = "content[" + answer.content + "] reasoning[" + answer.reasoning + "]";
  for (const auto& call : answer.calls) out += " " + call.name + "(" + call.arguments + ")";
  return out;
}

std::string shown(const Case& one) {
  SplitAnswer answer{one.content, one.reasoning, {}};
  for (const auto& [name, arguments] : one.calls) answer.calls.push_back({name, arguments});
  return shown(answer);
}

const char* const kWeatherSchema =
    R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"},
        "n": {"type": "array"}, "ok": {"type": "boolean"}, "note": {"type": ["string", "null"]},
        "any": {"description": "no type"}}})";

SplitOptions options_of(const std::string& format) {
  SplitOptions out;
  out.format = find_tool_format(format);
  EXPECT_TRUE(out.format != nullptr || format.empty()) << format;
  out.functions = {"f", "get_weather", "python"};
  out.types = {read_argument_types("get_weather", kWeatherSchema)};
  out.reasoning = {"<think>", "</think>"};
  return out;
}

/// Pieces end at `cuts`; all byte by byte where it is empty.
std::string split(const SplitOptions& options, const std::string& text,
                  const std::vector<std::size_t>& cuts, bool complete = true) {
  AnswerSplitter splitter(options);
  std::vector<AnswerPart> parts;
  std::size_t from = 0;
  for (const std::size_t cut : cuts) {
    splitter.push(std::string_view(text).substr(from, cut - from), parts);
    from = cut;
  }
  if (cuts.empty()) {
    for (; from < text.size(); ++from) {
      splitter.push(std::string_view(text).substr(from, 1), parts);
    }
  }
  splitter.push(std::string_view(text).substr(from), parts);
  splitter.finish(complete, parts);
  return shown(join_parts(parts));
}

void check(const SplitOptions& options, const Case& one, bool complete = true) {
  const std::string expected = shown(one);
  EXPECT_EQ(split(options, one.text, {one.text.size()}, complete), expected)
      << one.format << ": " << one.text;
  EXPECT_EQ(split(options, one.text, {}, complete), expected) << one.format << ": byte by byte";
  for (std::size_t i = 0; i <= one.text.size(); ++i) {
    ASSERT_EQ(split(options, one.text, {i}, complete), expected)
        << one.format << " cut at " << i << ": " << one.text;
  }
}

const std::string kParis = R"({"city": "Paris", "n": [1, {"a": "}\"{"}]})";
const std::string kBegins = "<｜tool▁calls▁begin｜>", kEnds = "<｜tool▁calls▁end｜>",
                  kOne = "<｜tool▁call▁begin｜>", kOneEnds = "<｜tool▁call▁end｜>",
                  kSep = "<｜tool▁sep｜>";

const std::string kSection = "<|tool_calls_section_begin|>",
                  kSectionEnd = "<|tool_calls_section_end|>", kCallOf = "<|tool_call_begin|>",
                  kArgumentsOf = "<|tool_call_argument_begin|>", kCallEnd = "<|tool_call_end|>";

std::string qwen(const std::string& name, const std::string& value) {
  return "<parameter=" + name + ">\n" + value + "\n</parameter>\n";
}

std::vector<Case> whole_calls() {
  const std::string fenced =
      kOne + "function" + kSep + "get_weather\n```json\n" + kParis + "\n```" + kOneEnds;
  return {
      {"hermes",
       "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": " + kParis + "}\n</tool_call>",
       "",
       "",
       {{"get_weather", kParis}}},
      {"hermes",
       "Let me see.\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n<tool_call>"
       "{\"arguments\": " +
           kParis + ", \"name\": \"get_weather\", \"id\": 7}</tool_call>\n",
       "Let me see.",
       "",
       {{"f", "{}"}, {"get_weather", kParis}}},
      {"hermes",
       "<think>\nHm: <tool_call>?\n</think>\n\n<tool_call>{\"name\":\"f\"}</tool_call>",
       "",
       "Hm: <tool_call>?",
       {{"f", "{}"}}},
      {"hermes", "{\"name\": \"f\", \"arguments\": {}}", "", "", {{"f", "{}"}}},
      {"llama3",
       "{\"name\": \"get_weather\", \"parameters\": " + kParis + "}",
       "",
       "",
       {{"get_weather", kParis}}},
      {"llama3",
       "{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"f\", \"parameters\": {}}",
       "",
       "",
       {{"f", "{}"}, {"f", "{}"}}},
      {"llama3",
       "<|python_tag|>{\"type\": \"function\", \"name\": \"f\", \"parameters\": {\"a\": 1}}",
       "",
       "",
       {{"f", "{\"a\": 1}"}}},
      {"llama3",
       "<|python_tag|>print(\"a\\n\")\n1 < 2",
       "",
       "",
       {{"python", "{\"code\": \"print(\\\"a\\\\n\\\")\\n1 < 2\"}"}}},
      {"mistral",
       "[TOOL_CALLS][{\"name\": \"get_weather\", \"arguments\": " + kParis +
           ", \"id\": \"123456789\"}, {\"name\": \"f\", \"arguments\": {}}]",
       "",
       "",
       {{"get_weather", kParis}, {"f", "{}"}}},
      {"mistral-args",
       "Yes.[TOOL_CALLS]get_weather[ARGS]" + kParis + "[TOOL_CALLS]f[ARGS]{}",
       "Yes.",
       "",
       {{"get_weather", kParis}, {"f", "{}"}}},
      {"mistral-args",
       "[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{\"a\": 1}",
       "",
       "",
       {{"f", "{\"a\": 1}"}}},
      {"deepseek-r1",
       kBegins + fenced + "\n" + fenced + kEnds,
       "",
       "",
       {{"get_weather", kParis}, {"get_weather", kParis}}},
      {"deepseek-v3.1",
       "<think>So.</think>Now:" + kBegins + kOne + "get_weather" + kSep + kParis + kOneEnds + kOne +
           "f" + kSep + "{}" + kOneEnds + kEnds,
       "Now:",
       "So.",
       {{"get_weather", kParis}, {"f", "{}"}}},
      {"functionary-v3.1",
       "<function=get_weather>" + kParis + "</function>",
       "",
       "",
       {{"get_weather", kParis}}},
      {"functionary-v3.1", "<|python_tag|>x = 1", "", "", {{"python", "{\"code\": \"x = 1\"}"}}},
      {"functionary-v3.2", "get_weather\n" + kParis, "", "", {{"get_weather", kParis}}},
      {"functionary-v3.2",
       "all\nIt rains.>>>f\n{}\n>>>get_weather\n" + kParis,
       "It rains.",
       "",
       {{"f", "{}"}, {"get_weather", kParis}}},
      {"functionary-v3.2", "python\nx = 1", "", "", {{"python", "{\"code\": \"x = 1\"}"}}},
      {"gpt-oss",
       "<|channel|>analysis<|message|>Look it up.<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.get_weather <|constrain|>json<|message|>" +
           kParis,
       "",
       "Look it up.",
       {{"get_weather", kParis}}},
      {"gpt-oss",
       " to=functions.f<|channel|>commentary json<|message|>{}<|call|>",
       "",
       "",
       {{"f", "{}"}}},
      {"gpt-oss",
       "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Four.",
       "Four.",
       "Hm.",
       {}},
      {"gpt-oss",
       "<|channel|>commentary<|message|>I will.<|end|><|start|>assistant<|channel|>commentary "
       "to=functions.f<|message|>{}",
       "I will.",
       "",
       {{"f", "{}"}}},
      {"gemma",
       "```tool_code\nget_weather(city='Pa\"ris', n=[1, None, True], d={'a': 1.5})\n```",
       "",
       "",
       {{"get_weather", "{\"city\": \"Pa\\\"ris\", \"n\": [1, null, true], \"d\": {\"a\": 1.5}}"}}},
      {"gemma",
       "Sure.\n```json\n{\"name\": \"f\", \"parameters\": {}}\n```\n",
       "Sure.",
       "",
       {{"f", "{}"}}},
      {"gemma",
       "```tool_call\n[{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"f\"}]\n```",
       "",
       "",
       {{"f", "{}"}, {"f", "{}"}}},
      {"generic",
       " {\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"f\", \"arguments\": {}}\n",
       "",
       "",
       {{"f", "{}"}, {"f", "{}"}}},
      {"generic", "[{\"name\": \"f\", \"arguments\": {}}]", "", "", {{"f", "{}"}}},
      {"generic",
       "```json\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n```",
       "",
       "",
       {{"f", "{\"a\": 1}"}}},
      {"qwen3-coder",
       "Look.\n<tool_call>\n<function=get_weather>\n" + qwen("city", "Pa\"ris\n <b>\n</par") +
           qwen("days", "3") + qwen("n", R"([1, {"a": "}\"{"}])") + "</function>\n</tool_call>\n",
       "Look.",
       "",
       {{"get_weather",
         R"({"city": "Pa\"ris\n <b>\n</par", "days": 3, "n": [1, {"a": "}\"{"}]})"}}},
      {"qwen3-coder",
       "<think>So.</think><tool_call><function=f>\n</function><function=f>" + qwen("a", "") +
           qwen("b", "\n1\n") + "</function></tool_call>\n<tool_call>\n<function=f></function>",
       "",
       "So.",
       {{"f", "{}"}, {"f", R"({"a": "", "b": "\n1\n"})"}, {"f", "{}"}}},
      {"qwen3-coder",
       "Now:\n<function=get_weather>" + qwen("ok", "True") + qwen("note", "null") +
           qwen("days", "five") + qwen("n", "['a', None]") + qwen("any", "5") + qwen("other", "6") +
           qwen("ok", "False") + "</function>\n</tool_call>",
       "Now:",
       "",
       {{"get_weather",
         R"({"ok": true, "note": null, "days": "five", "n": ["a", null], "any": "5", )"
         R"("other": "6"})"}}},
      {"qwen3-coder",
       "<tool_call>\n<function=f>\n" + qwen("a", "1") + "and more",
       "\nand more",
       "",
       {{"f", R"({"a": "1"})"}}},
      {"glm-4.5",
       "Look.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris\n</arg_value>\n"
       "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n<tool_call>f\n</"
       "tool_call>",
       "Look.",
       "",
       {{"get_weather", R"({"city": "Paris\n", "days": 3})"}, {"f", "{}"}}},
      {"glm-4.7",
       "<think>Hm.</think><tool_call>f<arg_key>a</arg_key><arg_value>[1, 2]</arg_value><arg_key>b"
       "</arg_key><arg_value>x </a</arg_value><arg_key>c</arg_key><arg_value>\"q\"</arg_value>"
       "</tool_call>",
       "",
       "Hm.",
       {{"f", R"({"a": [1, 2], "b": "x </a", "c": "q"})"}}},
      {"kimi-k2",
       "Look." + kSection + kCallOf + "functions.get_weather:0" + kArgumentsOf + kParis + kCallEnd +
           kCallOf + "functions.f:1" + kArgumentsOf + "{}" + kCallEnd + kSectionEnd,
       "Look.",
       "",
       {{"get_weather", kParis}, {"f", "{}"}}},
      {"kimi-k2",
       kSection + "\n" + kCallOf + " f " + kArgumentsOf + " {\"a\": 1} " + kCallEnd + kSectionEnd,
       "",
       "",
       {{"f", "{\"a\": 1}"}}},
      {"", "<think>a\n\nb</think>\n\nc </think>", "c </think>", "a\n\nb", {}},
      {"", "no <think>marks</think> here\n", "no <think>marks</think> here\n", "", {}},
  };
}

TEST(AnswerSplitter, CallsOfEveryFormatAtEveryCut) {
  std::set<std::string> seen;
  for (const Case& one : whole_calls()) {
    seen.insert(one.format);
    check(options_of(one.format), one);
    for (const auto& [name, arguments] : one.calls) {
      EXPECT_TRUE(nlohmann::json::accept(arguments)) << arguments;
    }
  }
  for (const ToolFormat& format : tool_formats()) {
    EXPECT_TRUE(seen.contains(std::string(format.name))) << format.name;
  }
}

TEST(AnswerSplitter, WhatIsNoCallIsContentByteForByte) {
  const std::vector<std::pair<std::string, std::string>> texts = {
      {"hermes", "A <tool_call> is a tag, <tool_call>{\"name\": 1}</tool_call> too, <tool_"},
      {"hermes", "<tool_call>\n{\"name\": \"unknown\", \"arguments\": {}}\n</tool_call>\n"},
      {"hermes", "<tool_call>{\"name\": \"f\" \"arguments\": {}}</tool_call>"},
      {"hermes", "  \n \t spaces \n\n stay  \n"},
      {"llama3", "{\"name\": \"Bob\", \"age\": 3}"},
      {"llama3", "{\"title\": \"x\"}\n"},
      {"llama3", "Look: {\"name\": \"f\", \"parameters\": {}}"},
      {"mistral", "[TOOL_CALLS]"},
      {"mistral", "[TOOL_CALLS] [1, 2] [TOOL"},
      {"mistral-args", "[TOOL_CALLS]f[ARGS]no"},
      {"deepseek-r1", kBegins + kOne + "function" + kSep + "nothing\n```json\n{}\n```"},
      {"deepseek-r1", kBegins + kEnds + " none"},
      {"functionary-v3.1", "a <function=> b <function=g>{}</function>"},
      {"gpt-oss", "no channel at all"},
      {"gemma", "```json\n{\"a\": 1}\n```\nand ```tool_code\nprint('x')\n```\n```python\n1\n```"},
      {"qwen3-coder", "A <tool_call> or <function=> or <function=f>, <function=f>\n<para, <func"},
      {"qwen3-coder",
       "<tool_call>\n<function=g>\n" + qwen("a", "1") + "</function>\n</tool_call>\n"},
      {"qwen3-coder", "<tool_call>\n<function=f>\n<parameter=a\nb>\n1\n</parameter>\n</function>"},
      {"qwen3-coder", "<function=f><parameter=<x>>1</parameter></function>"},
      {"glm-4.5", "<tool_call>g\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>"},
      {"glm-4.5", "<tool_call>f\n<arg_key>a</arg_key> <arg_valu>1</arg_value>\n</tool_call>"},
      {"glm-4.7", "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"},
      {"kimi-k2", kSection + kSectionEnd},
      {"kimi-k2",
       kSection + kCallOf + "functions.g:0" + kArgumentsOf + "{}" + kCallEnd + kSectionEnd},
      {"kimi-k2", kCallOf + "functions.f:0" + kArgumentsOf + "{}"},
      {"generic", "{\"answer\": [1, 2]}"},
      {"generic", "[1, 2, 3]\n"},
      {"generic", "{{{{ [[[["},
  };
  for (const auto& [format, text] : texts) check(options_of(format), {format, text, text, "", {}});
}

TEST(AnswerSplitter, CutOffCallsStayAsFarAsTheyCame) {
  const std::string head = "<tool_call>\n{\"name\": \"f\", \"arguments\": ";
  check(options_of("hermes"), {"hermes", head + "{\"a\": \"b", "", "", {{"f", "{\"a\": \"b"}}},
        false);
  check(options_of("hermes"), {"hermes", head + "{}", "", "", {{"f", "{}"}}}, false);
  check(options_of("hermes"), {"hermes", head + "{}}\n</tool_", "", "", {{"f", "{}"}}}, false);
  const std::string name = "<tool_call>\n{\"name\": \"f";
  check(options_of("hermes"), {"hermes", name, name, "", {}}, false);
  check(options_of("llama3"),
        {"llama3", "<|python_tag|>print(", "", "", {{"python", "{\"code\": \"print("}}}, false);
  check(options_of("hermes"), {"hermes", "<think>I wonder", "", "I wonder", {}}, false);
  const std::string weather = "<tool_call>\n<function=get_weather>\n";
  const auto qwen_cut = [&](const std::string& text, const std::string& arguments, bool complete) {
    check(options_of("qwen3-coder"),
          {"qwen3-coder", weather + text, "", "", {{"get_weather", arguments}}}, complete);
  };
  qwen_cut("<parameter=city>\nPar</p", R"({"city": "Par)", false);
  qwen_cut("<parameter=days>\n1", "{", false);
  qwen_cut(qwen("days", "1") + "<param", R"({"days": 1)", false);
  qwen_cut(qwen("days", "1") + "</function>\n</tool", R"({"days": 1})", false);
  // A model that says that it is done has written all there is.
  qwen_cut("<parameter=city>\nPar</p", R"({"city": "Par</p"})", true);
  qwen_cut("<parameter=days>\n1\n", R"({"days": 1})", true);
  qwen_cut(qwen("days", "1"), R"({"days": 1})", true);
  check(options_of("qwen3-coder"), {"qwen3-coder", weather, weather, "", {}}, false);
  check(options_of("glm-4.5"),
        {"glm-4.5", "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>x", "", "", {{"f", "{"}}},
        false);
  check(options_of("kimi-k2"),
        {"kimi-k2",
         kSection + kCallOf + "functions.f:0" + kArgumentsOf + "{\"a",
         "",
         "",
         {{"f", "{\"a"}}},
        false);
  check(options_of("gpt-oss"), {"gpt-oss", "<|channel|>anal", "", "", {}}, false);
}

TEST(AnswerSplitter, ReasoningThatThePromptHasOpened) {
  SplitOptions options = options_of("hermes");
  options.in_reasoning = true;
  check(options,
        {"", "\nFirst. <tool_call>\n</think>\n\nThen.\n", "Then.\n", "First. <tool_call>", {}});
  check(options, {"", "never ends ", "", "never ends ", {}}, false);
}

TEST(AnswerSplitter, HoldsNoMoreThanItsLimit) {
  const std::string text = "<tool_call>" + std::string(1 << 20, ' ') + "x";
  AnswerSplitter splitter(options_of("hermes"));
  std::vector<AnswerPart> parts;
  splitter.push(text.substr(0, 200000), parts);
  EXPECT_FALSE(parts.empty());
  splitter.push(text.substr(200000), parts);
  splitter.finish(true, parts);
  EXPECT_EQ(join_parts(parts).content, text);
  const std::string many(200000, '1');
  EXPECT_EQ(split(options_of("qwen3-coder"),
                  "<function=get_weather>" + qwen("days", many + "x") + qwen("city", many + many) +
                      "</function>",
                  {100000, 300000}),
            "content[] reasoning[] get_weather({\"days\": \"" + many + "x\", \"city\": \"" + many +
                many + "\"})");
  const std::string blank(100000, ' ');
  EXPECT_EQ(split(options_of("qwen3-coder"), "<function=f>" + qwen("a", "1") + blank + "<par", {1}),
            "content[\n" + blank + "<par] reasoning[] f({\"a\": \"1\"})");
  const std::string hostile(300000, '{');
  EXPECT_EQ(split(options_of("generic"), hostile, {hostile.size()}),
            "content[" + hostile + "] reasoning[]");
}

TEST(ToolFormats, AreRecognisedByTheirTemplates) {
  const std::vector<std::pair<const char*, const char*>> templates = {
      {"hermes", "{% if tools %}<tool_call>\\n{\\\"name\\\": <n>, \\\"arguments\\\": <a>}"},
      {"llama3", "<|start_header_id|>{% if tools %}{\"name\": x, \"parameters\": y}"},
      {"mistral", "{{ '[AVAILABLE_TOOLS]' + tools }}[TOOL_CALLS]["},
      {"mistral-args", "{{ tools }}[TOOL_CALLS]{{ name }}[ARGS]"},
      {"deepseek-r1", "{{ tools }}<｜tool▁calls▁begin｜>```json"},
      {"deepseek-v3.1", "{{ tools }}<｜tool▁calls▁begin｜>"},
      {"qwen3-coder", "{{ tools }}<tool_call>\\n<function=' ~ n ~ '>\\n<parameter=' ~ k"},
      {"glm-4.5", "{{ tools }}<tool_call>{{ n }}\n<arg_key>{{ k }}</arg_key>\n<arg_value>"},
      {"glm-4.7", "{{ tools }}<tool_call>{{ n }}<arg_key>{{ k }}</arg_key><arg_value>"},
      {"kimi-k2", "{{ tools }}<|tool_calls_section_begin|><|tool_call_argument_begin|>"},
      {"functionary-v3.1", "{{ tools }}<function=x>{}</function><|python_tag|>"},
      {"functionary-v3.2", "{{ tools }}>>>all\\n"},
      {"gpt-oss", "{{ tools }}<|channel|>final<|message|>"},
      {"gemma", "<start_of_turn>{{ message.content }}"},
      {"generic", "{{ message.content }}"},
  };
  for (const auto& [name, source] : templates) {
    const ToolFormat* format = recognise_tool_format(source);
    ASSERT_NE(format, nullptr) << source;
    EXPECT_EQ(format->name, name);
  }
  EXPECT_EQ(recognise_tool_format("{{ tools }}<seed:tool_call><function=f><parameter=a>"), nullptr);
  EXPECT_EQ(recognise_tool_format("{{ tools }}<function=f><parameter=a></function>"), nullptr);
  EXPECT_EQ(recognise_tool_format("{{ tools | tojson }} own way"), nullptr);
  EXPECT_EQ(recognise_reasoning("x</think>").open, "<think>");
  EXPECT_TRUE(recognise_reasoning("x").close.empty());
}

}  // namespace
}  // namespace cyb
