// Header of a panel file: magic, version, index size, BLAKE3 of the index, index; padded to whole
// pages.
#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/reader.hpp"
#include "runtime/pack_cache.hpp"

namespace cyb {
namespace {

constexpr std::string_view kMagic = "CYBPANEL";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kFixedBytes = 8 + 4 + 4 + 32;
constexpr std::size_t kMinEntryBytes = 4 + 8 + 8 + 32;

class Writer {
 public:
  template <class T>
  void number(T value) {
    const auto raw = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), raw.begin(), raw.end());
  }
  void raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  void text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    raw(std::as_bytes(std::span(value.data(), value.size())));
  }
  std::vector<std::byte>& bytes() noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

Error damaged(std::string_view what) {
  return Error(ErrorKind::kFormat, "panels: " + std::string(what));
}

Result<std::string> read_text(BoundedReader& in) {
  CYB_ASSIGN(const std::uint32_t size, in.read<std::uint32_t>());
  CYB_ASSIGN(const std::string_view text, in.take_text(size));
  return std::string(text);
}

Result<Digest> read_digest(BoundedReader& in) {
  Digest out{};
  CYB_ASSIGN(const std::span<const std::byte> raw, in.take(out.size()));
  std::memcpy(out.data(), raw.data(), out.size());
  return out;
}

Result<PanelOwner> read_owner(BoundedReader& in) {
  PanelOwner out;
  CYB_ASSIGN(out.model_id, read_text(in));
  CYB_ASSIGN(out.layout_id, read_text(in));
  CYB_ASSIGN(out.inode, in.read<std::uint64_t>());
  CYB_ASSIGN(out.size_bytes, in.read<std::uint64_t>());
  CYB_ASSIGN(out.mtime_ns, in.read<std::int64_t>());
  CYB_ASSIGN(out.ctime_ns, in.read<std::int64_t>());
  return out;
}

Result<PanelEntry> read_entry(BoundedReader& in, std::uint64_t file_bytes) {
  PanelEntry out;
  CYB_ASSIGN(out.key, read_text(in));
  CYB_ASSIGN(out.offset, in.read<std::uint64_t>());
  CYB_ASSIGN(out.size, in.read<std::uint64_t>());
  CYB_ASSIGN(out.hash, read_digest(in));
  if (out.offset % kPanelAlignment != 0 || !range_fits(out.offset, out.size, file_bytes)) {
    return fail(damaged("entry \"" + out.key + "\" lies outside the file"));
  }
  return out;
}

}  // namespace

std::vector<std::byte> encode_panel_header(const PanelOwner& owner,
                                           std::span<const PanelEntry> entries,
                                           std::uint64_t file_bytes) {
  Writer index;
  index.number(file_bytes);
  index.text(owner.model_id);
  index.text(owner.layout_id);
  index.number(owner.inode);
  index.number(owner.size_bytes);
  index.number(owner.mtime_ns);
  index.number(owner.ctime_ns);
  index.number(static_cast<std::uint32_t>(entries.size()));
  for (const PanelEntry& entry : entries) {
    index.text(entry.key);
    index.number(entry.offset);
    index.number(entry.size);
    index.raw(std::as_bytes(std::span(entry.hash)));
  }
  const Digest hash = blake3(index.bytes());
  Writer out;
  out.raw(std::as_bytes(std::span(kMagic.data(), kMagic.size())));
  out.number(kVersion);
  out.number(static_cast<std::uint32_t>(index.bytes().size()));
  out.raw(std::as_bytes(std::span(hash)));
  out.raw(index.bytes());
  const std::size_t pages = (out.bytes().size() + kPanelAlignment - 1) / kPanelAlignment;
  out.bytes().resize(pages * kPanelAlignment);
  return std::move(out.bytes());
}

Result<PanelHeader> decode_panel_header(std::span<const std::byte> file) {
  BoundedReader in(file);
  if (in.remaining() < kFixedBytes) return fail(damaged("shorter than a header"));
  CYB_ASSIGN(const std::string_view magic, in.take_text(kMagic.size()));
  CYB_ASSIGN(const std::uint32_t version, in.read<std::uint32_t>());
  if (magic != kMagic || version != kVersion)
    return fail(damaged("not a panel file of this version"));
  CYB_ASSIGN(const std::uint32_t index_bytes, in.read<std::uint32_t>());
  CYB_ASSIGN(const Digest stated, read_digest(in));
  CYB_ASSIGN(const std::span<const std::byte> index, in.take(index_bytes));
  if (blake3(index) != stated) return fail(damaged("the index does not have its hash"));

  BoundedReader body(index);
  PanelHeader out;
  CYB_ASSIGN(const std::uint64_t file_bytes, body.read<std::uint64_t>());
  if (file_bytes != file.size()) return fail(damaged("the file does not have its length"));
  CYB_ASSIGN(out.owner, read_owner(body));
  CYB_ASSIGN(const std::uint32_t count, body.read<std::uint32_t>());
  if (!body.can_hold(count, kMinEntryBytes)) return fail(damaged("more entries than bytes"));
  out.entries.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    CYB_ASSIGN(PanelEntry entry, read_entry(body, file_bytes));
    out.entries.push_back(std::move(entry));
  }
  if (body.remaining() != 0) return fail(damaged("bytes after the index"));
  return out;
}

}  // namespace cyb
