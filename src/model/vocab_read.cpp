// Streaming reader of the vocab part. Ids in ascending order go straight into the flat lists; any
// other order is sorted once at the end. Every list is bounded by kMaxVocab before it grows.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/limits.hpp"
#include "model/format_error.hpp"
#include "model/toml_cursor.hpp"
#include "model/vocab_text.hpp"

namespace cyb {
namespace {

constexpr std::string_view kPart = "vocab";
constexpr float kNoScore = std::numeric_limits<float>::quiet_NaN();

Error vocab_error(std::string_view what) {
  return format_error("F34", fmt::format("vocab: {}", what));
}

/// Groups of `Width` strings by key. `keys` stays empty as long as they come as 0, 1, 2 ...
template <std::size_t Width>
struct KeyedStrings {
  StringList strings;
  std::vector<std::uint32_t> keys;

  std::size_t size() const noexcept { return strings.size() / Width; }

  /// Before the strings of `key` are pushed.
  void begin(std::uint32_t key) {
    if (keys.empty() && key != size()) {
      keys.resize(size());
      std::iota(keys.begin(), keys.end(), 0u);
    }
    if (!keys.empty() || key != size()) keys.push_back(key);
  }

  /// Strings in key order. F09 for a key that comes twice, F34 for a hole.
  Result<StringList> finish(std::string_view hole_text) {
    if (keys.empty()) return std::move(strings);
    std::vector<std::uint32_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, [this](std::uint32_t i) { return keys[i]; });
    StringList out;
    out.reserve(strings.size(), strings.total_bytes());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::uint32_t key = keys[order[i]];
      if (i > 0 && keys[order[i - 1]] == key)
        return fail(duplicate_error("key", fmt::format("{}", key)));
      if (key != i) return fail(vocab_error(fmt::format("{} {}", hole_text, i)));
      for (std::size_t k = 0; k < Width; ++k) out.push_back(strings[order[i] * Width + k]);
    }
    return out;
  }
};

class VocabReader {
 public:
  explicit VocabReader(std::string_view text) : cursor_(text, kPart) {
    // Only a guess, and never more than the text itself: growing costs copies.
    tokens_.strings.reserve(text.size() / 64, text.size() / 8);
  }

  Result<VocabData> read() {
    cursor_.skip_blank();
    while (!cursor_.at_end()) {
      CYB_TRY(section());
      cursor_.skip_blank();
    }
    CYB_ASSIGN(out_.tokens, tokens_.finish("hole at id"));
    CYB_ASSIGN(out_.merges, merges_.finish("hole at merge"));
    CYB_TRY(finish_scores());
    CYB_TRY(finish_types());
    CYB_TRY(finish_special());
    return std::move(out_);
  }

 private:
  Result<void> section() {
    CYB_ASSIGN(const std::string_view view, cursor_.table_header());
    const std::string name(view);
    if (std::ranges::count(sections_, name) != 0) return fail(duplicate_error("key", name));
    if (sections_.size() >= 64) return fail(cursor_.error("more than 64 tables"));
    sections_.push_back(name);
    cursor_.skip_blank();
    while (!cursor_.at_end() && cursor_.peek() != '[') {
      CYB_TRY(entry(name));
      CYB_TRY(cursor_.end_of_line());
      cursor_.skip_blank();
    }
    return {};
  }

  Result<void> entry(std::string_view section) {
    if (section == "tokens") return token();
    if (section == "merges") return merge();
    if (section == "scores") return score();
    if (section == "types") return type();
    CYB_ASSIGN(const std::string_view view, cursor_.key());
    const std::string key(view);
    CYB_TRY(equals());
    if (section == "special" && key == "ids") return special();
    if (section == "particles" && key == "tensor") {
      CYB_ASSIGN(out_.particles_tensor, cursor_.string());
      return {};
    }
    return cursor_.skip_value();
  }

  Result<void> equals() {
    CYB_TRY(cursor_.expect('='));
    cursor_.skip_spaces();
    return {};
  }

  Result<std::uint32_t> id() {
    if (const auto quick = cursor_.quick_index(kMaxVocab - 1))
      return static_cast<std::uint32_t>(*quick);
    CYB_ASSIGN(const std::uint64_t key, cursor_.index_key(kMaxVocab - 1));
    CYB_TRY(equals());
    return static_cast<std::uint32_t>(key);
  }

  /// Pushes one string; the 32-bit ends of a StringList bound the sum.
  Result<void> push(StringList& list) {
    CYB_TRY(cursor_.append_string(list.open()));
    if (list.total_bytes() > std::numeric_limits<std::uint32_t>::max()) {
      return fail(cursor_.error("more than 4 GiB of token text"));
    }
    list.close();
    return {};
  }

