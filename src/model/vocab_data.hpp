// VocabData: the vocab part as flat arrays; no per-token objects, so a 262k vocabulary costs little
// more than its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cyb {

/// A list of byte strings in one blob.
class StringList {
 public:
  std::size_t size() const noexcept { return ends_.size(); }
  bool empty() const noexcept { return ends_.empty(); }
  std::string_view operator[](std::size_t i) const noexcept {
    const std::uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + begin, ends_[i] - begin};
  }
  void push_back(std::string_view text) {
    bytes_.append(text);
    ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  }
  /// For a string that is made in place: append to open(), then close(). `open().size()` never
  /// exceeds 32 bits: the caller's care.
  std::string& open() noexcept { return bytes_; }
  void close() { ends_.push_back(static_cast<std::uint32_t>(bytes_.size())); }
  void reserve(std::size_t n, std::size_t bytes) {
    ends_.reserve(n);
    bytes_.reserve(bytes);
  }
  std::size_t total_bytes() const noexcept { return bytes_.size(); }
  /// All strings, joined, and where each of them ends.
  const std::string& bytes() const noexcept { return bytes_; }
  const std::vector<std::uint32_t>& ends() const noexcept { return ends_; }

 private:
  std::string bytes_;
  std::vector<std::uint32_t> ends_;
};

enum class TokenType : std::uint8_t {
  kUnset = 0,  // while the part is read
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

struct VocabData {
  StringList tokens;                  // id -> text, no holes
  StringList merges;                  // 2 entries per rank: left, right
  std::vector<float> scores;          // empty or one per token
  std::vector<TokenType> types;       // empty or one per token
  std::vector<std::int32_t> special;  // [special] ids
  std::string particles_tensor;       // [particles] tensor; "" unless the vocabulary is a tensor
};

}  // namespace cyb
