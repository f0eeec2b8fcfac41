// The streaming reader of the tensors part and its checks. Per-tensor rules first, then ranges,
// then overlaps by one sort.
#include "model/tensor_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/checked.hpp"
#include "base/limits.hpp"
#include "model/format_error.hpp"
#include "model/toml_cursor.hpp"

namespace cyb {
namespace {

constexpr std::string_view kPart = "tensors";
constexpr std::uint64_t kReadAlignment = 64;

Error tensor_error(std::string_view code, std::string_view name, std::string_view what) {
  return format_error(code, fmt::format("tensor \"{}\": {}", printable(name), what))
      .with("tensor", printable(name));
}

Error shape_error(std::string_view name, std::string_view shape, std::string_view what) {
  return tensor_error("F20", name, fmt::format("shape {}: {}", printable(shape, 64), what));
}

/// What one table of the part says, before it is judged.
struct RawEntry {
  TensorEntry entry;
  std::string encoding;
  bool has_shape = false, has_encoding = false, has_offset = false, has_size = false;
};

class IndexReader {
 public:
  IndexReader(std::string_view text, std::uint64_t weights_bytes, LegacyEncodings legacy)
      : cursor_(text, kPart), weights_bytes_(weights_bytes), legacy_(legacy) {}

  Result<std::vector<TensorEntry>> read() {
    std::vector<TensorEntry> out;
    cursor_.skip_blank();
    while (!cursor_.at_end()) {
      if (out.size() >= kMaxTensors) return fail(cursor_.error("more than 1048576 tensors"));
      CYB_ASSIGN(TensorEntry entry, table());
      out.push_back(std::move(entry));
      cursor_.skip_blank();
    }
    return out;
  }

 private:
  Result<TensorEntry> table() {
    RawEntry raw;
    CYB_ASSIGN(const std::string_view name, cursor_.table_header());
    if (name.empty()) return fail(cursor_.error("a tensor has no name"));
    raw.entry.name = name;
    seen_.clear();
    cursor_.skip_blank();
    while (!cursor_.at_end() && cursor_.peek() != '[') {
      CYB_TRY(key_value(raw));
      CYB_TRY(cursor_.end_of_line());
      cursor_.skip_blank();
    }
    CYB_TRY(judge(raw));
    return std::move(raw.entry);
  }

  Result<void> key_value(RawEntry& raw) {
    CYB_ASSIGN(const std::string_view view, cursor_.key());
    const std::string key(view);
    if (std::ranges::count(seen_, key) != 0) return fail(duplicate_error("key", key));
    if (seen_.size() >= 64) return fail(cursor_.error("more than 64 keys in one tensor"));
    seen_.push_back(key);
    CYB_TRY(cursor_.expect('='));
    cursor_.skip_spaces();
    if (key == "shape") {
      raw.has_shape = true;
      return shape(raw.entry);
    }
    if (key == "encoding") {
      raw.has_encoding = true;
      CYB_ASSIGN(raw.encoding, cursor_.string());
      return {};
    }
    if (key == "offset") return number(raw.entry.offset, raw.has_offset);
    if (key == "size") return number(raw.entry.size_bytes, raw.has_size);
    if (key == "hash") return hash(raw.entry);
    if (key == "shard") {
      return fail(format_error("F50", "sharded .model files are not supported in format 3"));
    }
    return cursor_.skip_value();
  }

  Result<void> number(std::uint64_t& out, bool& has) {
    CYB_ASSIGN(const std::int64_t value, cursor_.integer());
    if (value < 0) return fail(cursor_.error("expected an integer >= 0"));
    out = static_cast<std::uint64_t>(value);
    has = true;
    return {};
  }

  Result<void> hash(TensorEntry& entry) {
    CYB_ASSIGN(const std::string_view text, cursor_.string());
    if (text.starts_with("blake3:")) entry.hash = parse_digest(text);
    if (!entry.hash) return fail(cursor_.error("hash is not \"blake3:\" and 64 hex digits"));
    return {};
  }

