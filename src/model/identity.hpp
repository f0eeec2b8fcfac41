// Content identity (docs/model-format.md, "Identity"): model_id over the bodies as stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "model/parts.hpp"

namespace cyb {

/// The bytes that model_id covers but the weights: the parts in their fixed order.
inline constexpr std::string_view kIdentityParts[] = {"config",  "program", "graph",
                                                      "tensors", "vocab",   "chat"};

struct IdentityPart {
  std::string_view name;
  std::string_view body;
};

/// BLAKE3("cyb.model/1\n", then per part: name, 0x00, u64 length, BLAKE3(body)). `parts` are in the
/// order of kIdentityParts, absent ones left out; the weights come last.
Digest model_id_of(std::span<const IdentityPart> parts, std::uint64_t weights_bytes,
                   const Digest& weights_hash);
Digest model_id_of(const SplitFile& file, const Digest& weights_hash);

/// What `[cyb.id]` states. `weights` is the BLAKE3 of the weights part: with it the text parts can
/// be checked against `model` without reading the weights.
struct StatedIds {
  std::optional<Digest> model, weights;
};
/// F31 for a malformed value.
Result<StatedIds> stated_ids(const ConfigTable& frontmatter);

/// F40.
Error model_id_mismatch(const Digest& expected, const Digest& computed);

using ByteProgress = std::function<void(std::uint64_t bytes_done)>;

/// BLAKE3 in steps of 1 MiB. Cancelled through `stop`; `progress` may be empty.
Result<Digest> hash_bytes(std::span<const std::byte> bytes, std::stop_token stop,
                          const ByteProgress& progress = {});

Error cancelled_bytes(std::string_view what, std::uint64_t done, std::uint64_t total);

}  // namespace cyb
