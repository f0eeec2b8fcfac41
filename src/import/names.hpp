// Tensor names: the rules that every source name obeys, and the tables (names/<family>.inc) from
// GGUF names to canonical ones.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cyb {

/// Why `name` may not be a tensor name or key (NUL or control character, invalid UTF-8, path-like);
/// nullopt: it is fine.
std::optional<std::string> name_problem(std::string_view name);

/// An optional per-layer tensor is in every layer or in none.
enum class NameNeed : std::uint8_t { kRequired, kOptional };

/// One row of a name table. `{i}` stands for a layer number without leading zeros.
struct NameRow {
  std::string_view gguf;
  std::string_view canonical;
  NameNeed need;
};

/// The table of a GGUF architecture; empty: the architecture is not supported.
std::span<const NameRow> gguf_names(std::string_view architecture) noexcept;

/// Matches `name` against `pattern`; the layer number is 0 where the pattern has no {i}.
std::optional<std::uint32_t> match_name(std::string_view pattern, std::string_view name) noexcept;
/// `pattern` with {i} replaced.
std::string fill_name(std::string_view pattern, std::uint32_t layer);

/// Canonical name of a GGUF tensor; nullopt: no row matches.
std::optional<std::string> canonical_name(std::span<const NameRow> table, std::string_view name);
/// GGUF name of a canonical one; nullopt: no row matches.
std::optional<std::string> gguf_name(std::span<const NameRow> table, std::string_view canonical);

/// The rows' needs for `n_layers` layers. `canonical`: names of all tensors. `by_gguf`: the error
/// speaks of the GGUF name. Errors: MissingTensor, code F32.
Result<void> check_presence(std::span<const NameRow> table, std::int64_t n_layers,
                            const std::set<std::string, std::less<>>& canonical,
                            std::string_view model_type, bool by_gguf);

/// Sort key of canonical names in the written file: embedding, layers in order, final norm, head.
std::uint64_t file_order(std::string_view canonical);

/// Tensors that carry no information, by canonical or source name
/// ("model.layers.0.self_attn.rotary_emb.inv_freq").
bool carries_no_information(std::string_view name);

}  // namespace cyb
