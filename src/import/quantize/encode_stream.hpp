// EncodeStream: bytes of one encoding in, bytes of another out, in pieces of bounded size, with the
// sum of squared errors. Pieces are cut by position alone and their sums added in order, so threads
// change nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "model/writer.hpp"
#include "tensor/dtype.hpp"
#include "tensor/shape.hpp"

namespace cyb::quantize {

struct StreamScale {
  Shape shape;
  std::vector<float> values;
};

struct StreamJob {
  std::string name;  // for messages
  Shape shape;
  DType from = DType::kF32, to = DType::kF32;
  std::optional<StreamScale> scale = std::nullopt;  // of the source
};

class EncodeStream {
 public:
  /// `pool` outlives the stream.
  EncodeStream(StreamJob job, ThreadPool& pool, const ByteSink& sink);

  /// Errors: F42, WeightFormat, what the sink says.
  Result<void> update(std::span<const std::byte> bytes);
  /// The rest. Errors: as update; WeightFormat where the source ended inside a block.
  Result<void> finish();

  double squared_error() const noexcept { return squared_error_; }
  double squared_values() const noexcept { return squared_values_; }

 private:
  Result<void> encode(std::size_t n_values);

  StreamJob job_;
  ThreadPool& pool_;
  const ByteSink& sink_;
  std::vector<std::byte> pending_, out_;
  std::uint64_t done_ = 0;  // values
  double squared_error_ = 0, squared_values_ = 0;
};

}  // namespace cyb::quantize
