// GgufSource: one GGUF file, or all parts of a split one, opened and checked before any weight is
// read.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "import/gguf/gguf_file.hpp"

namespace cyb::gguf {

struct Part {
  std::shared_ptr<const MappedFile> file;
  GgufFile header;
};

struct GgufSource {
  std::vector<Part> parts;  // the first one has the metadata

  std::uint64_t n_tensors() const noexcept;
};

/// `path`: a whole GGUF file or the first part of a split one ("<prefix>-00001-of-0000N.gguf").
/// Errors: Io, Format; a missing, double or swapped part is named.
Result<GgufSource> open_gguf(const std::string& path);

/// `path` without what names a part of a split file.
std::string without_part(const std::string& path);

/// The files that open_gguf(path) would read, judged by the name alone.
std::vector<std::string> part_paths(const std::string& path);

}  // namespace cyb::gguf
