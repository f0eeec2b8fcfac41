// TokenTrie: the texts of a vocabulary as a tree of bytes, in preorder: a walk over the tokens that
// fit a grammar looks at each common beginning once. Built once per tokenizer and shared. Control
// tokens and tokens without text are not in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cyb {
class Tokenizer;
}

namespace cyb::text {

class TokenTrie {
 public:
  struct Node {
    std::uint32_t end = 0;          // one past its subtree
    std::uint32_t first_token = 0;  // into tokens(), up to that of the next node
    std::uint16_t depth = 0;        // bytes up to and with this one; 0: the root
    std::uint8_t byte = 0;
  };

  /// `shown`: control tokens that are text, with their names.
  explicit TokenTrie(const Tokenizer& tokenizer, std::span<const std::int32_t> shown = {});
  /// Of texts by id; empty ones are left out.
  explicit TokenTrie(std::span<const std::string_view> texts);

  /// Node 0 is the root; there is one more than nodes, as an end.
  std::span<const Node> nodes() const noexcept { return nodes_; }
  std::span<const std::int32_t> tokens() const noexcept { return tokens_; }
  /// Tokens that end at a node.
  std::span<const std::int32_t> tokens_at(std::size_t node) const noexcept {
    return std::span(tokens_).subspan(nodes_[node].first_token,
                                      nodes_[node + 1].first_token - nodes_[node].first_token);
  }
  std::size_t n_nodes() const noexcept { return nodes_.size() - 1; }
  /// One past the largest id.
  std::size_t vocab_size() const noexcept { return vocab_size_; }
  /// Of the longest token.
  std::size_t longest() const noexcept { return longest_; }
  std::string_view text(std::int32_t id) const noexcept;

 private:
  void build(std::span<const std::string_view> texts);

  std::vector<Node> nodes_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::uint32_t> offsets_;  // [V + 1] into text_
  std::string text_;
  std::size_t vocab_size_ = 0, longest_ = 0;
};

}  // namespace cyb::text
