// The bytes of a saved session: "CYBCHAT1", u64 size of the index, BLAKE3 of the index, index,
// BLAKE3 of the pages, pages. Every byte is held against a hash before it is believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "runtime/chat.hpp"

namespace cyb {

inline constexpr std::string_view kSessionMagic = "CYBCHAT1";

/// u64 length of the file; texts (u32 size, bytes) model id, numerics, template; u32 number of ids,
/// ids; u32 number of messages, their roles and contents; u64 page_bytes, u32 number of pages.
struct SessionIndex {
  std::uint64_t file_bytes = 0;
  std::string model_id{}, numerics{}, template_name{};
  std::vector<std::int32_t> ids{};
  std::vector<ChatMessage> messages{};
  std::uint64_t page_bytes = 0;
  std::uint32_t n_pages = 0;
};

/// `file_bytes` is filled in.
std::vector<std::byte> encode_session_index(SessionIndex& index);
/// Errors: F11, InvalidInput saying what is wrong.
Result<SessionIndex> decode_session_index(std::span<const std::byte> bytes);

struct ParsedSession {
  SessionIndex index;
  std::span<const std::byte> pages;  // n_pages * page_bytes, into the file
};
/// Errors: as decode_session_index().
Result<ParsedSession> parse_session(std::span<const std::byte> file);

}  // namespace cyb
