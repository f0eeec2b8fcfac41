// The pieces of the command line that need no model: numbers, id lists, text for terminals, sizes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "cli/config_json.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/output_file.hpp"
#include "cli/text_input.hpp"
#include "cli/usage.hpp"
#include "support/process.hpp"

namespace cyb::cli {
namespace {

TEST(Numbers, OnlyWholeTexts) {
  EXPECT_EQ(parse_integer("0"), 0u);
  EXPECT_EQ(parse_integer("18446744073709551615"), UINT64_MAX);
  for (const char* bad :
       {"", "-1", "+1", " 1", "1 ", "1.0", "0x10", "18446744073709551616", "1e3", "one"}) {
    EXPECT_FALSE(parse_integer(bad)) << bad;
  }
  EXPECT_EQ(parse_real("0.8"), 0.8);
  EXPECT_EQ(parse_real("1e-3"), 1e-3);
  for (const char* bad : {"", "nan", "inf", "0.8x", " 1", "1,5", "0x1p3"})
    EXPECT_FALSE(parse_real(bad)) << bad;
}

TEST(Ids, Lists) {
  EXPECT_EQ(*parse_ids("1,2,3"), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(*parse_ids("[1, 2]\n"), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(*parse_ids("1 2\n3\r\n"), (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_EQ(parse_ids("1,x").error().text(), "input: \"x\" is not a token id");
  EXPECT_EQ(parse_ids("-1").error().text(), "input: \"-1\" is not a token id");
  EXPECT_FALSE(parse_ids("2147483648"));
  EXPECT_EQ(parse_ids(" ").error().text(), "input: no token ids");
  EXPECT_EQ(parse_ids("[]").error().text(), "input: no token ids");
  EXPECT_EQ(parse_ids("1,,2").error().text(), "input: element 2 of the token ids is empty");
  EXPECT_EQ(parse_ids(",1").error().text(), "input: element 1 of the token ids is empty");
  EXPECT_EQ(parse_ids("[1, ]").error().text(), "input: element 2 of the token ids is empty");
  EXPECT_EQ(parse_ids("[1").error().text(), "input: \"[1\" is not a token id");
}

TEST(Lists, EveryElementCounts) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split_list("1,2"), (Parts{"1", "2"}));
  EXPECT_EQ(split_list("1,,2"), (Parts{"1", "", "2"}));
  EXPECT_EQ(split_list("1,"), (Parts{"1", ""}));
  EXPECT_EQ(split_list(""), (Parts{""}));
}

TEST(TerminalText, ControlCharactersAreNotObeyed) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(terminal_safe("a\tb\n\xC3\xA9"), "a\tb\n\xC3\xA9");
  EXPECT_EQ(terminal_safe("\x1b[2J\x07\x7f\r"), bad + "[2J" + bad + bad + bad);
  EXPECT_EQ(terminal_safe("\xC2\x9B"), bad);  // CSI as one C1 character
  EXPECT_EQ(terminal_safe("\xFFx"), bad + "x");
}

TEST(Sizes, Text) {
  EXPECT_EQ(size_text(0), "0 bytes");
  EXPECT_EQ(size_text(1023), "1023 bytes");
  EXPECT_EQ(size_text(1536), "1.5 KiB");
  EXPECT_EQ(size_text(98362432), "93.8 MiB");
}

TEST(Arguments, TextComesFromOnePlace) {
  const TextWanted wanted{"the text", "with --file FILE"};
  EXPECT_EQ(*text_argument("a", std::nullopt, wanted), "a");
  EXPECT_EQ(text_argument("a", "f", wanted).error().text(),
            "the text is given twice: as argument and as file");
  EXPECT_EQ(text_argument(std::nullopt, "/no/such/file", wanted).error().kind(), ErrorKind::kIo);
  const auto bad = text_argument("ab\xFFz", std::nullopt, wanted);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().text(), "input: the text is not UTF-8: byte 0xFF at offset 2");
  EXPECT_EQ(exit_code(bad.error().kind()), 1);
}

TEST(Arguments, TextComesFromFilesAndPipes) {
  const test::TemporaryFolder folder;
  const std::string file = folder.file("text"), pipe = folder.file("pipe");
  std::ofstream(file) << "from a file";
  EXPECT_EQ(*read_text(file), "from a file");
  EXPECT_EQ(read_text(folder.path()).error().kind(), ErrorKind::kIo);
  ASSERT_EQ(test::run_process({"mkfifo", pipe}).exit_code, 0);
  // Both ends, so that no open waits for the other side.
  std::fstream writer(pipe, std::ios::in | std::ios::out);
  writer << "from a pipe" << std::flush;
  std::thread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    writer.close();
  });
  const auto text = read_text(pipe);
  closer.join();
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_EQ(*text, "from a pipe");
}

TEST(OutputFiles, NothingIsOverwrittenUnasked) {
  const test::TemporaryFolder folder;
  const std::string file = folder.file("out.npy");
  EXPECT_TRUE(check_output_file(file, false));
  std::ofstream(file) << "precious";
  EXPECT_EQ(check_output_file(file, false).error().text(),
            "\"" + file + "\" exists: --force overwrites it");
  EXPECT_TRUE(check_output_file(file, true));
  EXPECT_FALSE(check_output_file(folder.path(), false));
  EXPECT_FALSE(check_output_file("-", true));
  const std::string link = folder.file("link");
  std::filesystem::create_symlink(folder.file("nowhere"), link);
  EXPECT_FALSE(check_output_file(link, false));
}

TEST(Names, WhatWasMeant) {
  const std::vector<std::string> names = {
      "--temperature", "--top-k", "--ctx", "--max-tokens", "--repetition-penalty", "-q"};
  EXPECT_EQ(closest_name("--temprature", names), "--temperature");
  EXPECT_EQ(closest_name("--temp", names), "--temperature");
  EXPECT_EQ(closest_name("--ctx-size", names), "--ctx");
  EXPECT_EQ(closest_name("--repeat-penalty", names), "--repetition-penalty");
  EXPECT_EQ(closest_name("--topk", names), "--top-k");
  EXPECT_EQ(closest_name("--frobnicate", names), "");
  EXPECT_EQ(closest_name("-5", names), "");
  EXPECT_EQ(closest_name(std::string(1000, 'x'), names), "");
}

TEST(Configuration, AnyDepthBecomesJson) {
  ConfigTable table;
  table.set("b", true);
  table.table("t").set("list", ConfigArray{1, ConfigArray{2.5, "x"}, ConfigArray{}});
  table.set("z", 3);
  EXPECT_EQ(config_json(table).dump(), R"({"b":true,"t":{"list":[1,[2.5,"x"],[]]},"z":3})");
  ConfigValue deep = 7;
  for (int i = 0; i < 5000; ++i) {
    ConfigArray outer;
    outer.push_back(std::move(deep));
    deep = std::move(outer);
  }
  const Json json = config_json(deep);
  std::size_t depth = 0;
  for (const Json* at = &json; at->is_array(); at = &at->front()) ++depth;
  EXPECT_EQ(depth, 5000u);
}

}  // namespace
}  // namespace cyb::cli
