// Which format a model has, by the text of its template.
#include "text/tools/tool_format.hpp"

namespace cyb {
namespace {

constexpr std::string_view kDeepSeekCalls = "<\uFF5Ctool\u2581calls\u2581begin\uFF5C>";

/// What a template's text has, and has not; the first line that fits decides.
struct Sign {
  std::string_view format, has, has_too{}, has_not{};
};
constexpr Sign kSigns[] = {
    {"gpt-oss", "<|channel|>", "<|message|>"},
    {"functionary-v3.2", ">>>all"},
    {"qwen3-coder", "<tool_call>", "<parameter="},
    {"glm-4.7", "</arg_key><arg_value>", "<tool_call>"},
    {"glm-4.5", "<arg_key>", "<tool_call>"},
    {"kimi-k2", "<|tool_calls_section_begin|>", "<|tool_call_argument_begin|>"},
    {"functionary-v3.1", "<function=", "</function>", "<parameter="},
    {"mistral-args", "[TOOL_CALLS]", "[ARGS]"},
    {"mistral", "[TOOL_CALLS]"},
    {"deepseek-r1", kDeepSeekCalls, "```json"},
    {"deepseek-v3.1", kDeepSeekCalls},
    {"hermes", "<tool_call>", "\"arguments\"", "<function="},
    {"hermes", "<tool_call>", "\\\"arguments\\\"", "<function="},
    {"llama3", "\"parameters\": ", "<|start_header_id|>"},
    {"llama3", "<|python_tag|>"},
    {"gemma", "<start_of_turn>", "", "tools"},
    {"generic", "", "", "tools"},
};

}  // namespace

const ToolFormat* recognise_tool_format(std::string_view source) {
  const auto has = [&](std::string_view text) {
    return source.find(text) != std::string_view::npos;
  };
  for (const Sign& sign : kSigns) {
    const bool fits = has(sign.has) && has(sign.has_too);
    if (fits && (sign.has_not.empty() || !has(sign.has_not))) return find_tool_format(sign.format);
  }
  return nullptr;
}

ReasoningMarks recognise_reasoning(std::string_view source) {
  static constexpr ReasoningMarks kMarks[] = {{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}};
  for (const ReasoningMarks& marks : kMarks) {
    if (source.find(marks.close) != std::string_view::npos) return marks;
  }
  return {};
}

bool takes_code(std::string_view function) {
  return function == "python" || function == "code_interpreter" || function == "ipython";
}

}  // namespace cyb
