// A chunk of values is cut into pieces that the threads take one after the other.
#include "import/quantize/encode_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>

#include "model/format_error.hpp"
#include "model/scale.hpp"
#include "tensor/formats/encoders.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::quantize {
namespace {

constexpr std::size_t kPieceValues = 4096, kChunkValues = std::size_t{1} << 20;

struct PieceResult {
  double error = 0, values = 0;
  std::ptrdiff_t not_finite = -1, too_large = -1;  // index in the piece
};

/// What the threads share of one chunk.
struct Chunk {
  const StreamJob& job;
  const std::byte* from;
  std::byte* to;
  std::size_t first, n;  // values
  std::vector<PieceResult>& results;
  std::atomic<std::size_t>& next;

  void operator()(unsigned, unsigned) const noexcept {
    for (std::size_t p; (p = next.fetch_add(1)) < results.size();) piece(p);
  }
  void piece(std::size_t p) const noexcept;
};

std::size_t bytes_of(DType dtype, std::size_t n_values) noexcept {
  const FormatInfo& format = format_info(dtype);
  return n_values / format.block_values * format.block_bytes;
}

/// Index of the first value that `to` cannot hold, or -1.
std::ptrdiff_t encode_values(DType to, std::span<const float> x, std::byte* out) noexcept {
  if (to == DType::kF16) return formats::encode_f16(x, out);
  if (to == DType::kBf16) {
    formats::encode_bf16(x, out);
  } else if (to == DType::kF32) {
    std::memcpy(out, x.data(), x.size_bytes());
  } else {
    formats::fine_encoder(to)(x.data(), nullptr, out, x.size());
  }
  return -1;
}

void Chunk::piece(std::size_t p) const noexcept {
  std::array<float, kPieceValues> x, back;
  PieceResult& result = results[p];
  const std::size_t at = p * kPieceValues, count = std::min(kPieceValues, n - at);
  format_info(job.from).decode(from + bytes_of(job.from, at), x.data(), count);
  const std::span<float> values(x.data(), count);
  if (job.scale)
    apply_scale(job.shape, job.scale->shape, job.scale->values.data(), first + at, values);
  const auto bad = std::ranges::find_if_not(values, [](float v) { return std::isfinite(v); });
  if (bad != values.end()) {
    result.not_finite = bad - values.begin();
    return;
  }
  std::byte* out = to + bytes_of(job.to, at);
  result.too_large = encode_values(job.to, values, out);
  format_info(job.to).decode(out, back.data(), count);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = values[i], error = value - static_cast<double>(back[i]);
    result.values += value * value;
    result.error += error * error;
  }
}

}  // namespace

EncodeStream::EncodeStream(StreamJob job, ThreadPool& pool, const ByteSink& sink)
    : job_(std::move(job)), pool_(pool), sink_(sink) {}

Result<void> EncodeStream::encode(std::size_t n_values) {
  std::vector<PieceResult> results((n_values + kPieceValues - 1) / kPieceValues);
  std::atomic<std::size_t> next{0};
  out_.resize(bytes_of(job_.to, n_values));
  Chunk chunk{job_,     pending_.data(), out_.data(), static_cast<std::size_t>(done_),
              n_values, results,         next};
  pool_.run(chunk);
  for (std::size_t p = 0; p < results.size(); ++p) {
    const PieceResult& result = results[p];
    const std::uint64_t first = done_ + p * kPieceValues;
    if (result.not_finite >= 0) {
      return fail(format_error(
          "F42", fmt::format("tensor \"{}\": non-finite value at element {}", printable(job_.name),
                             first + static_cast<std::uint64_t>(result.not_finite))));
    }
    if (result.too_large >= 0) {
      return fail(Error(
          ErrorKind::kWeightFormat,
          fmt::format("tensor \"{}\": element {} is too large for {}", printable(job_.name),
                      first + static_cast<std::uint64_t>(result.too_large), dtype_name(job_.to))));
    }
    squared_error_ += result.error;
    squared_values_ += result.values;
  }
  done_ += n_values;
  return sink_(out_);
}

Result<void> EncodeStream::update(std::span<const std::byte> bytes) {
  const std::size_t chunk_bytes = bytes_of(job_.from, kChunkValues);
  while (!bytes.empty()) {
    const std::size_t take = std::min(bytes.size(), chunk_bytes - pending_.size());
    pending_.insert(pending_.end(), bytes.begin(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(take));
    bytes = bytes.subspan(take);
    if (pending_.size() < chunk_bytes) continue;
    CYB_TRY(encode(kChunkValues));
    pending_.clear();
  }
  return {};
}

Result<void> EncodeStream::finish() {
  if (pending_.empty()) return {};
  const FormatInfo& from = format_info(job_.from);
  const std::size_t n_values = pending_.size() / from.block_bytes * from.block_values;
  const bool whole =
      pending_.size() % from.block_bytes == 0 && n_values % format_info(job_.to).block_values == 0;
  if (!whole) {
    return fail(Error(ErrorKind::kWeightFormat,
                      fmt::format("tensor \"{}\" ends inside a block", printable(job_.name))));
  }
  CYB_TRY(encode(n_values));
  pending_.clear();
  return {};
}

}  // namespace cyb::quantize