  Result<void> token() {
    CYB_ASSIGN(const std::uint32_t key, id());
    if (tokens_.size() >= kMaxVocab) return fail(cursor_.error("more than 4194304 tokens"));
    tokens_.begin(key);
    return push(tokens_.strings);
  }

  Result<void> merge() {
    CYB_ASSIGN(const std::uint32_t rank, id());
    if (merges_.size() >= kMaxVocab) return fail(cursor_.error("more than 4194304 merges"));
    merges_.begin(rank);
    if (!cursor_.consume('[')) return fail(cursor_.error("expected an array of two strings"));
    bool first = true;
    for (int i = 0; i < 2; ++i) {
      CYB_ASSIGN(const bool more, cursor_.next_element(first));
      if (!more) return fail(cursor_.error("expected an array of two strings"));
      CYB_TRY(push(merges_.strings));
    }
    CYB_ASSIGN(const bool more, cursor_.next_element(first));
    if (more) return fail(cursor_.error("expected an array of two strings"));
    return {};
  }

  Result<void> score() {
    CYB_ASSIGN(const std::uint32_t key, id());
    CYB_ASSIGN(const double value, cursor_.number());
    if (key >= out_.scores.size()) out_.scores.resize(key + 1, kNoScore);
    if (!std::isnan(out_.scores[key])) return fail(duplicate_error("key", fmt::format("{}", key)));
    out_.scores[key] = static_cast<float>(value);
    if (!std::isfinite(out_.scores[key])) return fail(cursor_.error("score does not fit f32"));
    return {};
  }

  Result<void> type() {
    CYB_ASSIGN(const std::uint32_t key, id());
    CYB_ASSIGN(const std::int64_t value, cursor_.integer());
    if (value < 1 || value > 6) return fail(cursor_.error("a token type is 1 to 6"));
    if (key >= out_.types.size()) out_.types.resize(key + 1, TokenType::kUnset);
    if (out_.types[key] != TokenType::kUnset) {
      return fail(duplicate_error("key", fmt::format("{}", key)));
    }
    out_.types[key] = static_cast<TokenType>(value);
    return {};
  }

  Result<void> special() {
    if (!out_.special.empty()) return fail(duplicate_error("key", "ids"));
    if (!cursor_.consume('[')) return fail(cursor_.error("expected an array of integers"));
    bool first = true;
    while (true) {
      CYB_ASSIGN(const bool more, cursor_.next_element(first));
      if (!more) return {};
      CYB_ASSIGN(const std::int64_t value, cursor_.integer());
      if (value < 0 || static_cast<std::uint64_t>(value) >= kMaxVocab) {
        return fail(cursor_.error("a token id is 0 to 4194303"));
      }
      out_.special.push_back(static_cast<std::int32_t>(value));
    }
  }

  Result<void> finish_scores() {
    if (out_.scores.empty()) return {};
    const std::size_t n = out_.tokens.size();
    if (out_.scores.size() > n) {
      return fail(
          vocab_error(fmt::format("score of id {}, which is no token", out_.scores.size() - 1)));
    }
    out_.scores.resize(n, kNoScore);
    const auto hole = std::ranges::find_if(out_.scores, [](float s) { return std::isnan(s); });
    if (hole != out_.scores.end()) {
      return fail(vocab_error(fmt::format("hole at id {} of scores", hole - out_.scores.begin())));
    }
    return {};
  }

  /// A `[types]` table that is there types every token, with 1 where it says nothing.
  Result<void> finish_types() {
    if (std::ranges::count(sections_, "types") == 0) return {};
    const std::size_t n = out_.tokens.size();
    if (out_.types.size() > n) {
      return fail(
          vocab_error(fmt::format("type of id {}, which is no token", out_.types.size() - 1)));
    }
    out_.types.resize(n, TokenType::kUnset);
    std::ranges::replace(out_.types, TokenType::kUnset, TokenType::kNormal);
    return {};
  }

  Result<void> finish_special() {
    for (const std::int32_t id : out_.special) {
      if (static_cast<std::size_t>(id) >= out_.tokens.size()) {
        return fail(vocab_error(fmt::format("special id {}, which is no token", id)));
      }
    }
    return {};
  }

  TomlCursor cursor_;
  std::vector<std::string> sections_;
  KeyedStrings<1> tokens_;
  KeyedStrings<2> merges_;
  VocabData out_;
};

}  // namespace

Result<VocabData> read_vocab(std::string_view text, std::optional<std::uint64_t> vocab_size) {
  CYB_TRY(check_text(text, kPart));
  CYB_ASSIGN(VocabData vocab, VocabReader(text).read());
  if (vocab_size && vocab.tokens.size() != *vocab_size) {
    return fail(
        vocab_error(fmt::format("{} tokens, config says {}", vocab.tokens.size(), *vocab_size)));
  }
  return vocab;
}

}  // namespace cyb
