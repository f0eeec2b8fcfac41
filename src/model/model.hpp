// Model: one `.model` file, mapped and validated; immutable and shared. Spec: docs/model-format.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "base/result.hpp"
#include "model/config.hpp"
#include "model/graph.hpp"
#include "model/vocab_data.hpp"
#include "tensor/tensor_view.hpp"

namespace cyb {

struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  std::uint64_t offset = 0;  // from the first weight byte
  std::uint64_t size_bytes = 0;
  std::optional<Digest> hash;
};

/// How a file without format_version names its encodings; kNone refuses it (F04).
enum class LegacyEncodings : std::uint8_t { kNone, kIeee, kFixed };

struct ModelOptions {
  bool verify_weights = false;         // hash weights and tensors (F40, F41)
  std::uint64_t text_limit_bytes = 0;  // 0: kMaxTextBytes
  LegacyEncodings legacy_encodings = LegacyEncodings::kNone;
};

class Model {
 public:
  /// Maps and validates a file. Errors: F codes with the path as outer frame, Io.
  static Result<std::shared_ptr<const Model>> open(const std::string& path,
                                                   const ModelOptions& options = {});
  /// The same on bytes that stay valid as long as the model (fuzzing, tests).
  static Result<std::shared_ptr<const Model>> parse(std::span<const std::byte> bytes,
                                                    const ModelOptions& options = {});
  /// `model` with the tensors that `wanted` names held as f32: decoded in memory when their bytes
  /// are first asked for, times their sibling scale where they have one. Identity, text and the
  /// other tensors are those of `model`, which is returned itself where `wanted` names none.
  static std::shared_ptr<const Model> with_decoded(
      std::shared_ptr<const Model> model, const std::function<bool(const TensorEntry&)>& wanted);
  /// The same for measuring: those tensors are address space of their size that must not be read.
  static std::shared_ptr<const Model> with_measured(
      std::shared_ptr<const Model> model, const std::function<bool(const TensorEntry&)>& wanted);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const std::string& path() const noexcept;
  const std::string& name() const noexcept;
  const std::string& model_type() const noexcept;
  std::string_view card() const noexcept;
  std::string_view program() const noexcept;
  std::string_view eval() const noexcept;
  const ConfigTable& frontmatter() const noexcept;
  const ConfigTable& config() const noexcept;
  const ConfigTable* chat() const noexcept;  // null: no chat part
  /// Parsed on first use (thread-safe). Errors: F34.
  Result<const VocabData*> vocab() const;
  bool has_graph() const noexcept;
  /// Decodes the graph part. Errors: G codes.
  Result<Graph> graph() const;

  const std::vector<TensorEntry>& tensors() const noexcept;  // ascending offset
  const TensorEntry* find_tensor(std::string_view name) const noexcept;
  /// Bytes of a tensor, 64-byte aligned: a view of the mapping, or of a copy made on first use
  /// where the mapped address is not aligned. Empty only for an empty tensor or when that copy
  /// finds no memory.
  std::span<const std::byte> tensor_bytes(const TensorEntry& entry) const noexcept;
  /// Bytes of the copies that tensor_bytes() has made.
  std::uint64_t copied_bytes() const noexcept;
  /// True for bytes inside the mapped file.
  bool is_mapped(std::span<const std::byte> bytes) const noexcept;
  /// Lets the system drop mapped bytes from this process; they are read again when they are used.
  void release(std::span<const std::byte> bytes) const noexcept;
  /// Tensors whose mapped address is not a multiple of 64, so that they are copied when used.
  std::size_t misaligned_tensors() const noexcept;
  std::uint64_t weights_bytes() const noexcept;
  std::uint64_t file_bytes() const noexcept;

  /// Identity of what the model computes. From [cyb.id] when stated (checked by verify), else
  /// computed (hashes the weights once).
  Result<Digest> model_id() const;
  /// Computed from the bytes, whatever [cyb.id] states.
  Result<Digest> computed_model_id() const;
  /// BLAKE3 of the whole file.
  Result<Digest> file_id() const;
  /// Names of what model_id does not cover, in file order: "frontmatter", "card", "eval", "pad" and
  /// parts that this program does not know. A change there makes no other model; it is seen only
  /// where it breaks the format, or by file_id.
  std::vector<std::string> outside_model_id() const;
  /// Reads the weights once: stated hashes and ids (F40, F41), finite values (F42), ternary codes
  /// (F30). Cancellable; `progress` gets the weight bytes done.
  Result<void> verify_weights(std::stop_token stop = {},
                              const std::function<void(std::uint64_t)>& progress = {}) const;
  /// Everything that the format lets one check: verify_weights, vocab with merges, eval, pad, the
  /// stated alignment, graph validity, and for a file in a store its file_id, which covers every
  /// byte.
  Result<void> verify(std::stop_token stop = {}) const;

 private:
  Model();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cyb
