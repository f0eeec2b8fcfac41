// render: a template file or a model's own template, byte for byte, and its errors.
#include <gtest/gtest.h>

#include <fstream>

#include "e2e/program.hpp"
#include "support/text_checkpoint.hpp"

namespace cyb::test {
namespace {

struct Files {
  Program program;
  std::string templ = program.file("t.jinja"), messages = program.file("m.json");
  Files(const std::string& source, const std::string& json) {
    std::ofstream(templ, std::ios::binary) << source;
    std::ofstream(messages, std::ios::binary) << json;
  }
  ProcessResult render(std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"render", "--template", templ, "--messages", messages};
    all.insert(all.end(), more.begin(), more.end());
    return program.run(all);
  }
};

TEST(Render, AFileWithEverythingThatATemplateSees) {
  const Files files(
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}>{% endif %}{{ tools|length if tools }}{{ k }}{{ eos_token "
      "}}\n\n",
      R"([{"role": "user", "content": "né\n"}])");
  const std::string tools = files.program.file("tools.json");
  std::ofstream(tools) << R"([{"name": "f"}, {"name": "g"}])";
  const ProcessResult plain = files.render();
  EXPECT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_EQ(plain.out, "[user]né\n\n");
  const ProcessResult all =
      files.render({"--add-generation-prompt", "--tools", tools, "--bos", "<s>", "--eos", "</s>",
                    "--template-arg", "k={\"a\": 1}"});
  EXPECT_EQ(all.out, "<s>[user]né\n>2{'a': 1}</s>\n");
  const auto json = Program::json(files.render({"--json"}));
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["text"], "[user]né\n\n");
}

TEST(Render, ATemplatesOwnErrorHasItsMessageAndPlace) {
  const Files files("line\n  {{ raise_exception('roles must alternate') }}", "[]");
  const ProcessResult raised = files.render();
  EXPECT_EQ(raised.exit_code, 2);
  EXPECT_EQ(raised.out, "");
  EXPECT_NE(raised.err.find("line 2, column 21"), std::string::npos) << raised.err;
  EXPECT_NE(raised.err.find("roles must alternate"), std::string::npos) << raised.err;
  const Files broken("{% if %}", "[]");
  EXPECT_EQ(broken.render().exit_code, 2);
}

TEST(Render, WhatIsWrongWithTheInputIsNamed) {
  const Files files("x", "{}");
  EXPECT_NE(files.render().err.find("is not a JSON list"), std::string::npos);
  const Files text("x", "[\"hi\"]");
  EXPECT_NE(text.render().err.find("message 1 is not an object"), std::string::npos);
  const Files good("x", "[]");
  const ProcessResult argument = good.render({"--template-arg", "k=high"});
  EXPECT_EQ(argument.exit_code, 1);
  EXPECT_NE(argument.err.find("text needs quotes: k='\"...\"'"), std::string::npos) << argument.err;
  EXPECT_EQ(good.render({"--template-arg", "k"}).exit_code, 1);
  for (const char* own : {"messages=[]", "tools=[]", "documents=[]", "add_generation_prompt=true",
                          "bos_token=\"<s>\"", "eos_token=\"</s>\""}) {
    EXPECT_EQ(good.render({"--template-arg", own}).exit_code, 1) << own;
  }
  const ProcessResult twice = good.render({"--template-arg", "k=1", "--template-arg", "k=2"});
  EXPECT_NE(twice.err.find("k is given twice"), std::string::npos) << twice.err;
  EXPECT_EQ(good.render({"a-model"}).exit_code, 1);
  EXPECT_EQ(good.program.run({"render", "--messages", good.messages}).exit_code, 1);
  EXPECT_EQ(good.program.run({"render", "--template", good.templ}).exit_code, 1);
}

TEST(Render, AModelsOwnTemplate) {
  const Files files("x", R"([{"role": "user", "content": "Hi"}])");
  const ProcessResult without =
      files.program.run({"render", golden("gguf/llama.gguf"), "--messages", files.messages});
  EXPECT_EQ(without.exit_code, 2) << without.out;
  EXPECT_NE(without.err.find("no_chat_template"), std::string::npos) << without.err;
  const std::string folder = files.program.file("checkpoint");
  ASSERT_TRUE(write_text_checkpoint(folder));
  const ProcessResult own = files.program.run(
      {"render", folder, "--messages", files.messages, "--add-generation-prompt"});
  EXPECT_EQ(own.exit_code, 0) << own.err;
  EXPECT_EQ(own.out, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

}  // namespace
}  // namespace cyb::test
