// Source tensors whose rows or axes are in another order than ours.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/json_text.hpp"
#include "import/draft.hpp"
#include "tensor/dtype.hpp"

namespace cyb {
namespace {

std::unexpected<Error> bad_shape(const SourceTensor& tensor, std::string_view why) {
  return fail(Error(ErrorKind::kFormat, "F33",
                    fmt::format("tensor {}: shape {}: {}", json_quote(tensor.source_name),
                                tensor.shape.text(), why)));
}

}  // namespace

Result<DraftTensor> gathered(SourceTensor tensor, std::vector<RowRun> runs) {
  const std::int64_t n_rows = tensor.shape.rank() == 0 ? 0 : tensor.shape[0];
  std::int64_t n_taken = 0;
  for (const RowRun& run : runs) {
    if (run.first < 0 || run.count < 0 || run.first > n_rows - run.count)
      return bad_shape(tensor, fmt::format("has no row {}", run.first + run.count - 1));
    n_taken += run.count;
  }
  if (n_rows == 0) return bad_shape(tensor, "has no rows");
  DraftTensor out;
  out.name = tensor.name;
  out.dtype = tensor.dtype;
  out.shape = tensor.shape;
  out.shape[0] = n_taken;
  const std::uint64_t row_bytes = tensor.size_bytes / static_cast<std::uint64_t>(n_rows);
  out.produce = [source = std::move(tensor), runs = std::move(runs),
                 row_bytes](const ByteSink& sink) -> Result<void> {
    for (const RowRun& run : runs) {
      const std::uint64_t at = static_cast<std::uint64_t>(run.first) * row_bytes,
                          size = static_cast<std::uint64_t>(run.count) * row_bytes;
      CYB_TRY(sink(source.bytes().subspan(at, size)));
      source.file->release(source.offset + at, size);
    }
    return {};
  };
  return out;
}

Result<DraftTensor> transposed(SourceTensor tensor) {
  const FormatInfo& format = format_info(tensor.dtype);
  if (tensor.shape.rank() != 2) return bad_shape(tensor, "want two dimensions");
  if (format.block_values != 1) return bad_shape(tensor, "blocks cannot be transposed");
  DraftTensor out;
  out.name = tensor.name;
  out.dtype = tensor.dtype;
  out.shape = Shape{tensor.shape[1], tensor.shape[0]};
  out.produce = [source = std::move(tensor),
                 size = std::size_t{format.block_bytes}](const ByteSink& sink) -> Result<void> {
    constexpr std::size_t kRowsAtOnce = 64;  // of the result: the source is read in pieces of them
    const auto n_in = static_cast<std::size_t>(source.shape[0]),
               n_out = static_cast<std::size_t>(source.shape[1]);
    std::vector<std::byte> rows;
    for (std::size_t begin = 0; begin < n_out; begin += kRowsAtOnce) {
      const std::size_t n = std::min(kRowsAtOnce, n_out - begin);
      rows.resize(n * n_in * size);
      for (std::size_t i = 0; i < n_in; ++i) {
        const std::byte* from = source.bytes().data() + (i * n_out + begin) * size;
        for (std::size_t k = 0; k < n; ++k)
          std::memcpy(rows.data() + (k * n_in + i) * size, from + k * size, size);
      }
      CYB_TRY(sink(rows));
    }
    source.file->release(source.offset, source.size_bytes);
    return {};
  };
  return out;
}

}  // namespace cyb
