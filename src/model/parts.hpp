// Splitting of a `.model` file into frontmatter, text parts and weights (docs/model-format.md,
// "Splitting"). Nothing is copied but the frontmatter tree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/config.hpp"

namespace cyb {

struct FilePart {
  std::string name;
  std::string format;
  std::string_view body;  // text parts only
};

struct SplitFile {
  ConfigTable frontmatter;
  std::vector<FilePart> parts;  // in file order, weights last
  std::span<const std::byte> weights;
  std::uint64_t weights_offset = 0;  // in the file

  /// Null when the file has no part of that name.
  const FilePart* find(std::string_view name) const noexcept;
  /// Its body, empty when absent.
  std::string_view body(std::string_view name) const noexcept;
};

struct SplitFileOptions {
  std::uint64_t text_limit_bytes = 0;  // > 0
  bool allow_missing_version = false;  // legacy encodings were asked for
};

/// Errors: F01..F13, F50, and F31 for keys of the frontmatter.
Result<SplitFile> split_model_file(std::span<const std::byte> bytes,
                                   const SplitFileOptions& options);

/// `[a-z][a-z0-9_-]{0,31}`.
bool is_part_name(std::string_view name) noexcept;
/// `[A-Za-z0-9._-]{1,128}`.
bool is_model_name(std::string_view name) noexcept;

inline constexpr std::int64_t kFormatVersion = 3;

}  // namespace cyb
