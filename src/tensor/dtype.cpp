// The format table: rows of format_list.inc joined with their decoders.
#include "tensor/dtype.hpp"

#include <array>

#include "tensor/formats/formats.hpp"

namespace cyb {
namespace {

struct DecoderRow {
  DType dtype;
  DecodeFn decode;
};

constexpr std::array kDecoders = {
    DecoderRow{DType::kF32, formats::decode_f32},
    DecoderRow{DType::kF16, formats::decode_f16},
    DecoderRow{DType::kBf16, formats::decode_bf16},
    DecoderRow{DType::kQ8, formats::decode_q8},
    DecoderRow{DType::kQ4, formats::decode_q4},
    DecoderRow{DType::kQ4_1, formats::decode_q4_1},
    DecoderRow{DType::kQ5_0, formats::decode_q5_0},
    DecoderRow{DType::kQ5_1, formats::decode_q5_1},
    DecoderRow{DType::kQ2k, formats::decode_q2k},
    DecoderRow{DType::kQ3k, formats::decode_q3k},
    DecoderRow{DType::kQ4k, formats::decode_q4k},
    DecoderRow{DType::kQ5k, formats::decode_q5k},
    DecoderRow{DType::kQ6k, formats::decode_q6k},
    DecoderRow{DType::kIq4nl, formats::decode_iq4nl},
    DecoderRow{DType::kIq4xs, formats::decode_iq4xs},
    DecoderRow{DType::kIq3xxs, formats::decode_iq3xxs},
    DecoderRow{DType::kIq3s, formats::decode_iq3s},
    DecoderRow{DType::kIq2xxs, formats::decode_iq2xxs},
    DecoderRow{DType::kIq2xs, formats::decode_iq2xs},
    DecoderRow{DType::kIq2s, formats::decode_iq2s},
    DecoderRow{DType::kIq1s, formats::decode_iq1s},
    DecoderRow{DType::kIq1m, formats::decode_iq1m},
    DecoderRow{DType::kTq1_0, formats::decode_tq1_0},
    DecoderRow{DType::kTq2_0, formats::decode_tq2_0},
    DecoderRow{DType::kMxfp4, formats::decode_mxfp4},
    DecoderRow{DType::kFp8e4m3, formats::decode_fp8e4m3},
    DecoderRow{DType::kFp8e5m2, formats::decode_fp8e5m2},
    DecoderRow{DType::kTernary, formats::decode_ternary},
    DecoderRow{DType::kI32q16, formats::decode_i32q16},
    DecoderRow{DType::kI16q8, formats::decode_i16q8},
};

constexpr DecodeFn decoder_of(DType dtype) {
  for (const DecoderRow& row : kDecoders) {
    if (row.dtype == dtype) return row.decode;
  }
  return nullptr;
}

constexpr std::array kFormats = {
#define CYB_FORMAT(id, tag, name, block, bytes, cls, gguf) \
  FormatInfo{DType::id, name, block, bytes, DTypeClass::cls, gguf, decoder_of(DType::id)},
#include "tensor/formats/format_list.inc"
#undef CYB_FORMAT
};

/// Row index by tag; 255 where a tag has no row.
constexpr auto kRowOfTag = [] {
  std::array<std::uint8_t, 256> rows{};
  rows.fill(255);
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    rows[static_cast<std::size_t>(kFormats[i].dtype)] = static_cast<std::uint8_t>(i);
  }
  return rows;
}();

}  // namespace

const FormatInfo& format_info(DType dtype) noexcept {
  const std::uint8_t row = kRowOfTag[static_cast<std::size_t>(dtype)];
  return kFormats[row == 255 ? 0 : row];
}

std::optional<DType> find_dtype(std::string_view name) noexcept {
  for (const FormatInfo& row : kFormats) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_tag(std::uint8_t tag) noexcept {
  if (kRowOfTag[tag] == 255) return std::nullopt;
  return kFormats[kRowOfTag[tag]].dtype;
}

std::optional<DType> dtype_from_gguf(std::uint32_t ggml_type) noexcept {
  for (const FormatInfo& row : kFormats) {
    if (row.gguf_type >= 0 && static_cast<std::uint32_t>(row.gguf_type) == ggml_type)
      return row.dtype;
  }
  return std::nullopt;
}

std::span<const FormatInfo> all_formats() noexcept {
  return kFormats;
}

}  // namespace cyb
