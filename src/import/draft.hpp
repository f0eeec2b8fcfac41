// The part of an import that all sources share: tensors as views into mapped files, and the checks
// that turn them and a config into a complete ModelDraft (family binding, nothing unread, graph
// part, report).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "import/import.hpp"
#include "import/names.hpp"
#include "model/writer.hpp"

namespace cyb {

/// One tensor of a source under its canonical name.
struct SourceTensor {
  std::string name, source_name;
  DType dtype = DType::kF32;
  Shape shape;
  std::shared_ptr<const MappedFile> file;
  std::uint64_t offset = 0, size_bytes = 0;  // inside the file

  std::span<const std::byte> bytes() const noexcept {
    return file->bytes().subspan(offset, size_bytes);
  }
};

/// The bytes as stored, streamed; pages of the source are let go as they are passed on.
DraftTensor copied(SourceTensor tensor);

/// Rows of a q or k projection (or its bias) of `n_heads` heads, moved from the adjacent-pair order
/// of GGUF `llama` files back to the half-split order: row h*D + r*D/2 + j of the result is row h*D
/// + 2j + r of the source (model-format 6.3). Errors: Format when the rows are no even multiple of
/// the heads.
Result<DraftTensor> unpermuted(SourceTensor tensor, std::int64_t n_heads);

struct RowRun {
  std::int64_t first = 0, count = 0;
};

/// Rows of a tensor, run after run. Errors: Format when a run is outside it.
Result<DraftTensor> gathered(SourceTensor tensor, std::vector<RowRun> runs);

/// [in, out] as [out, in]. Errors: Format for block encodings and other ranks.
Result<DraftTensor> transposed(SourceTensor tensor);

/// True if both tensors have the same encoding, shape and bytes.
bool same_content(const SourceTensor& a, const SourceTensor& b);

struct SourceName {
  std::string canonical, source;
};

/// What the source calls the tensors, for messages. `table` is empty where the names are canonical.
struct SourceNames {
  std::vector<SourceName> present;
  std::span<const NameRow> table;
};

/// Sorts the tensors into file order, binds the family, refuses tensors that it does not read,
/// records the graph part and fills in the report.
/// Errors: F31..F33, MissingTensor, InvalidConfig, Format; NotBuilt for a model_type without a
/// family.
Result<void> complete_draft(ModelDraft& draft, const SourceNames& names, ImportReport& report);

/// Text of a source as one line of valid UTF-8: control characters become spaces.
std::string one_line(std::string_view text);

/// one_line(); a text that it changes is a warning that names `what`.
std::string shown_text(std::string_view what, std::string_view text, ImportReport& report);
/// The same without touching control characters: what is not valid UTF-8 becomes U+FFFD.
std::string valid_text(std::string_view what, std::string_view text, ImportReport& report);

/// Name of the model: `wished` as it is (InvalidInput unless the store takes it as a name), else
/// from `path` without its extension, with other characters than [A-Za-z0-9._-] replaced and at
/// most 128 bytes; a name that had to be changed is an assumption of the report.
Result<std::string> draft_name(const std::string& wished, const std::string& path,
                               ImportReport& report);

}  // namespace cyb
