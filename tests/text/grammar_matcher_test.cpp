// Matchers: masks against taking every token one by one, texts cut into tokens in every way,
// rollback, ends, memory.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "grammar_support.hpp"
#include "tokenizer_support.hpp"

namespace cyb {
namespace {

const char* const kSources[] = {
    "root ::= [a-c]* \"d\"",
    "root ::= ([a-b] \",\"){2,5} \"c\"{3}",
    "root ::= ([a-b]{1,40} \",\"){3,90} \"c\"",
    "root ::= (\"ab\" | \"a\" \"b\" \"c\" | \"abc\" root \"d\")",
    "root ::= e\ne ::= \"a\" x \"b\" | \"a\" y \"c\" | \"d\"\nx ::= e\ny ::= e ",
    "root ::= \"(\" root \")\" root | \"a\" | ",
    "root ::= s*\ns ::= \"a\" t{0,3} | \"b\"\nt ::= \"a\"? \"c\" | s s",
    "root ::= (\"a\"? \"b\"?){2,50} \"c\"",
    "root ::= item (\",\" item)* \"c\"?\nitem ::= [ab]+ | \"(\" item \")\"",
    "root ::= \"\xC3\xA9\"* [\xC3\xA8-\xC3\xBF]+ [^\\x00-\\x7F]{2}",
    "root ::= ((\"a\" | \"aa\"){3,70} \"b\"){0,60}",
};

std::shared_ptr<const text::TokenTrie> small_trie() {
  return byte_trie({"ab",       "aab",          "abc",          "aaaa",
                    "a,",       ",a",           "a,b,",         "bc",
                    "c)",       "))",           ")(",           "(a",
                    "aa,aa,aa", "\xC3\xA9\xC3", "\xA9\xC3\xA9", "\xC3\xA9\xC3\xA9",
                    "aab,",     "b,ccc",        "dd",           "bcd",
                    ")))",      "((",           "aaaaaaaaaa"});
}

TEST(GrammarMatcher, MasksAreWhatAcceptTakes) {
  const auto trie = small_trie();
  Dice dice(3);
  for (const char* source : kSources) {
    SCOPED_TRACE(source);
    const GrammarPtr grammar = must_compile(Grammar::from_gbnf(source));
    // Where every step has many readings, taking each token by itself is slow.
    const int n_steps = std::string_view(source).find("s s") != std::string_view::npos ? 8 : 40;
    for (int walk = 0; walk < 4; ++walk) {
      GrammarMatcher matcher(grammar->masks(trie));
      for (int step = 0; step < n_steps; ++step) {
        const auto bits = mask_of(matcher, trie->vocab_size());
        std::vector<std::int32_t> allowed;
        for (std::int32_t id = 0; id < static_cast<std::int32_t>(trie->vocab_size()); ++id) {
          GrammarMatcher other = matcher;
          const bool taken = other.accept(id);
          ASSERT_EQ(bit(bits, static_cast<std::size_t>(id)), taken)
              << "step " << step << " token " << id;
          if (taken) allowed.push_back(id);
        }
        ASSERT_EQ(matcher.must_end(), matcher.can_end() && allowed.empty());
        if (allowed.empty()) {
          EXPECT_TRUE(matcher.can_end());  // no way leads nowhere
          break;
        }
        ASSERT_TRUE(
            matcher.accept(allowed[dice.below(static_cast<std::uint32_t>(allowed.size()))]));
      }
    }
  }
}

TEST(GrammarMatcher, EveryCutOfATextHasOneVerdict) {
  const auto golden =
      nlohmann::ordered_json::parse(file_text(golden_path("grammar/json_schema.json")));
  Dice dice(8);
  for (std::size_t i = 0; i < golden.size(); i += 3) {
    const GrammarPtr grammar = must_compile(Grammar::from_json_schema(golden[i]["schema"].dump()));
    for (const char* key : {"accept", "reject"}) {
      for (const auto& item : golden[i][key]) {
        const std::string text = item.get<std::string>();
        std::vector<std::string> words;
        for (int n = 0; n < 20; ++n) {
          const std::size_t at = dice.below(static_cast<std::uint32_t>(text.size()));
          words.push_back(text.substr(at, 2 + dice.below(5)));
        }
        std::ranges::sort(words);
        words.erase(std::ranges::unique(words).begin(), words.end());
        const auto trie = byte_trie(words);
        for (int cut = 0; cut < 5; ++cut) {
          GrammarMatcher matcher(grammar->masks(trie));
          bool taken = true;
          for (std::size_t at = 0; at < text.size() && taken;) {
            std::int32_t token = static_cast<unsigned char>(text[at]);
            for (std::size_t w = 0; w < words.size(); ++w) {
              if (text.compare(at, words[w].size(), words[w]) == 0 && dice.below(2) == 0)
                token = static_cast<std::int32_t>(256 + w);
            }
            at += trie->text(token).size();
            taken = matcher.accept(token);
          }
          EXPECT_EQ(taken && matcher.can_end(), std::string_view(key) == "accept") << text;
        }
      }
    }
  }
}

TEST(GrammarMatcher, RollbackGivesTheSameMasks) {
  const auto trie = small_trie();
  const GrammarPtr grammar = must_compile(Grammar::from_gbnf(kSources[8]));
  GrammarMatcher matcher(grammar->masks(trie));
  std::vector<std::vector<std::uint64_t>> masks;
  for (const char c : std::string("a,(b),ab")) {
    masks.push_back(mask_of(matcher, trie->vocab_size()));
    ASSERT_TRUE(matcher.accept(c));
  }
  EXPECT_FALSE(matcher.accept('x'));
  EXPECT_EQ(matcher.n_tokens(), 8U);
  for (std::size_t n = masks.size(); n-- > 0;) {
    matcher.rollback(1);
    EXPECT_EQ(mask_of(matcher, trie->vocab_size()), masks[n]) << n;
  }
  EXPECT_EQ(matcher.n_tokens(), 0U);
  matcher.rollback(5);
  EXPECT_TRUE(matcher.accept('a'));
  matcher.reset();
  EXPECT_EQ(mask_of(matcher, trie->vocab_size()), masks[0]);
}

TEST(GrammarMatcher, EndsAreWhereTheTextIsComplete) {
  const auto trie = byte_trie();
  const GrammarPtr grammar = must_compile(Grammar::from_gbnf("root ::= \"a\" \"b\"?"));
  GrammarMatcher matcher(grammar->masks(trie));
  EXPECT_FALSE(matcher.can_end());
  ASSERT_TRUE(matcher.accept('a'));
  EXPECT_TRUE(matcher.can_end());
  EXPECT_FALSE(matcher.must_end());
  ASSERT_TRUE(matcher.accept('b'));
  EXPECT_TRUE(matcher.must_end());
  const auto bits = mask_of(matcher, trie->vocab_size());
  EXPECT_TRUE(std::ranges::all_of(bits, [](std::uint64_t w) { return w == 0; }));
}

// A vocabulary of the tokenizer's kind: control tokens are never text, every other token is.
TEST(GrammarMatcher, ControlTokensNeverMatch) {
  GgufTokenizerFile file(golden_path("tokenizer/smollm.vocab.gguf"));
  const auto tokenizer = make_tokenizer(vocabulary_from_gguf(file.vocabulary()));
  const auto trie = std::make_shared<const text::TokenTrie>(*tokenizer);
  const GrammarPtr grammar = must_compile(Grammar::from_gbnf("root ::= .*"));
  GrammarMatcher matcher(grammar->masks(trie));
  const auto bits = mask_of(matcher, trie->vocab_size());
  std::size_t n_text = 0;
  for (std::int32_t id = 0; id < tokenizer->vocab_size(); ++id) {
    EXPECT_FALSE(tokenizer->is_control(id) && bit(bits, static_cast<std::size_t>(id))) << id;
    n_text += bit(bits, static_cast<std::size_t>(id)) ? 1U : 0U;
  }
  EXPECT_GT(n_text, 300U);
}

// Texts that never return to a state: what is kept stays bounded, and the answers stay right.
TEST(GrammarMatcher, MemoryIsBounded) {
  const auto trie = byte_trie();
  const GrammarPtr grammar =
      must_compile(Grammar::from_gbnf("root ::= \"(\" root \")\" | \"a\" root \"b\" | \"x\""));
  const auto masks = grammar->masks(trie);
  Dice dice(2);
  for (int answer = 0; answer < 150; ++answer) {
    GrammarMatcher matcher(masks);
    std::string close;
    for (int i = 0; i < 6000; ++i) {
      const bool round = dice.below(2) == 0;
      ASSERT_TRUE(matcher.accept(round ? '(' : 'a'));
      close += round ? ')' : 'b';
    }
    ASSERT_TRUE(matcher.accept('x'));
    for (std::size_t i = close.size(); i-- > 0;) ASSERT_TRUE(matcher.accept(close[i])) << i;
    EXPECT_TRUE(matcher.must_end());
  }
  EXPECT_LT(masks->stats().size_bytes, 100U << 20);
  EXPECT_GT(masks->stats().rounds, 0U);
}

}  // namespace
}  // namespace cyb
