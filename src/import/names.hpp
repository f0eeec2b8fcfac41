// Tensor names: the rules that every source name obeys, and the tables (names/<family>.inc) from
// GGUF names to canonical ones.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cyb {

/// Why `name` may not be a tensor name or key (NUL or control character, invalid UTF-8, path-like);
/// nullopt: it is fine.
std::optional<std::string> name_problem(std::string_view name);

/// One row of a name table. `{i}` stands for a layer number without leading zeros.
struct NameRow {
  std::string_view gguf;
  std::string_view canonical;
};

/// The table of a GGUF architecture; empty: the architecture is not supported.
std::span<const NameRow> gguf_names(std::string_view architecture) noexcept;

/// Matches `name` against `pattern`; the layer number is 0 where the pattern has no {i}.
std::optional<std::uint32_t> match_name(std::string_view pattern, std::string_view name) noexcept;
/// `pattern` with {i} replaced.
std::string fill_name(std::string_view pattern, std::uint32_t layer);

/// Canonical name and layer of a GGUF tensor; nullopt: no row matches.
std::optional<std::string> canonical_name(std::span<const NameRow> table, std::string_view name);

/// Sort key of canonical names in the written file: embedding, layers in order, final norm, head.
std::uint64_t file_order(std::string_view canonical);

/// Tensors that carry no information, by canonical or source name
/// ("model.layers.0.self_attn.rotary_emb.inv_freq").
bool carries_no_information(std::string_view name);

}  // namespace cyb
