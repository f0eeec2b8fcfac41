// Answers of models: any bytes, in any format and cut anywhere, give the same parts; nothing is
// lost: without marks of reasoning and without calls, the content is the text. Arguments between
// tags are JSON once the answer is complete.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "base/utf8.hpp"
#include "text/tools/answer_splitter.hpp"

namespace {

using cyb::AnswerPart;

std::vector<AnswerPart> split(const cyb::SplitOptions& options, std::string_view text,
                              std::size_t piece, bool complete) {
  cyb::AnswerSplitter splitter(options);
  std::vector<AnswerPart> parts;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    splitter.push(text.substr(at, piece), parts);
  }
  splitter.finish(complete, parts);
  return parts;
}

void check(const cyb::SplitOptions& options, std::string_view text, std::size_t piece,
           bool complete) {
  const auto whole = cyb::join_parts(split(options, text, text.size() + 1, complete));
  const auto cut = cyb::join_parts(split(options, text, piece, complete));
  if (whole.content != cut.content || whole.reasoning != cut.reasoning) std::abort();
  if (whole.calls.size() != cut.calls.size()) std::abort();
  const bool valid = cyb::utf8_find_invalid(text) == std::string_view::npos;
  for (std::size_t i = 0; i < whole.calls.size(); ++i) {
    const auto &a = whole.calls[i], &b = cut.calls[i];
    if (a.name != b.name || a.arguments != b.arguments) std::abort();
    if (a.name != "f" && a.name != "python") std::abort();
    const bool tagged = options.format->tags != nullptr && complete && valid;
    if (tagged && !nlohmann::json::accept(a.arguments)) std::abort();
  }
  const bool channels = options.format != nullptr && options.format->channels;
  const bool opened = options.format != nullptr && !options.format->starts_with.empty();
  const bool plain = options.reasoning.close.empty() && !options.in_reasoning;
  if (plain && !channels && !opened && whole.calls.empty() && whole.content != text) std::abort();
}

}  // namespace

/// The first byte picks the format, the second how it is cut; the rest is the answer.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const auto formats = cyb::tool_formats();
  const std::size_t pick = data[0] % (formats.size() + 1);
  cyb::SplitOptions options;
  options.format = pick == formats.size() ? nullptr : &formats[pick];
  options.functions = {"f", "python"};
  options.types = {cyb::read_argument_types("f", R"({"properties": {"a": {"type": "integer"},
      "b": {"type": ["array", "null"]}, "c": {"type": "string"}, "d": {"type": "boolean"}}})")};
  if ((data[1] & 64U) != 0) options.reasoning = {"<think>", "</think>"};
  options.in_reasoning = (data[1] & 192U) == 192U;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  check(options, text, 1 + data[1] % 8U, (data[1] & 32U) != 0);
  return 0;
}
