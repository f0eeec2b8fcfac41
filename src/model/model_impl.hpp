// Model's state: filled once by the loader, then read-only but for the lazily made values, each
// behind the one mutex.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "model/identity.hpp"
#include "model/model.hpp"
#include "model/parts.hpp"
#include "tensor/buffer.hpp"

namespace cyb {

struct FreeDeleter {
  void operator()(std::byte* at) const noexcept { std::free(at); }
};
using AlignedBytes = std::unique_ptr<std::byte, FreeDeleter>;

struct Model::Impl {
  std::shared_ptr<const MappedFile> file;  // null when parsed from borrowed bytes
  std::string path;                        // "" when parsed from bytes
  std::span<const std::byte> bytes;
  SplitFile split;
  StatedIds stated;
  std::string name, model_type;
  ConfigTable config;
  std::optional<ConfigTable> chat;
  std::vector<TensorEntry> tensors;    // ascending offset
  std::vector<std::uint32_t> by_name;  // indices into tensors, ascending name
  std::size_t misaligned = 0;
  std::shared_ptr<const Model> base;  // of with_decoded(), else null

  mutable std::mutex lazy_mutex;
  mutable std::optional<Result<VocabData>> vocab;
  mutable std::optional<Digest> weights_hash, file_hash;
  mutable std::map<std::uint64_t, AlignedBytes> copies;  // by tensor offset
  mutable std::map<std::uint64_t, Buffer> measured;      // in place of them where `measures`
  mutable std::uint64_t copied_bytes = 0;                // of both
  bool measures = false;

  const TensorEntry* find(std::string_view wanted) const noexcept;
  static std::shared_ptr<const Model> held(std::shared_ptr<const Model> model,
                                           const std::function<bool(const TensorEntry&)>& wanted,
                                           bool measures);
  /// Address space for a tensor that with_measured() changed. The lock is held.
  std::span<const std::byte> measured_bytes(const TensorEntry& entry) const noexcept;
  /// The f32 bytes of a tensor that with_decoded() changed; made on first use, empty without
  /// memory.
  std::span<const std::byte> decoded_bytes(const TensorEntry& entry) const noexcept;
  /// The error with the path as its outer frame.
  std::unexpected<Error> failure(Error error) const {
    return fail(path.empty() ? std::move(error) : std::move(error).in(path));
  }
  /// Reads and checks everything but what is lazy.
  Result<void> load(const ModelOptions& options);
  Result<void> load_tensors(const ModelOptions& options);
  /// Checks the text parts against [cyb.id] where it also states the weights' hash (F40).
  Result<void> check_stated_ids() const;
  Result<Digest> hash_weights(std::stop_token stop) const;
  Result<void> verify_graph(const Graph& decoded) const;
  Result<void> verify_weights(std::stop_token stop, const ByteProgress& progress) const;
};

}  // namespace cyb
