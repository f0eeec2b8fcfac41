// TextIndex: id of a text among the texts of a blob, by open addressing. The texts stay where they
// are.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/tokenizers/hashing.hpp"

namespace cyb::text {

class TextIndex {
 public:
  enum class Insert : std::uint8_t { kDone, kDuplicate, kTooManyProbes };

  /// Makes room for `count` texts and forgets all.
  void reset(std::size_t count) { slots_.assign(table_slots(count), kEmpty); }

  /// `text_of(id)` gives the text of an id inserted before. `other` receives the id of an equal
  /// text.
  template <class TextOf>
  Insert insert(std::int32_t id, std::string_view text, TextOf&& text_of, std::int32_t& other) {
    return insert_hashed(id, text, hash_bytes(text), text_of, other);
  }

  /// Inserts the ids below `count` that `wanted(id)` takes, in order, until one fails, whose result
  /// and id come back. The slots of the next few are fetched ahead: the table does not fit the fast
  /// caches.
  template <class TextOf, class Wanted>
  Insert insert_all(std::int32_t count, TextOf&& text_of, Wanted&& wanted, std::int32_t& id,
                    std::int32_t& other) {
    constexpr std::int32_t kAhead = 16;
    std::array<std::uint64_t, kAhead> hashes{};
    const auto prepare = [&](std::int32_t next) {
      const std::uint64_t hash = hash_bytes(text_of(next));
      hashes[static_cast<std::size_t>(next % kAhead)] = hash;
      __builtin_prefetch(&slots_[static_cast<std::size_t>(hash) & (slots_.size() - 1)], 1);
    };
    for (std::int32_t next = 0; next < std::min(count, kAhead); ++next) prepare(next);
    for (id = 0; id < count; ++id) {
      const std::uint64_t hash = hashes[static_cast<std::size_t>(id % kAhead)];
      if (id + kAhead < count) prepare(id + kAhead);
      if (!wanted(id)) continue;
      const Insert done = insert_hashed(id, text_of(id), hash, text_of, other);
      if (done != Insert::kDone) return done;
    }
    return Insert::kDone;
  }

  /// -1 if absent.
  template <class TextOf>
  std::int32_t find(std::string_view text, TextOf&& text_of) const noexcept {
    if (slots_.empty()) return -1;
    const std::uint64_t hash = hash_bytes(text);
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = static_cast<std::size_t>(hash) & mask;; at = (at + 1) & mask) {
      const std::uint32_t slot = slots_[at];
      if (slot == kEmpty) return -1;
      if ((slot & ~kIdMask) != tag(hash)) continue;
      const std::int32_t id = static_cast<std::int32_t>(slot & kIdMask);
      if (text_of(id) == text) return id;
    }
  }

 private:
  template <class TextOf>
  Insert insert_hashed(std::int32_t id, std::string_view text, std::uint64_t hash, TextOf&& text_of,
                       std::int32_t& other) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = static_cast<std::size_t>(hash) & mask;
    for (std::size_t probe = 0; probe < kMaxProbes; ++probe, at = (at + 1) & mask) {
      if (slots_[at] == kEmpty) {
        slots_[at] = tag(hash) | static_cast<std::uint32_t>(id);
        return Insert::kDone;
      }
      if ((slots_[at] & ~kIdMask) != tag(hash)) continue;
      other = static_cast<std::int32_t>(slots_[at] & kIdMask);
      if (text_of(other) == text) return Insert::kDuplicate;
    }
    return Insert::kTooManyProbes;
  }

  static constexpr std::uint32_t kIdMask = (1U << 22) - 1;  // ids are below 2^22 (limit "vocab")
  static constexpr std::uint32_t kEmpty = ~0U;

  static std::uint32_t tag(std::uint64_t hash) noexcept {
    // 10 upper bits, never all ones, so that no used slot looks empty.
    const std::uint32_t bits = static_cast<std::uint32_t>(hash >> 54);
    return (bits == 0x3FFU ? 0U : bits) << 22;
  }

  std::vector<std::uint32_t> slots_;
};

}  // namespace cyb::text
