// Counts are held against the bytes that remain; nothing is allocated for more than those.
#include "runtime/session_format.hpp"

#include <cstring>
#include <utility>

#include "base/reader.hpp"

namespace cyb {
namespace {

constexpr std::uint64_t kFixedBytes = 8 + 8 + 32 + 32;

template <class T>
void put(std::vector<std::byte>& out, T value) {
  const auto raw = std::as_bytes(std::span(&value, 1));
  out.insert(out.end(), raw.begin(), raw.end());
}

void put_text(std::vector<std::byte>& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  const auto raw = std::as_bytes(std::span(text.data(), text.size()));
  out.insert(out.end(), raw.begin(), raw.end());
}

Result<std::string> take_text(BoundedReader& in) {
  CYB_ASSIGN(const std::uint32_t size, in.read<std::uint32_t>());
  CYB_ASSIGN(const std::string_view text, in.take_text(size));
  return std::string(text);
}

Result<Digest> take_digest(BoundedReader& in) {
  Digest out{};
  CYB_ASSIGN(const std::span<const std::byte> raw, in.take(out.size()));
  std::memcpy(out.data(), raw.data(), out.size());
  return out;
}

}  // namespace

std::vector<std::byte> encode_session_index(SessionIndex& index) {
  std::vector<std::byte> out(sizeof(index.file_bytes));
  put_text(out, index.model_id);
  put_text(out, index.numerics);
  put_text(out, index.template_name);
  put(out, static_cast<std::uint32_t>(index.ids.size()));
  for (const std::int32_t id : index.ids) put(out, id);
  put(out, static_cast<std::uint32_t>(index.messages.size()));
  for (const ChatMessage& message : index.messages) {
    put_text(out, message.role);
    put_text(out, message.content);
  }
  put(out, index.page_bytes);
  put(out, index.n_pages);
  index.file_bytes = kFixedBytes + out.size() + index.page_bytes * index.n_pages;
  std::memcpy(out.data(), &index.file_bytes, sizeof(index.file_bytes));
  return out;
}

Result<SessionIndex> decode_session_index(std::span<const std::byte> bytes) {
  BoundedReader in(bytes);
  SessionIndex out;
  CYB_ASSIGN(out.file_bytes, in.read<std::uint64_t>());
  CYB_ASSIGN(out.model_id, take_text(in));
  CYB_ASSIGN(out.numerics, take_text(in));
  CYB_ASSIGN(out.template_name, take_text(in));
  CYB_ASSIGN(const std::uint32_t n_ids, in.read<std::uint32_t>());
  CYB_ASSIGN(const std::span<const std::byte> ids, in.take(std::uint64_t{n_ids} * 4));
  out.ids.resize(n_ids);
  if (n_ids > 0) std::memcpy(out.ids.data(), ids.data(), ids.size());
  CYB_ASSIGN(const std::uint32_t n_messages, in.read<std::uint32_t>());
  if (!in.can_hold(n_messages, 8)) return fail(invalid_input("more messages than bytes"));
  for (std::uint32_t i = 0; i < n_messages; ++i) {
    ChatMessage message;
    CYB_ASSIGN(message.role, take_text(in));
    CYB_ASSIGN(message.content, take_text(in));
    out.messages.push_back(std::move(message));
  }
  CYB_ASSIGN(out.page_bytes, in.read<std::uint64_t>());
  CYB_ASSIGN(out.n_pages, in.read<std::uint32_t>());
  if (in.remaining() != 0) return fail(invalid_input("bytes after the index"));
  return out;
}

Result<ParsedSession> parse_session(std::span<const std::byte> file) {
  BoundedReader in(file);
  CYB_ASSIGN(const std::string_view magic, in.take_text(kSessionMagic.size()));
  if (magic != kSessionMagic)
    return fail(invalid_input("it does not begin with " + std::string(kSessionMagic)));
  CYB_ASSIGN(const std::uint64_t index_bytes, in.read<std::uint64_t>());
  CYB_ASSIGN(const Digest index_hash, take_digest(in));
  CYB_ASSIGN(const std::span<const std::byte> index, in.take(index_bytes));
  CYB_ASSIGN(const Digest pages_hash, take_digest(in));
  if (blake3(index) != index_hash) return fail(invalid_input("the index has not its hash"));
  ParsedSession out;
  CYB_ASSIGN(out.index, decode_session_index(index));
  if (out.index.file_bytes != file.size())
    return fail(invalid_input("the file has not its length"));
  CYB_ASSIGN(out.pages, in.take(in.remaining()));
  const auto expected = checked_mul(out.index.page_bytes, std::uint64_t{out.index.n_pages});
  if (!expected || *expected != out.pages.size())
    return fail(invalid_input("the pages have another size"));
  if (blake3(out.pages) != pages_hash) return fail(invalid_input("the pages have not their hash"));
  return out;
}

}  // namespace cyb
