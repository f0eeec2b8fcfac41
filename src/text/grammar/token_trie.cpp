// Texts are sorted; a node is a prefix that its predecessor in the order does not share.
#include "text/grammar/token_trie.hpp"

#include <algorithm>
#include <numeric>

#include "text/tokenizer.hpp"

namespace cyb::text {
namespace {

constexpr std::size_t kLongestToken = 4096;  // a longer one is never an answer's next token

}  // namespace

TokenTrie::TokenTrie(std::span<const std::string_view> texts) {
  build(texts);
}

TokenTrie::TokenTrie(const Tokenizer& tokenizer, std::span<const std::int32_t> shown) {
  std::vector<std::string_view> texts(static_cast<std::size_t>(tokenizer.vocab_size()));
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.is_control(id) && !tokenizer.is_eos(id))
      texts[static_cast<std::size_t>(id)] = tokenizer.piece(id);
  }
  for (const std::int32_t id : shown) {
    texts[static_cast<std::size_t>(id)] = tokenizer.vocabulary().text(id);
  }
  build(texts);
}

void TokenTrie::build(std::span<const std::string_view> texts) {
  vocab_size_ = texts.size();
  offsets_.push_back(0);
  std::vector<std::int32_t> order;
  for (std::size_t id = 0; id < texts.size(); ++id) {
    const bool kept = !texts[id].empty() && texts[id].size() <= kLongestToken;
    if (kept) text_ += texts[id];
    if (kept) order.push_back(static_cast<std::int32_t>(id));
    offsets_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
  std::ranges::sort(order, [this](std::int32_t a, std::int32_t b) {
    const int compared = text(a).compare(text(b));
    return compared != 0 ? compared < 0 : a < b;
  });
  nodes_.push_back({});
  std::vector<std::uint32_t> path{0};  // nodes of the text before
  std::string_view before;
  const auto close = [&](std::size_t depth) {
    for (; path.size() > depth + 1; path.pop_back())
      nodes_[path.back()].end = static_cast<std::uint32_t>(nodes_.size());
  };
  for (const std::int32_t id : order) {
    const std::string_view own = text(id);
    const auto parting = std::ranges::mismatch(own, before);
    const std::size_t shared = static_cast<std::size_t>(parting.in1 - own.begin());
    close(shared);
    for (std::size_t i = shared; i < own.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back({.first_token = static_cast<std::uint32_t>(tokens_.size()),
                        .depth = static_cast<std::uint16_t>(i + 1),
                        .byte = static_cast<std::uint8_t>(own[i])});
    }
    tokens_.push_back(id);
    longest_ = std::max(longest_, own.size());
    before = own;
  }
  close(0);
  nodes_[0].end = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({.first_token = static_cast<std::uint32_t>(tokens_.size())});
}

std::string_view TokenTrie::text(std::int32_t id) const noexcept {
  const std::size_t i = static_cast<std::size_t>(id);
  if (id < 0 || i >= vocab_size_) return {};
  return std::string_view(text_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
}

}  // namespace cyb::text
