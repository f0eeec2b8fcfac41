// Safetensors header parsing: an iterative JSON SAX reader with its own small state machine;
// nothing is built from what is not expected.
#include "import/safetensors/safetensors_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/checked.hpp"
#include "base/json_text.hpp"
#include "base/limits.hpp"
#include "base/reader.hpp"
#include "import/names.hpp"

namespace cyb::safetensors {
namespace {

constexpr std::uint64_t kLengthBytes = 8;

struct DtypeRow {
  std::string_view name;
  std::uint32_t bits;
  std::optional<DType> dtype;
};

constexpr std::array kDtypes = {
    DtypeRow{"F32", 32, DType::kF32},         DtypeRow{"F16", 16, DType::kF16},
    DtypeRow{"BF16", 16, DType::kBf16},       DtypeRow{"F64", 64, std::nullopt},
    DtypeRow{"I64", 64, std::nullopt},        DtypeRow{"I32", 32, std::nullopt},
    DtypeRow{"I16", 16, std::nullopt},        DtypeRow{"I8", 8, std::nullopt},
    DtypeRow{"U64", 64, std::nullopt},        DtypeRow{"U32", 32, std::nullopt},
    DtypeRow{"U16", 16, std::nullopt},        DtypeRow{"U8", 8, std::nullopt},
    DtypeRow{"BOOL", 8, std::nullopt},        DtypeRow{"F8_E4M3", 8, DType::kFp8e4m3},
    DtypeRow{"F8_E5M2", 8, DType::kFp8e5m2},  DtypeRow{"F8_E8M0", 8, std::nullopt},
    DtypeRow{"F8_E4M3FNUZ", 8, std::nullopt}, DtypeRow{"F8_E5M2FNUZ", 8, std::nullopt},
    DtypeRow{"F6_E2M3", 6, std::nullopt},     DtypeRow{"F6_E3M2", 6, std::nullopt},
    DtypeRow{"F4", 4, std::nullopt},          DtypeRow{"C64", 64, std::nullopt}};

const DtypeRow* find_row(std::string_view name) noexcept {
  const auto at = std::ranges::find(kDtypes, name, &DtypeRow::name);
  return at == kDtypes.end() ? nullptr : &*at;
}

/// One entry while it is read.
struct Entry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::vector<std::uint64_t>> offsets;
};

/// SAX receiver. Depth 1: the header object; 2: an entry or the metadata; 3: shape or offsets.
class HeaderSax {
 public:
  using Json = nlohmann::json;
  std::vector<Entry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::string problem;

  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("a bool"); }
  bool number_integer(Json::number_integer_t) { return unexpected("a negative number"); }
  bool number_float(Json::number_float_t, const std::string&) {
    return unexpected("a number that is no 64-bit integer");
  }
  bool binary(Json::binary_t&) { return unexpected("binary"); }

