// Immediate execution of emitted ops.
#include "backends/reference/eager_sink.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace cyb::reference {

Result<void> run_kv_cache(const RefCall& call, const SequenceState& sequence) {
  const std::uint32_t layer = call.attrs.u32(0);
  const TensorView &k_new = call.inputs[0], &v_new = call.inputs[1];
  if (sequence.kv == nullptr) return fail(internal_error("KvCache without a KV store"));
  const KvLayout& layout = sequence.kv->access_layout();
  if (layer >= layout.layers.size()) return fail(internal_error("KvCache: no such layer"));
  const KvLayerShape& shape = layout.layers[layer];
  const std::uint32_t total = sequence.past_tokens + sequence.n_rows;
  const Shape want_new{1, shape.n_kv_heads, sequence.n_rows, shape.head_dim};
  const Shape want_all{1, shape.n_kv_heads, total, shape.head_dim};
  if (k_new.shape != want_new || v_new.shape != want_new) {
    return fail(shape_mismatch("KvCache", want_new.text(), k_new.shape.text()));
  }
  if (call.outputs[0].shape != want_all || call.outputs[1].shape != want_all) {
    return fail(shape_mismatch("KvCache", want_all.text(), call.outputs[0].shape.text()));
  }
  if (k_new.dtype != DType::kF32)
    return fail(unsupported_op("KvCache", "reference", dtype_name(k_new.dtype)));
  sequence.kv->write({layer, sequence.pages, sequence.past_tokens, sequence.n_rows},
                     k_new.as<float>(), v_new.as<float>());
  sequence.kv->read({layer, sequence.pages, 0, total}, call.outputs[0].as<float>(),
                    call.outputs[1].as<float>());
  return {};
}

EagerSink::EagerSink(ThreadPool* pool, SequenceState sequence, TensorView positions)
    : pool_(pool), sequence_(sequence), positions_(positions) {
  values_.push_back({TensorSpec::none(), {}, nullptr});
}

ValueId EagerSink::add(const TensorView& view) {
  if (!view.present()) return kNoValue;
  values_.push_back({TensorSpec::of(view.dtype, view.shape), view, nullptr});
  return static_cast<ValueId>(values_.size() - 1);
}

Result<MutableTensorView> EagerSink::allocate(const TensorSpec& spec, Value& value) {
  const std::array<std::int64_t, 3> symbols = {1, sequence_.n_rows, sequence_.past_tokens};
  const auto shape = spec.bind(symbols);
  const auto bytes = shape ? tensor_bytes(spec.dtype, *shape) : std::nullopt;
  if (!bytes) return fail(internal_error("a value without a shape in a decomposition"));
  own_bytes_ += *bytes;
  value.spec = TensorSpec::of(spec.dtype, *shape);
  if (measures_) {
    static constexpr std::byte kNothing{};
    value.view = {spec.dtype, *shape, &kNothing};
    return MutableTensorView{};
  }
  value.own = std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(*bytes, 1));
  const MutableTensorView view{spec.dtype, *shape, value.own.get()};
  value.view = view;
  return view;
}

Result<std::vector<ValueId>> EagerSink::emit(const Op& op, std::span<const ValueId> inputs) {
  const OpInfo& info = op_info(op.tag);
  std::vector<TensorSpec> specs;
  std::vector<TensorView> views;
  for (const ValueId v : inputs) {
    specs.push_back(values_[v].spec);
    views.push_back(values_[v].view);
  }
  CYB_ASSIGN(std::vector<TensorSpec> inferred, infer(op, specs));
  if (has_data_dims(inferred)) {
    if (measures_) return fail(internal_error("a size that depends on data"));
    CYB_ASSIGN(inferred, run_specs(op, views));
  }
  if (info.fused) return decompose(op, inputs, *this);
  std::vector<ValueId> ids;
  std::vector<MutableTensorView> outputs;
  for (const TensorSpec& spec : inferred) {
    values_.emplace_back();
    CYB_ASSIGN(const MutableTensorView view, allocate(spec, values_.back()));
    outputs.push_back(view);
    ids.push_back(static_cast<ValueId>(values_.size() - 1));
  }
  if (measures_) return ids;
  const RefCall call{.attrs = op.attrs, .inputs = views, .outputs = outputs, .pool = pool_};
  CYB_TRY(op.tag == OpTag::kKvCache ? run_kv_cache(call, sequence_) : info.reference(call));
  return ids;
}

Result<ValueId> EagerSink::constant(std::span<const float> values, const Shape& shape) {
  values_.emplace_back();
  CYB_ASSIGN(const MutableTensorView view,
             allocate(TensorSpec::of(DType::kF32, shape), values_.back()));
  if (!measures_) std::memcpy(view.data, values.data(), values.size_bytes());
  return static_cast<ValueId>(values_.size() - 1);
}

Result<ValueId> EagerSink::positions() {
  return add(positions_);
}

}  // namespace cyb::reference
