// Functions, calls and results for models whose templates know none of them.
#include <gtest/gtest.h>

#include "text/template/chat_json.hpp"
#include "text/tools/tool_prompt.hpp"

namespace cyb {
namespace {

std::vector<ChatValue> list(std::string_view json) {
  auto parsed = parse_chat_json(json, "test");
  EXPECT_TRUE(parsed);
  return parsed ? parsed->items : std::vector<ChatValue>();
}

const char* const kConversation = R"([
  {"role": "user", "content": "Weather?"},
  {"role": "assistant", "content": null, "tool_calls": [
    {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}},
    {"id": "2", "type": "function", "function": {"name": "f", "arguments": {}}}]},
  {"role": "tool", "tool_call_id": "1", "content": "rain"},
  {"role": "tool", "tool_call_id": "2", "content": "sun"},
  {"role": "user", "content": "Thanks"}])";
const char* const kTools = R"([{"type": "function", "function": {"name": "f"}}])";

TEST(ToolPrompt, GenericModelsReadJson) {
  auto messages = list(kConversation);
  write_tools_as_text(*find_tool_format("generic"), list(kTools), messages);
  const std::string text = chat_json_text(ChatValue::list(messages));
  ASSERT_EQ(messages.size(), 5u) << text;
  EXPECT_TRUE(text.starts_with(R"([{"role":"system","content":"You can call functions.)")) << text;
  EXPECT_NE(text.find(R"(\n{\"name\":\"f\"}"})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"({"role":"assistant","content":"{\"name\": \"f\", \"arguments\": )"
                      R"({\"a\":1}}\n{\"name\": \"f\", \"arguments\": {}}"})"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"({"role":"user","content":"<tool_response>\nrain\n</tool_response>\n)"
                      R"(<tool_response>\nsun\n</tool_response>"})"),
            std::string::npos)
      << text;
}

TEST(ToolPrompt, GemmaHasFencesAndNoSystemRole) {
  auto messages = list(kConversation);
  write_tools_as_text(*find_tool_format("gemma"), list(kTools), messages);
  const std::string text = chat_json_text(ChatValue::list(messages));
  ASSERT_EQ(messages.size(), 4u) << text;
  EXPECT_TRUE(text.starts_with(R"([{"role":"user","content":"You can call functions.)")) << text;
  EXPECT_NE(text.find(R"(\n\nWeather?"})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(```tool_output\nrain\n```)"), std::string::npos) << text;
}

TEST(ToolPrompt, WithoutToolsOnlyCallsAreWritten) {
  auto messages = list(kConversation);
  write_tools_as_text(*find_tool_format("generic"), {}, messages);
  EXPECT_EQ(messages.size(), 4u);
  EXPECT_EQ(messages[0].members[1].second.text, "Weather?");
}

}  // namespace
}  // namespace cyb
