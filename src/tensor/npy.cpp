// Reading the literal by hand: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
#include "tensor/npy.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "base/reader.hpp"

namespace cyb {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Descr {
  DType dtype;
  std::string_view text;
};
constexpr std::array kDescrs = {
    Descr{DType::kF32, "<f4"},    Descr{DType::kF16, "<f2"},    Descr{DType::kF64, "<f8"},
    Descr{DType::kI8, "|i1"},     Descr{DType::kU8, "|u1"},     Descr{DType::kBool, "|b1"},
    Descr{DType::kI16, "<i2"},    Descr{DType::kUint16, "<u2"}, Descr{DType::kI32, "<i4"},
    Descr{DType::kUint32, "<u4"}, Descr{DType::kI64, "<i8"},    Descr{DType::kUint64, "<u8"},
};

Error bad(std::string_view what) {
  return Error(ErrorKind::kFormat, fmt::format("not a NumPy file: {}", what));
}

/// A sound file that holds what no model takes.
Error unreadable(std::string what) {
  return Error(ErrorKind::kInvalidInput, std::move(what));
}

/// The header's text, piece by piece.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(std::string_view word) {
    skip_spaces();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::optional<std::string_view> quoted() {
    skip_spaces();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return std::nullopt;
    const std::size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view out = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return out;
  }
  std::optional<std::int64_t> number() {
    skip_spaces();
    std::int64_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) return std::nullopt;
    at_ += static_cast<std::size_t>(end - begin);
    take("L");  // of files that Python 2 wrote
    return value;
  }
  bool at_end() {
    skip_spaces();
    return at_ == text_.size();
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

struct Header {
  std::string descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<std::int64_t>> shape;
};

Result<std::vector<std::int64_t>> parse_shape(Literal& text) {
  std::vector<std::int64_t> shape;
  if (!text.take("(")) return fail(bad("'shape' is no tuple"));
  while (!text.take(")")) {
    const auto n = text.number();
    if (!n) return fail(bad("'shape' holds something that is no size"));
    if (shape.size() == Shape::kMaxRank) return fail(bad("rank above 8"));
    shape.push_back(*n);
    if (text.take(",")) continue;
    if (text.take(")")) break;
    return fail(bad("'shape' is not closed"));
  }
  return shape;
}

Result<Header> parse_header(std::string_view all) {
  Literal text(all);
  Header header;
  if (!text.take("{")) return fail(bad("the header is no dictionary"));
  while (!text.take("}")) {
    const auto key = text.quoted();
    if (!key || !text.take(":")) return fail(bad("a key of the header"));
    if (*key == "descr") {
      const auto value = text.quoted();
      if (!value) return fail(unreadable("the NumPy file has a structured dtype"));
      header.descr = *value;
    } else if (*key == "fortran_order") {
      const bool yes = text.take("True");
      if (!yes && !text.take("False")) return fail(bad("'fortran_order' is no bool"));
      header.fortran_order = yes;
    } else if (*key == "shape") {
      CYB_ASSIGN(header.shape, parse_shape(text));
    } else {
      return fail(bad(fmt::format("unknown key '{}'", key->substr(0, 40))));
    }
    if (text.take(",")) continue;
    if (text.take("}")) break;
    return fail(bad("the header is not closed"));
  }
  if (!text.at_end()) return fail(bad("text after the header"));
  if (header.descr.empty() || !header.fortran_order || !header.shape)
    return fail(bad("the header lacks descr, fortran_order or shape"));
  return header;
}

Result<DType> dtype_of(std::string_view descr) {
  for (const Descr& row : kDescrs) {
    const bool one_byte = row.text[0] == '|' && descr.size() == 3 && descr[0] != '>';
    if (row.text == descr || (one_byte && row.text.substr(1) == descr.substr(1))) return row.dtype;
  }
  return fail(unreadable(fmt::format(
      "the NumPy file has dtype \"{}\"; read are little-endian f2 f4 f8, i1 to i8, u1 to u8 and b1",
      descr.substr(0, 40))));
}

}  // namespace

Result<TensorView> parse_npy(std::span<const std::byte> bytes) {
  BoundedReader reader(bytes);
  const auto magic = reader.take_text(kMagic.size());
  if (!magic || *magic != kMagic) return fail(bad("wrong magic"));
  CYB_ASSIGN(const std::uint8_t major, reader.read<std::uint8_t>());
  CYB_TRY(reader.read<std::uint8_t>());
  if (major < 1 || major > 3) return fail(bad(fmt::format("version {}", major)));
  std::uint64_t size = 0;
  if (major == 1) {
    CYB_ASSIGN(size, reader.read<std::uint16_t>());
  } else {
    CYB_ASSIGN(size, reader.read<std::uint32_t>());
  }
  CYB_ASSIGN(const std::string_view text, reader.take_text(size));
  CYB_ASSIGN(const Header header, parse_header(text));
  if (*header.fortran_order && header.shape->size() > 1)
    return fail(unreadable("the NumPy file is in Fortran order: save numpy.ascontiguousarray(x)"));
  TensorView view;
  CYB_ASSIGN(view.dtype, dtype_of(header.descr));
  view.shape = Shape(std::span<const std::int64_t>(*header.shape));
  const auto need = tensor_bytes(view.dtype, view.shape);
  if (!need || *need != reader.remaining()) {
    return fail(Error(ErrorKind::kFormat,
                      fmt::format("the NumPy file has {} bytes of data, {} {} needs {}",
                                  reader.remaining(), dtype_name(view.dtype), view.shape.text(),
                                  need ? std::to_string(*need) : "more than there can be")));
  }
  view.data = bytes.data() + reader.position();
  return view;
}

Result<std::string> npy_header(DType dtype, const Shape& shape) {
  std::string_view descr;
  for (const Descr& row : kDescrs) {
    if (row.dtype == dtype) descr = row.text;
  }
  if (descr.empty()) return fail(not_built(fmt::format("NumPy files of {}", dtype_name(dtype))));
  std::string dims;
  for (const std::int64_t d : shape.dims()) dims += fmt::format("{}, ", d);
  if (shape.rank() > 1) dims.resize(dims.size() - 2);
  if (shape.rank() == 1) dims.resize(dims.size() - 1);
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims);
  constexpr std::size_t kFixed = 10;  // magic, version, length
  text.append(63 - (kFixed + text.size()) % 64, ' ');
  text += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  out += static_cast<char>(text.size() & 0xFF);
  out += static_cast<char>(text.size() >> 8);
  return out + text;
}

}  // namespace cyb
