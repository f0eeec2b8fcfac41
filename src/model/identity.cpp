// The two identities. Bodies are hashed as stored: nothing is parsed or written again.
#include "model/identity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "model/format_error.hpp"

namespace cyb {
namespace {

constexpr std::size_t kStepBytes = std::size_t{1} << 20;

void add_part(Blake3& hasher, std::string_view name, std::uint64_t length, const Digest& digest) {
  hasher.update(name);
  hasher.update(std::string_view("\0", 1));
  hasher.update(std::as_bytes(std::span(&length, 1)));  // little-endian host, see base/reader.hpp
  hasher.update(std::as_bytes(std::span(digest)));
}

Result<std::optional<Digest>> digest_at(const ConfigTable& frontmatter, std::string_view key) {
  const ConfigValue* value = frontmatter.at(key);
  if (value == nullptr) return std::nullopt;
  const std::string* text = value->string();
  const auto digest =
      text == nullptr || !text->starts_with("blake3:") ? std::nullopt : parse_digest(*text);
  if (!digest) {
    return fail(format_error(
        "F31",
        fmt::format("frontmatter: {}: wrong type, want \"blake3:\" and 64 hex digits", key)));
  }
  return digest;
}

}  // namespace

Digest model_id_of(std::span<const IdentityPart> parts, std::uint64_t weights_bytes,
                   const Digest& weights_hash) {
  Blake3 hasher;
  hasher.update(std::string_view("cyb.model/1\n"));
  for (const IdentityPart& part : parts) {
    add_part(hasher, part.name, part.body.size(), blake3(part.body));
  }
  add_part(hasher, "weights", weights_bytes, weights_hash);
  return hasher.finish();
}

Digest model_id_of(const SplitFile& file, const Digest& weights_hash) {
  std::vector<IdentityPart> parts;
  for (const std::string_view name : kIdentityParts) {
    if (const FilePart* part = file.find(name)) parts.push_back({name, part->body});
  }
  return model_id_of(parts, file.weights.size(), weights_hash);
}

Result<StatedIds> stated_ids(const ConfigTable& frontmatter) {
  StatedIds out;
  CYB_ASSIGN(out.model, digest_at(frontmatter, "cyb.id.model"));
  CYB_ASSIGN(out.weights, digest_at(frontmatter, "cyb.id.weights"));
  return out;
}

Error model_id_mismatch(const Digest& expected, const Digest& computed) {
  return format_error("F40", fmt::format("model id mismatch: expected {}, computed {}",
                                         digest_text(expected), digest_text(computed)));
}

Error cancelled_bytes(std::string_view what, std::uint64_t done, std::uint64_t total) {
  return Error(ErrorKind::kCancelled,
               fmt::format("{} cancelled after {} of {} bytes", what, done, total));
}

Result<Digest> hash_bytes(std::span<const std::byte> bytes, std::stop_token stop,
                          const ByteProgress& progress) {
  Blake3 hasher;
  std::size_t done = 0;
  while (done < bytes.size()) {
    if (stop.stop_requested()) return fail(cancelled_bytes("hashing", done, bytes.size()));
    const std::size_t step = std::min(kStepBytes, bytes.size() - done);
    hasher.update(bytes.subspan(done, step));
    done += step;
    if (progress) progress(done);
  }
  return hasher.finish();
}

}  // namespace cyb
