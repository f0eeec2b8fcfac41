// Rendering equals jinja2's, byte for byte, on the templates and constructs of golden/template.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "text/template/chat_json.hpp"
#include "text/template/chat_template.hpp"

namespace cyb {
namespace {

using Json = nlohmann::ordered_json;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

ChatValue value_of(const Json& json) {
  const auto value = parse_chat_json(json.dump(), "a case");
  EXPECT_TRUE(value) << value.error().text();
  return value ? *value : ChatValue::null();
}

ChatInput input_of(const Json& vars) {
  ChatInput input;
  for (const auto& [key, value] : vars.items()) {
    if (key == "messages") {
      for (const Json& message : value) input.messages.push_back(value_of(message));
    } else if (key == "tools") {
      input.tools = value_of(value);
    } else if (key == "documents") {
      input.documents = value_of(value);
    } else if (key == "add_generation_prompt") {
      input.add_generation_prompt = value.get<bool>();
    } else if (key == "bos_token") {
      input.bos_token = value.get<std::string>();
    } else if (key == "eos_token") {
      input.eos_token = value.get<std::string>();
    } else {
      input.variables.emplace_back(key, value_of(value));
    }
  }
  // 2026-07-26 15:04:05, a Sunday.
  input.now.tm_year = 126;
  input.now.tm_mon = 6;
  input.now.tm_mday = 26;
  input.now.tm_hour = 15;
  input.now.tm_min = 4;
  input.now.tm_sec = 5;
  input.now.tm_yday = 206;
  return input;
}

void expect_failure(const Json& one, const Error& error) {
  EXPECT_EQ(error.kind(), ErrorKind::kTemplate);
  const std::string text = error.text();
  if (one["error_type"] == "TemplateError") {
    EXPECT_TRUE(text.ends_with(": " + one["error"].get<std::string>())) << text;
  }
  if (one.contains("line")) {
    EXPECT_TRUE(
        text.starts_with("template: line " + std::to_string(one["line"].get<int>()) + ", column "))
        << text;
  }
}

void expect_case(const Json& one, const std::string& source) {
  SCOPED_TRACE(one["name"].get<std::string>());
  const auto made = Template::compile(source);
  if (!made) {
    ASSERT_TRUE(one.contains("error")) << made.error().text();
    return expect_failure(one, made.error());
  }
  const auto rendered = made->render(input_of(one["vars"]));
  if (!rendered) {
    ASSERT_TRUE(one.contains("error")) << rendered.error().text();
    return expect_failure(one, rendered.error());
  }
  ASSERT_TRUE(one.contains("expected")) << "rendered, but jinja2 fails: " << one["error"];
  EXPECT_EQ(joined_text(*rendered), one["expected"].get<std::string>());
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, EqualsJinja2) {
  const std::filesystem::path folder = std::filesystem::path(CYB_TESTS_DIR) / "golden" / "template";
  const Json cases = Json::parse(read_file(folder / (GetParam() + ".cases.json")));
  ASSERT_GT(cases.size(), 20U);
  const bool own = GetParam() == "constructs";
  const std::string source = own ? std::string() : read_file(folder / (GetParam() + ".jinja"));
  for (const Json& one : cases) expect_case(one, own ? one["template"].get<std::string>() : source);
}

std::vector<std::string> names() {
  return {"constructs", "gemma3",       "llama2",        "llama3", "llama3.1",
          "mistral",    "mistral-nemo", "qwen2.5-coder", "qwen3",  "smollm2"};
}

INSTANTIATE_TEST_SUITE_P(Template, Golden, ::testing::ValuesIn(names()), [](const auto& named) {
  std::string name = named.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

}  // namespace
}  // namespace cyb