  bool number_unsigned(Json::number_unsigned_t value) {
    if (depth_ != 3) return unexpected("a number");
    Entry& entry = entries.back();
    if (field_ == "data_offsets") {
      if (entry.offsets->size() == 2) return bad("data_offsets has more than two numbers");
      entry.offsets->push_back(value);
      return true;
    }
    if (value > INT64_MAX) return bad("a dimension is above 2^63");
    if (entry.shape->size() == Shape::kMaxRank)
      return bad(fmt::format("more than {} dimensions", Shape::kMaxRank));
    entry.shape->push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(std::string& text) {
    if (depth_ != 2) return unexpected("a string");
    if (in_metadata_) {
      metadata.back().second = std::move(text);
      return true;
    }
    if (field_ != "dtype") return unexpected("a string");
    entries.back().dtype = std::move(text);
    return true;
  }

  bool start_object(std::size_t) {
    if (depth_ == 0) return enter();
    if (depth_ != 1) return unexpected("an object");
    return enter();
  }

  bool end_object() {
    if (depth_ == 2 && !in_metadata_) {
      const Entry& entry = entries.back();
      if (!entry.dtype) return bad("dtype is missing");
      if (!entry.shape) return bad("shape is missing");
      if (!entry.offsets || entry.offsets->size() != 2)
        return bad("data_offsets is not two numbers");
    }
    --depth_;
    return true;
  }

  bool start_array(std::size_t) {
    if (depth_ != 2 || in_metadata_) return unexpected("an array");
    Entry& entry = entries.back();
    if (field_ == "shape") {
      entry.shape.emplace();
    } else if (field_ == "data_offsets") {
      entry.offsets.emplace();
    } else {
      return unexpected("an array");
    }
    return enter();
  }

  bool end_array() {
    --depth_;
    return true;
  }

  bool key(std::string& text) {
    if (depth_ == 1) return top_key(text);
    if (in_metadata_) {
      metadata.emplace_back(std::move(text), "");
      return true;
    }
    const Entry& entry = entries.back();
    field_ = std::move(text);
    const bool twice = (field_ == "dtype" && entry.dtype) || (field_ == "shape" && entry.shape) ||
                       (field_ == "data_offsets" && entry.offsets);
    if (twice) return bad(fmt::format("duplicate key {}", json_quote(field_)));
    if (field_ == "dtype" || field_ == "shape" || field_ == "data_offsets") return true;
    return bad(fmt::format("unknown key {}", json_quote(field_)));
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) {
    problem = fmt::format("header: JSON syntax error at byte {}", position);
    return false;
  }

 private:
  bool enter() {
    ++depth_;
    return true;
  }

  bool top_key(std::string& text) {
    in_metadata_ = text == "__metadata__";
    if (in_metadata_) {
      if (has_metadata_) return bad("duplicate key \"__metadata__\"");
      has_metadata_ = true;
      return true;
    }
    if (entries.size() == kMaxTensors) return bad(fmt::format("more than {} tensors", kMaxTensors));
    entries.push_back({std::move(text), {}, {}, {}});
    const std::string& name = entries.back().name;
    if (name.size() > kMaxKeyBytes)
      return bad(fmt::format("the name exceeds {} bytes", kMaxKeyBytes));
    if (const auto why = name_problem(name)) return bad(*why);
    return true;
  }

  bool bad(std::string_view why) {
    const bool in_entry = depth_ >= 1 && !in_metadata_ && !entries.empty();
    problem = in_entry ? fmt::format("tensor {}: {}", json_quote(entries.back().name), why)
                       : std::string(why);
    return false;
  }
  bool unexpected(std::string_view what) {
    return bad(fmt::format("{} where the format has none", what));
  }

  int depth_ = 0;
  bool in_metadata_ = false, has_metadata_ = false;
  std::string field_;
};

Result<TensorInfo> make_tensor(Entry& entry) {
  const auto bad = [&entry](std::string why) {
    return fail(safetensors_error(fmt::format("tensor {}: {}", json_quote(entry.name), why)));
  };
  const DtypeRow* row = find_row(*entry.dtype);
  if (row == nullptr) return bad(fmt::format("unknown dtype {}", json_quote(*entry.dtype)));
  TensorInfo out;
  out.shape = Shape(std::span<const std::int64_t>(*entry.shape));
  const auto elements = out.shape.elements();
  const auto bits = elements ? checked_mul(*elements, row->bits) : std::nullopt;
  if (!bits || *bits % 8 != 0)
    return bad(fmt::format("shape {} overflows or ends inside a byte", out.shape.text()));
  const std::uint64_t begin = (*entry.offsets)[0], end = (*entry.offsets)[1];
  if (begin > end || end - begin != *bits / 8) {
    return bad(fmt::format("data_offsets {}..{} are not the {} bytes of {} {}", begin, end,
                           *bits / 8, *entry.dtype, out.shape.text()));
  }
  out.name = std::move(entry.name);
  out.dtype = std::move(*entry.dtype);
  out.offset = begin;
  out.size_bytes = end - begin;
  return out;
}

/// Ascending, from 0 to the last byte, without holes or overlaps; offsets become absolute.
Result<void> check_cover(std::vector<TensorInfo>& tensors, std::uint64_t data_offset,
                         std::uint64_t data_bytes) {
  std::ranges::sort(tensors, {},
                    [](const TensorInfo& t) { return std::pair(t.offset, t.size_bytes); });
  std::uint64_t at = 0;
  for (TensorInfo& tensor : tensors) {
    if (tensor.offset != at) {
      return fail(safetensors_error(fmt::format(
          "tensor {}: begins at byte {}, {}", json_quote(tensor.name), tensor.offset,
          tensor.offset > at ? fmt::format("bytes {}..{} belong to nobody", at, tensor.offset)
                             : fmt::format("overlapping what ends at {}", at))));
    }
    at += tensor.size_bytes;
    if (at > data_bytes) {
      return fail(safetensors_error(fmt::format("tensor {}: ends at byte {}, the data has {}",
                                                json_quote(tensor.name), at, data_bytes)));
    }
    tensor.offset += data_offset;
  }
  if (at != data_bytes)
    return fail(safetensors_error(fmt::format("{} bytes after the last tensor", data_bytes - at)));
  return {};
}

Result<void> check_duplicates(const std::vector<Entry>& entries) {
  std::vector<std::string_view> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(entry.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice == names.end()) return {};
  return fail(safetensors_error(fmt::format("duplicate tensor {}", json_quote(*twice))));
}

Result<std::string_view> header_text(BoundedReader& in) {
  if (in.remaining() < kLengthBytes)
    return fail(safetensors_error("not a safetensors file: shorter than 8 bytes"));
  CYB_ASSIGN(const std::uint64_t length, in.read<std::uint64_t>());
  if (length > kMaxHeaderBytes) {
    return fail(safetensors_error(
        fmt::format("header of {} bytes exceeds the limit of {}", length, kMaxHeaderBytes)));
  }
  if (length > in.remaining()) {
    return fail(safetensors_error(
        fmt::format("header of {} bytes in a file with {} left", length, in.remaining())));
  }
  CYB_ASSIGN(const std::string_view text, in.take_text(length));
  if (text.empty() || text.front() != '{')
    return fail(safetensors_error("header does not begin with {"));
  // The JSON reader takes a NUL for the end of its input.
  if (text.find('\0') != std::string_view::npos)
    return fail(safetensors_error("header has a NUL byte"));
  return text;
}

}  // namespace

Error safetensors_error(std::string text) {
  return Error(ErrorKind::kFormat, "SAFETENSORS", std::move(text));
}

std::optional<DType> dtype_of(std::string_view name) noexcept {
  const DtypeRow* row = find_row(name);
  return row == nullptr ? std::nullopt : row->dtype;
}

Result<SafetensorsFile> SafetensorsFile::parse(std::span<const std::byte> bytes) {
  BoundedReader in(bytes);
  CYB_ASSIGN(const std::string_view text, header_text(in));
  HeaderSax sax;
  if (!nlohmann::json::sax_parse(text, &sax)) {
    return fail(safetensors_error(sax.problem.empty() ? "header: JSON syntax error" : sax.problem));
  }
  CYB_TRY(check_duplicates(sax.entries));
  SafetensorsFile file;
  file.data_offset = in.position();
  file.metadata = std::move(sax.metadata);
  file.tensors.reserve(sax.entries.size());
  for (Entry& entry : sax.entries) {
    CYB_ASSIGN(TensorInfo tensor, make_tensor(entry));
    file.tensors.push_back(std::move(tensor));
  }
  CYB_TRY(check_cover(file.tensors, file.data_offset, in.remaining()));
  return file;
}

}  // namespace cyb::safetensors
