// Block formats as ops: Quantize (tag 142), KvCompress (24), KvDecompress (25). Encode and decode
// rules are those of the weight formats.
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb {
namespace {

using rules::Specs;

bool is_encodable(DType dtype) {
  return dtype == DType::kQ8 || dtype == DType::kQ4 || dtype == DType::kF16 ||
         dtype == DType::kBf16 || dtype == DType::kF32;
}

Result<void> want_blocks(const TensorSpec& x, DType dtype) {
  const auto block = static_cast<std::int64_t>(format_info(dtype).block_values);
  if (block == 1) return {};
  const bool fits =
      x.rank() > 0 && (!x.dims.back().is_constant() || x.dims.back().constant() % block == 0);
  if (!fits) return fail(rules::bad_shape(dims_text(x.dims), "rows of whole blocks"));
  return {};
}

Result<void> encode(const TensorView& x, const MutableTensorView& y) {
  const ref::Values values(x);
  const FormatInfo& format = format_info(y.dtype);
  for (std::size_t i = 0, out = 0; i < values.size();
       i += format.block_values, out += format.block_bytes) {
    const std::span block(values.data() + i, format.block_values);
    std::byte* to = y.data + out;
    if (y.dtype == DType::kQ8) formats::encode_q8(block, to);
    if (y.dtype == DType::kQ4) formats::encode_q4(block, to);
    const std::uint16_t half =
        y.dtype == DType::kBf16 ? f32_to_bf16(block[0]) : f32_to_f16(block[0]);
    if (format.block_bytes == 2) std::memcpy(to, &half, 2);
    if (y.dtype == DType::kF32) std::memcpy(to, block.data(), 4);
  }
  return {};
}

constexpr std::array kDtype = {AttrSpec{"dtype", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_quantize(const Attrs& attrs, Specs in) {
  const auto to = dtype_from_tag(static_cast<std::uint8_t>(attrs.i(0)));
  if (!to || !is_encodable(*to)) return fail(rules::bad_payload("dtype"));
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(want_blocks(in[0], *to));
  return rules::one(*to, in[0].dims);
}

Result<void> reference_encode(const RefCall& call) {
  return encode(call.inputs[0], call.outputs[0]);
}

constexpr std::array kKvAttrs = {AttrSpec{"head_dim", AttrKind::kU32},
                                 AttrSpec{"bits", AttrKind::kU32}};

Result<DType> kv_dtype(const Attrs& attrs, Specs in) {
  if (attrs.i(1) != 4 && attrs.i(1) != 8) return fail(rules::bad_payload("bits"));
  CYB_TRY(rules::want_min_rank(in, 0, 1));
  if (attrs.i(0) < 1 || certainly_differ(in[0].dims.back(), Dim(attrs.i(0))))
    return fail(rules::bad_payload("head_dim"));
  return attrs.i(1) == 4 ? DType::kQ4 : DType::kQ8;
}

Result<std::vector<TensorSpec>> infer_compress(const Attrs& attrs, Specs in) {
  CYB_ASSIGN(const DType to, kv_dtype(attrs, in));
  CYB_TRY(rules::want_float(in, 0));
  CYB_TRY(want_blocks(in[0], to));
  return rules::one(to, in[0].dims);
}

Result<std::vector<TensorSpec>> infer_decompress(const Attrs& attrs, Specs in) {
  CYB_ASSIGN(const DType from, kv_dtype(attrs, in));
  CYB_TRY(rules::want_dtype(in, 0, from));
  return rules::one(DType::kF32, in[0].dims);
}

bool encoded(const Attrs&, std::size_t) {
  return true;
}

}  // namespace

OpImpl impl_Quantize() {
  return {.attrs = kDtype, .infer = infer_quantize, .reference = reference_encode};
}
OpImpl impl_KvCompress() {
  return {.attrs = kKvAttrs, .infer = infer_compress, .reference = reference_encode};
}
OpImpl impl_KvDecompress() {
  return {.attrs = kKvAttrs,
          .infer = infer_decompress,
          .reference = ref::decode,
          .encoded_input = encoded};
}

}  // namespace cyb