  Result<void> shape(TensorEntry& entry) {
    const std::size_t begin = cursor_.position();
    if (!cursor_.consume('[')) return fail(cursor_.error("expected an array of integers"));
    std::array<std::int64_t, kMaxRank> dims{};
    std::size_t rank = 0;
    bool first = true;
    while (true) {
      CYB_ASSIGN(const bool more, cursor_.next_element(first));
      if (!more) break;
      CYB_ASSIGN(const std::int64_t dim, cursor_.integer());
      if (rank < dims.size()) dims[rank] = dim;
      ++rank;
    }
    if (rank > kMaxRank) return fail(shape_error(entry.name, cursor_.text_from(begin), "rank > 5"));
    entry.shape = Shape(std::span<const std::int64_t>(dims.data(), rank));
    return {};
  }

  Result<void> encoding(RawEntry& raw) const {
    const std::string& name = raw.encoding;
    if (name == "u32" || name == "u16") {
      if (legacy_ == LegacyEncodings::kNone) {
        return fail(
            tensor_error("F23", raw.entry.name,
                         fmt::format("encoding \"{}\" is ambiguous in this format version", name)));
      }
      const bool ieee = legacy_ == LegacyEncodings::kIeee;
      if (name == "u32") raw.entry.dtype = ieee ? DType::kF32 : DType::kI32q16;
      if (name == "u16") raw.entry.dtype = ieee ? DType::kF16 : DType::kI16q8;
      return {};
    }
    if (legacy_ == LegacyEncodings::kFixed && (name == "q4" || name == "q8")) {
      return fail(not_built(fmt::format("reading {} of tensor \"{}\" with --legacy-encodings=fixed",
                                        name, printable(raw.entry.name))));
    }
    const auto dtype = find_dtype(name);
    if (!dtype) {
      return fail(tensor_error("F21", raw.entry.name,
                               fmt::format("unknown encoding \"{}\"", printable(name, 32))));
    }
    raw.entry.dtype = *dtype;
    return {};
  }

  Result<void> judge(RawEntry& raw) const {
    TensorEntry& t = raw.entry;
    const std::string_view missing = !raw.has_shape      ? "shape"
                                     : !raw.has_encoding ? "encoding"
                                     : !raw.has_offset   ? "offset"
                                     : !raw.has_size     ? "size"
                                                         : "";
    if (!missing.empty()) {
      return fail(
          cursor_.error(fmt::format("tensor \"{}\" has no {}", printable(t.name), missing)));
    }
    CYB_TRY(encoding(raw));
    CYB_ASSIGN(const std::uint64_t bytes, stored_tensor_bytes(t.name, t.dtype, t.shape));
    if (bytes != t.size_bytes) {
      return fail(
          tensor_error("F24", t.name,
                       fmt::format("{} {} needs {} bytes, index says {}", dtype_name(t.dtype),
                                   t.shape.text(), bytes, t.size_bytes)));
    }
    if (t.offset % kReadAlignment != 0) {
      return fail(
          tensor_error("F27", t.name, fmt::format("offset {} is not a multiple of 64", t.offset)));
    }
    if (!range_fits(t.offset, t.size_bytes, weights_bytes_)) {
      // offset and size came from 63-bit integers: the sum cannot wrap.
      return fail(tensor_error("F25", t.name,
                               fmt::format("bytes {}..{} exceed weights size {}", t.offset,
                                           t.offset + t.size_bytes, weights_bytes_)));
    }
    return {};
  }

