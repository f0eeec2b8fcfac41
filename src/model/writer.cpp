// The `.model` writer. The text is laid out with zero digests of the final length, the weights are
// produced, checked and hashed in one pass, and the text is then written again with the real
// digests.
#include "model/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/file.hpp"
#include "base/limits.hpp"
#include "model/finite.hpp"
#include "model/format_error.hpp"
#include "model/identity.hpp"
#include "model/tensor_index.hpp"
#include "model/writer_text.hpp"

namespace cyb {
namespace {

constexpr std::uint64_t kProgressBytes = std::uint64_t{1} << 20;

class Progress {
 public:
  Progress(const WriteOptions& options, std::uint64_t total) : options_(options), total_(total) {}

  void begin(std::string_view what) {
    what_ = what;
    report();
  }
  void add(std::uint64_t bytes) {
    done_ += bytes;
    if (done_ - reported_ >= kProgressBytes || done_ == total_) report();
  }
  Result<void> check_stop() const {
    if (options_.stop.stop_requested()) return fail(cancelled_bytes("writing", done_, total_));
    return {};
  }

 private:
  void report() {
    reported_ = done_;
    if (options_.progress) options_.progress({done_, total_, what_});
  }

  const WriteOptions& options_;
  std::uint64_t total_, done_ = 0, reported_ = 0;
  std::string what_;
};

/// The weights: gaps of zeros and tensors, each byte once.
class WeightsWriter {
 public:
  WeightsWriter(AtomicFile& file, Progress& progress) : file_(file), progress_(progress) {}

  Result<void> gap(std::uint64_t end) {
    constexpr std::array<std::byte, kWeightsAlignment> kZeros{};
    while (at_ < end) {
      const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(kZeros.size(), end - at_));
      CYB_TRY(put(std::span(kZeros).first(step)));
    }
    return {};
  }

  /// Sets entry.hash if `hashed`.
  Result<void> tensor(const DraftTensor& draft, TensorEntry& entry, bool hashed) {
    progress_.begin(entry.name);
    FiniteCheck finite(entry.name, entry.dtype);
    Blake3 hasher;
    std::uint64_t left = entry.size_bytes;
    const ByteSink sink = [&](std::span<const std::byte> bytes) -> Result<void> {
      CYB_TRY(progress_.check_stop());
      if (bytes.size() > left)
        return fail(size_error(entry, entry.size_bytes - left + bytes.size()));
      left -= bytes.size();
      CYB_TRY(finite.update(bytes));
      if (hashed) hasher.update(bytes);
      return put(bytes);
    };
    CYB_TRY(progress_.check_stop());
    CYB_TRY(draft.produce(sink));
    if (left != 0) return fail(size_error(entry, entry.size_bytes - left));
    if (hashed) entry.hash = hasher.finish();
    return {};
  }

  Digest finish() const { return hasher_.finish(); }

 private:
  static Error size_error(const TensorEntry& entry, std::uint64_t bytes) {
    return Error(
        ErrorKind::kWeightFormat,
        fmt::format("tensor \"{}\" is declared {} {} but has {} bytes", printable(entry.name),
                    dtype_name(entry.dtype), entry.shape.text(), bytes));
  }

  Result<void> put(std::span<const std::byte> bytes) {
    hasher_.update(bytes);
    at_ += bytes.size();
    progress_.add(bytes.size());
    return file_.write(bytes);
  }

  AtomicFile& file_;
  Progress& progress_;
  Blake3 hasher_;
  std::uint64_t at_ = 0;
};

Result<Digest> hash_written(const AtomicFile& file, const WriteOptions& options,
                            Progress& progress) {
  CYB_ASSIGN(const std::shared_ptr<const MappedFile> mapped,
             MappedFile::open(file.temporary_path()));
  progress.begin("content hash");
  std::uint64_t last = 0;
  return hash_bytes(mapped->bytes(), options.stop, [&](std::uint64_t done) {
    mapped->release(last, done - last);  // read once: not a part of this process's memory
    progress.add(done - last);
    last = done;
  });
}

Result<WrittenModel> write_checked(const std::string& path, const ModelDraft& draft,
                                   WriterText& text, const WriteOptions& options) {
  const std::string layout = text.render(Digest{}, Digest{});
  if (layout.size() > kMaxTextBytes) {
    return fail(invalid_input(fmt::format("the text parts have {} bytes, the limit is {}",
                                          layout.size(), kMaxTextBytes)));
  }
  Progress progress(options, 2 * text.weights_bytes() + layout.size());
  CYB_ASSIGN(AtomicFile file, AtomicFile::create(path));
  CYB_TRY(file.write(layout));
  WeightsWriter weights(file, progress);
  for (std::size_t i = 0; i < draft.tensors.size(); ++i) {
    TensorEntry& entry = text.entries()[i];
    CYB_TRY(weights.gap(entry.offset));
    CYB_TRY(weights.tensor(draft.tensors[i], entry, draft.tensor_hashes));
  }
  WrittenModel out;
  const Digest weights_hash = weights.finish();
  out.model_id = text.model_id(weights_hash);
  const std::string final_text = text.render(out.model_id, weights_hash);
  if (final_text.size() != layout.size())
    return fail(internal_error("the text changed its length"));
  CYB_TRY(file.write_at(0, std::as_bytes(std::span(final_text))));
  out.file_bytes = file.size();
  CYB_ASSIGN(out.file_id, hash_written(file, options, progress));
  CYB_TRY(file.commit());
  return out;
}

}  // namespace

Result<WrittenModel> write_model(const std::string& path, const ModelDraft& draft,
                                 const WriteOptions& options) {
  const auto write = [&]() -> Result<WrittenModel> {
    CYB_ASSIGN(WriterText text, WriterText::make(draft));
    return write_checked(path, draft, text, options);
  };
  auto result = write();
  const ErrorKind kind = result ? ErrorKind::kInternal : result.error().kind();
  if (!result && (kind == ErrorKind::kFormat || kind == ErrorKind::kGraph)) {
    return fail(std::move(result).error().in(path));
  }
  return result;
}

}  // namespace cyb
