// 500 texts and some conversations, the same on every machine.
#include <array>
#include <cstdint>

#include "api/check/rows.hpp"
#include "base/utf8.hpp"

namespace cyb::api {
namespace {

constexpr std::size_t kTexts = 500;

constexpr std::array kFixed = {
    "",
    " ",
    "  ",
    "\n",
    "\n\n\n",
    "\t \t",
    "\r\n",
    "Hello, world!",
    " leading",
    "trailing ",
    "a  b   c    d",
    "3333+777",
    "1234567",
    "0001",
    "3.14159e-10",
    "1,234,567.89",
    "4 \u00bd months",
    "caf\u00e9 cafe\u0301",
    "\u1100\u1161\u11a8 \uac01",
    "\ufb01 \uff08\uff21\uff09",
    "\u6f22\u5b57\u3068\u304b\u306a\u4ea4\u3058\u308a\u6587",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002",
    "\ud55c\uad6d\uc5b4 \ubb38\uc7a5",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "\u05e9\u05dc\u05d5\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!",
    "\u0391\u03b8\u03ae\u03bd\u03b1",
    "\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466",
    "\U0001F44D\U0001F3FD \U0001F1E9\U0001F1EA \u2764\ufe0f",
    "\u0001\u0002\u001f\u007f",
    "zero\u200bwidth\u200cjoin\u200d",
    "\u00a0\u2003\u3000wide spaces",
    "\ufeffbom",
    "\ufffd",
    "\U0010fffd",
    "it's I'm they'll WE'VE don\u2019t",
    "snake_case camelCase PascalCase",
    "def f(x):\n    return x ** 2  # note\n",
    "for (int i = 0; i < n; ++i) { a[i] += b[i]; }",
    "<html>\n  <b class=\"x\">&amp;</b>\n</html>",
    "{\"key\": [1, 2.5, null, true]}",
    "http://example.com/a?b=c&d=%20#e",
    "    indented\n\tby tab\n        deep",
    "!!!???...---___***",
    "$100 \u20ac50 \u00a35 5% #1 @me",
    "\\n is not a newline",
    "a\\b/c|d",
    "\u2211\u222b\u221a\u2264\u2260 x\u00b2 + y\u00b2",
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "                           27 spaces",
    "<code>x</code>",
    "(a)[b]{c}<d>",
    "\u201cquoted\u201d \u2018single\u2019",
    "e\u0301\u0302\u0303 stacked",
    "\u01c5 \u1e9e \u0130 \u0131",
    "\u2167 \u2460 \u0663 \u096b"};

/// splitmix64
class Random {
 public:
  std::uint64_t next() noexcept {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) noexcept { return next() % n; }

 private:
  std::uint64_t state_ = 20240607;
};

struct Range {
  char32_t first, last;
};

constexpr std::array kScripts = {
    Range{'a', 'z'},         Range{'A', 'Z'},         Range{'0', '9'},
    Range{' ', '/'},         Range{0xA1, 0x17F},      Range{0x370, 0x3FF},
    Range{0x400, 0x45F},     Range{0x5D0, 0x5EA},     Range{0x620, 0x64A},
    Range{0x905, 0x939},     Range{0xE01, 0xE30},     Range{0x10A0, 0x10FF},
    Range{0x1E00, 0x1EFF},   Range{0x2000, 0x206F},   Range{0x2190, 0x22FF},
    Range{0x3041, 0x30FF},   Range{0x4E00, 0x9FFF},   Range{0xAC00, 0xD7A3},
    Range{0x1F300, 0x1F64F}, Range{0x1F900, 0x1F9FF}, Range{0x300, 0x36F},
    Range{0xFE00, 0xFE0F},   Range{0xFF01, 0xFF5E},   Range{1, 31},
    Range{0x20000, 0x2A6DF}, Range{0x1D400, 0x1D7FF}, Range{0xE000, 0xE0FF},
    Range{0x1F1E6, 0x1F1FF}};

constexpr std::array kWords = {"the",  "quick", " brown", "Fox",  "'s",   "12",  "345",
                               "6789", ".",     ", ",     "\n",   "\n\n", "  ",  "\t",
                               "_",    "é",     "über",   "x=1;", "=>",   "http"};

std::string random_text(Random& random, const std::vector<std::string>& specials) {
  std::string out;
  const std::uint64_t n_parts = 1 + random.below(8);
  for (std::uint64_t part = 0; part < n_parts; ++part) {
    const std::uint64_t kind = random.below(10);
    if (kind < 4) {
      const Range range = kScripts[random.below(kScripts.size())];
      for (std::uint64_t n = 1 + random.below(6); n > 0; --n)
        utf8_append(
            out, static_cast<char32_t>(range.first + random.below(range.last - range.first + 1)));
    } else if (kind < 9 || specials.empty()) {
      for (std::uint64_t n = 1 + random.below(4); n > 0; --n)
        out += kWords[random.below(kWords.size())];
    } else {
      out += specials[random.below(specials.size())];
    }
  }
  return out;
}

ChatValue message(const char* role, const char* content) {
  return ChatValue::object({{"role", ChatValue::of(role)}, {"content", ChatValue::of(content)}});
}

ChatValue tool() {
  const ChatValue text_type = ChatValue::object({{"type", ChatValue::of("string")}});
  ChatValue parameters =
      ChatValue::object({{"type", ChatValue::of("object")},
                         {"properties", ChatValue::object({{"city", text_type}})},
                         {"required", ChatValue::list({ChatValue::of("city")})}});
  ChatValue function = ChatValue::object({{"name", ChatValue::of("weather")},
                                          {"description", ChatValue::of("Weather of a city")},
                                          {"parameters", std::move(parameters)}});
  return ChatValue::object(
      {{"type", ChatValue::of("function")}, {"function", std::move(function)}});
}

}  // namespace

std::vector<std::string> check_texts(const std::vector<std::string>& specials) {
  std::vector<std::string> out(kFixed.begin(), kFixed.end());
  for (std::size_t i = 0; i < specials.size() && i < 40; ++i) {
    out.push_back(specials[i]);
    out.push_back("a " + specials[i] + " b" + specials[i] + "c");
  }
  Random random;
  while (out.size() < kTexts) out.push_back(random_text(random, specials));
  out.resize(kTexts);
  return out;
}

std::vector<ChatInput> check_conversations() {
  const std::vector<std::vector<ChatValue>> talks = {
      {message("user", "Hi")},
      {message("system", "Be brief."), message("user", "What is 2 + 2?")},
      {message("user", "One"), message("assistant", "Two"), message("user", "Three")},
      {message("system", ""), message("user", ""), message("assistant", ""),
       message("user", "  spaces \n")},
      {message("user", "né 漢字 \U0001F600 <|im_end|></s><eos>")},
      {message("user", "a"), message("user", "b")},
  };
  std::vector<ChatInput> out;
  for (const auto& talk : talks) {
    for (const bool prompt : {true, false}) {
      ChatInput input;
      input.messages = talk;
      input.add_generation_prompt = prompt;
      input.now.tm_year = 126;
      input.now.tm_mday = 1;
      out.push_back(input);
    }
  }
  ChatInput with_tools = out.front();
  with_tools.tools = ChatValue::list({tool()});
  out.push_back(std::move(with_tools));
  return out;
}

}  // namespace cyb::api
