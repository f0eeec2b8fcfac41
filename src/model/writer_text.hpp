// WriterText: the text side of a draft: checked parts, tensor layout, and rendering with given ids.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "model/model.hpp"
#include "model/writer.hpp"

namespace cyb {

inline constexpr std::size_t kWeightsAlignment = 4096;

class WriterText {
 public:
  /// Everything that can be refused without producing a weight. Borrows `draft`.
  static Result<WriterText> make(const ModelDraft& draft);

  /// In file order, with offsets; the writer sets their hashes.
  std::vector<TensorEntry>& entries() noexcept { return entries_; }
  std::uint64_t weights_bytes() const noexcept { return weights_bytes_; }

  /// Needs the final tensor hashes.
  Digest model_id(const Digest& weights_hash) const;
  /// All bytes before the weights. Its length does not depend on the digests.
  std::string render(const Digest& model_id, const Digest& weights_hash) const;

 private:
  struct Part {
    std::string_view name, format;
    std::string body;
  };

  explicit WriterText(const ModelDraft& draft) : draft_(&draft) {}
  Result<void> lay_out();
  Result<void> make_config();
  Result<void> make_parts();
  /// A stored graph must be one that a reader accepts with these tensors (G codes).
  Result<void> check_graph() const;
  Result<void> add_part(std::string_view name, std::string_view format, std::string body);
  /// The tensors part with the hashes that are known, or zero digests.
  std::string tensors_body() const;
  std::string frontmatter(const Digest& model_id, const Digest& weights_hash) const;

  const ModelDraft* draft_;
  ConfigTable config_;
  std::vector<TensorEntry> entries_;
  std::uint64_t weights_bytes_ = 0;
  std::vector<Part> parts_;  // text parts but pad, in file order; the body of tensors is empty here
};

}  // namespace cyb