  TomlCursor cursor_;
  std::uint64_t weights_bytes_;
  LegacyEncodings legacy_;
  std::vector<std::string> seen_;
};

Result<void> check_overlaps(const std::vector<TensorEntry>& sorted) {
  const TensorEntry* last = nullptr;  // the non-empty tensor that ends last
  for (const TensorEntry& t : sorted) {
    if (t.size_bytes == 0) continue;
    if (last != nullptr && t.offset < last->offset + last->size_bytes) {
      return fail(
          format_error("F26", fmt::format("tensors \"{}\" and \"{}\" overlap at byte {}",
                                          printable(last->name), printable(t.name), t.offset)));
    }
    last = &t;
  }
  return {};
}

/// Base name of a `.scale` sibling, empty if `name` is none.
std::string_view scale_base(std::string_view name) noexcept {
  constexpr std::string_view kSuffix = ".scale";
  return name.ends_with(kSuffix) ? name.substr(0, name.size() - kSuffix.size())
                                 : std::string_view();
}

}  // namespace

Result<std::uint64_t> stored_tensor_bytes(std::string_view name, DType dtype, const Shape& shape) {
  if (shape.rank() > kMaxRank) return fail(shape_error(name, shape.text(), "rank > 5"));
  for (const std::int64_t dim : shape.dims()) {
    if (dim < 0) return fail(shape_error(name, shape.text(), "negative dimension"));
  }
  const auto elements = shape.elements();
  if (!elements) return fail(shape_error(name, shape.text(), "overflow"));
  const FormatInfo& format = format_info(dtype);
  if (format.block_values > 1 && shape.rank() < 2) {
    return fail(tensor_error("F29", name, fmt::format("encoding {} needs rank >= 2", format.name)));
  }
  if (format.block_values > 1 && shape.back() % format.block_values != 0) {
    return fail(tensor_error("F22", name,
                             fmt::format("last dimension {} is not a multiple of {} ({})",
                                         shape.back(), format.block_values, format.name)));
  }
  const auto bytes = tensor_bytes(dtype, shape);
  // Offsets and sizes are written as 64-bit signed integers.
  if (!bytes || *bytes > static_cast<std::uint64_t>(INT64_MAX)) {
    return fail(shape_error(name, shape.text(), "overflow"));
  }
  return *bytes;
}

Result<std::vector<TensorEntry>> read_tensor_index(std::string_view text,
                                                   std::uint64_t weights_bytes,
                                                   LegacyEncodings legacy) {
  CYB_TRY(check_text(text, kPart));
  CYB_ASSIGN(std::vector<TensorEntry> tensors, IndexReader(text, weights_bytes, legacy).read());
  std::ranges::sort(tensors, [](const TensorEntry& x, const TensorEntry& y) {
    return std::tie(x.offset, x.size_bytes, x.name) < std::tie(y.offset, y.size_bytes, y.name);
  });
  CYB_TRY(check_overlaps(tensors));
  return tensors;
}

Result<void> check_scale_siblings(const std::vector<TensorEntry>& tensors,
                                  const std::function<const TensorEntry*(std::string_view)>& find) {
  for (const TensorEntry& t : tensors) {
    if (!has_scale_sibling(t.dtype)) continue;
    const TensorEntry* scale = find(t.name + ".scale");
    const bool ternary = t.dtype == DType::kTernary;
    if (scale == nullptr && !ternary) continue;
    const std::int64_t rows = t.shape.rank() < 2 ? 1 : t.shape[t.shape.rank() - 2];
    const bool ok = scale != nullptr && scale->dtype == DType::kF32 &&
                    is_scale_shape(t.dtype, t.shape, scale->shape);
    if (ok) continue;
    return fail(tensor_error(
        "F28", t.name,
        ternary ? fmt::format("ternary needs \"{}.scale\" f32 [1] or [{}]", printable(t.name), rows)
                : fmt::format("\"{}.scale\" is not f32 [1], [{}] or one for each 128 x 128 values",
                              printable(t.name), rows)));
  }
  return {};
}

std::optional<std::uint64_t> count_parameters(
    const std::vector<TensorEntry>& tensors,
    const std::function<const TensorEntry*(std::string_view)>& find) {
  std::uint64_t sum = 0;
  for (const TensorEntry& t : tensors) {
    if (t.name.starts_with("cyb.")) continue;
    const std::string_view base = scale_base(t.name);
    if (!base.empty() && find(base) != nullptr) continue;
    const auto elements = t.shape.elements();
    const auto next = elements ? checked_add(sum, *elements) : std::nullopt;
    if (!next) return std::nullopt;
    sum = *next;
  }
  return sum;
}

std::string write_tensor_index(const std::vector<TensorEntry>& tensors) {
  std::string out;
  for (const TensorEntry& t : tensors) {
    if (!out.empty()) out += '\n';
    out += '[';
    append_toml_string(out, t.name, false);
    out += fmt::format("]\nshape = {}\nencoding = \"{}\"\noffset = {}\nsize = {}\n", t.shape.text(),
                       dtype_name(t.dtype), t.offset, t.size_bytes);
    if (t.hash) out += fmt::format("hash = \"{}\"\n", digest_text(*t.hash));
  }
  return out;
}

}  // namespace cyb
