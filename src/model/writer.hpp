// ModelDraft and the `.model` writer: parts in canonical order, weights page-aligned, written
// atomically.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/hash.hpp"
#include "base/result.hpp"
#include "model/config.hpp"
#include "model/vocab_data.hpp"
#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace cyb {

/// Receives consecutive bytes of one tensor.
using ByteSink = std::function<Result<void>(std::span<const std::byte>)>;

struct DraftTensor {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  /// Writes exactly tensor_bytes(dtype, shape) bytes; may be called more than once.
  std::function<Result<void>(const ByteSink&)> produce;
};

struct ModelDraft {
  std::string name;     // [A-Za-z0-9._-], 1..128
  ConfigTable lineage;  // [cyb.lineage]
  std::string card;     // Markdown
  ConfigTable config;   // `parameters` is filled in by the writer
  std::string program;  // trident source, may be empty
  std::optional<std::string> graph_hex;
  std::vector<DraftTensor> tensors;  // in file order
  VocabData vocab;
  std::optional<ConfigTable> chat;
  std::string eval;
  bool tensor_hashes = true;  // write `hash` per tensor
  bool state_id = true;       // write [cyb.id] model
  bool state_weights_hash =
      true;  // and [cyb.id] weights: text parts can be checked without the weights
};

struct WriteProgress {
  std::uint64_t bytes_done = 0, bytes_total = 0;
  std::string_view what;
};

struct WrittenModel {
  Digest model_id, file_id;
  std::uint64_t file_bytes = 0;
};

struct WriteOptions {
  std::function<void(const WriteProgress&)> progress;  // may be empty
  std::stop_token stop;                                // Cancelled; nothing is left behind
};

/// Writes `draft` to `path`, refusing what a reader would refuse (F05, F09, F20, F22, F28, F29,
/// F31..F35) before any weight is asked for. Non-finite weights are F42, body lines that start with
/// "~~~" F06; on any error no file appears.
Result<WrittenModel> write_model(const std::string& path, const ModelDraft& draft,
                                 const WriteOptions& options = {});

}  // namespace cyb
