// Attention (tag 441): ONNX's operator. Q [B,S,H·D] or [B,H,S,D], K, V likewise; past_k, past_v
// [B,Hk,P,D] are put in front; mask bool or float, broadcast to [B,H,S,T], missing keys closed;
// lengths i64 [B]: valid keys. Query i of a run has position i + offset; offset is P, or lengths -
// S.
#include <cmath>
#include <limits>

#include "ops/math/elementary.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::array kAttrs = {
    AttrSpec{"q_heads", AttrKind::kU32},     AttrSpec{"kv_heads", AttrKind::kU32},
    AttrSpec{"causal", AttrKind::kU8},       AttrSpec{"scale", AttrKind::kF32},
    AttrSpec{"softcap", AttrKind::kF32},     AttrSpec{"scores", AttrKind::kU8},
    AttrSpec{"left_window", AttrKind::kI32}, AttrSpec{"right_window", AttrKind::kI32}};

enum Scores : std::int64_t { kRaw, kCapped, kBiased, kProbabilities };

/// x as [B, heads, S, D].
Result<std::vector<Dim>> heads_first(const TensorSpec& x, std::int64_t heads) {
  if (x.rank() == 4) return x.dims;
  if (x.rank() != 3 || heads < 1)
    return fail(rules::bad_shape(dims_text(x.dims), "4 dimensions, or 3 with heads"));
  const auto width = x.dims[2].divided_by(heads);
  if (!width && x.dims[2].is_constant()) return fail(rules::bad_payload("q_heads"));
  return std::vector<Dim>{x.dims[0], heads, x.dims[1], width.value_or(Dim::anonymous())};
}

Result<void> check_past(Specs in, std::size_t k, std::span<const Dim> dims, Dim& past) {
  CYB_TRY(rules::want_dtype(in, k, in[0].dtype));
  CYB_TRY(rules::want_rank(in, k, 4));
  past = in[k].dims[2];
  return rules::want_dims(in, k, std::array{dims[0], dims[1], past, dims[3]});
}

Result<std::vector<TensorSpec>> infer_attention(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  for (std::size_t k = 1; k < 3; ++k) CYB_TRY(rules::want_dtype(in, k, in[0].dtype));
  CYB_TRY(rules::want_at_most(attrs, 5, kProbabilities, "scores"));
  CYB_ASSIGN(const std::vector<Dim> q, heads_first(in[0], attrs.i(0)));
  CYB_ASSIGN(const std::vector<Dim> k, heads_first(in[1], attrs.i(1)));
  CYB_ASSIGN(const std::vector<Dim> v, heads_first(in[2], attrs.i(1)));
  const bool divides = !q[1].is_constant() || !k[1].is_constant() ||
                       (k[1].constant() > 0 && q[1].constant() % k[1].constant() == 0);
  if (!divides) return fail(rules::bad_payload("kv_heads"));
  const bool fits = rules::merge(q[3], k[3]) && rules::merge(k[1], v[1]) &&
                    rules::merge(k[2], v[2]) && rules::merge(q[0], k[0]) &&
                    rules::merge(q[0], v[0]);
  if (!fits) return fail(rules::bad_shape(dims_text(in[1].dims), "keys that fit the queries"));
  Dim past, past_v;
  const bool has_past = !rules::at(in, 4).absent;
  if (has_past != !rules::at(in, 5).absent)
    return fail(rules::bad_count(in.size(), "past keys and values, or none"));
  if (has_past) {
    CYB_TRY(check_past(in, 4, k, past));
    CYB_TRY(check_past(in, 5, v, past_v));
  }
  if (!rules::at(in, 3).absent && in[3].dtype != DType::kBool) CYB_TRY(rules::want_real(in, 3));
  if (!rules::at(in, 6).absent) {
    CYB_TRY(rules::want_index(in, 6));
    CYB_TRY(rules::want_dims(in, 6, std::array{q[0]}));
  }
  const Dim t = past + k[2];
  std::vector<Dim> y = {q[0], q[1], q[2], v[3]};
  if (in[0].rank() == 3) y = {q[0], q[2], rules::product(std::array{q[1], v[3]})};
  return std::vector{TensorSpec{in[0].dtype, std::move(y)},
                     TensorSpec{in[1].dtype, {k[0], k[1], t, k[3]}},
                     TensorSpec{in[2].dtype, {v[0], v[1], t, v[3]}},
                     TensorSpec{in[0].dtype, {q[0], q[1], q[2], t}}};
}

/// A [B, heads, S, D] view of a tensor that may be [B, S, heads·D].
struct Heads {
  std::size_t heads, rows, width;
  bool packed;
  Heads(const Shape& shape, std::int64_t n_heads) : packed(shape.rank() == 3) {
    heads = packed ? static_cast<std::size_t>(n_heads) : ref::extent(shape, 1);
    rows = packed ? ref::extent(shape, 1) : ref::extent(shape, 2);
    width = packed ? ref::extent(shape, 2) / heads : ref::extent(shape, 3);
  }
  std::size_t at(std::size_t b, std::size_t h, std::size_t r) const {
    return (packed ? (b * rows + r) * heads + h : (b * heads + h) * rows + r) * width;
  }
};

template <class C>
std::vector<C> present(const RefCall& call, std::size_t input, std::size_t past_input,
                       const Heads& x) {
  const ref::Elements<C> now(call.inputs[input]), past(ref::input(call, past_input));
  const std::size_t batch = ref::extent(call.inputs[input].shape, 0);
  const std::size_t p = past.present() ? ref::extent(call.inputs[past_input].shape, 2) : 0;
  std::vector<C> out;
  out.reserve(batch * x.heads * (p + x.rows) * x.width);
  for (std::size_t bh = 0; bh < batch * x.heads; ++bh) {
    const C* old = past.data() + bh * p * x.width;
    if (p != 0) out.insert(out.end(), old, old + p * x.width);
    for (std::size_t r = 0; r < x.rows; ++r) {
      const C* row = now.data() + x.at(bh / x.heads, bh % x.heads, r);
      out.insert(out.end(), row, row + x.width);
    }
  }
  return out;
}

/// What is added to the score of one query and key; -Inf: closed.
class Bias {
 public:
  Bias(const RefCall& call, std::size_t queries, std::size_t past)
      : attrs_(call.attrs), mask_(ref::input(call, 3)) {
    const TensorView lengths = ref::input(call, 6);
    lengths_ = ref::integers(lengths);
    // Only keys of the cache (not the past) move the frontier of a padded batch.
    offset_ = static_cast<std::int64_t>(past);
    by_length_ = lengths.present() && past == 0;
    queries_ = static_cast<std::int64_t>(queries);
    if (mask_.present()) strides_ = ref::strides_of(mask_.shape);
  }
  double at(std::size_t b, std::size_t h, std::size_t i, std::size_t j) const {
    constexpr double kClosed = -std::numeric_limits<double>::infinity();
    const auto key = static_cast<std::int64_t>(j);
    if (!lengths_.empty() && key >= lengths_[b]) return kClosed;
    const std::int64_t position =
        static_cast<std::int64_t>(i) + (by_length_ ? lengths_[b] - queries_ : offset_);
    if (attrs_.i(2) != 0 && key > position) return kClosed;
    if (attrs_.i(6) >= 0 && position - key > attrs_.i(6)) return kClosed;
    if (attrs_.i(7) >= 0 && key - position > attrs_.i(7)) return kClosed;
    return mask_.present() ? masked({b, h, i, j}) : 0.0;
  }

 private:
  double masked(const std::array<std::size_t, 4>& index) const {
    std::size_t at = 0;
    const std::size_t rank = mask_.shape.rank();
    for (std::size_t d = 0; d < rank; ++d) {
      const std::size_t i = index[4 - rank + d];
      const bool keys = d + 1 == rank;
      if (keys && i >= ref::extent(mask_.shape, d)) return -std::numeric_limits<double>::infinity();
      if (mask_.shape[d] != 1 || keys) at += i * strides_[d];
    }
    const double v = ref::number_at(mask_, at);
    if (mask_.dtype != DType::kBool) return v;
    return v != 0.0 ? 0.0 : -std::numeric_limits<double>::infinity();
  }

  const Attrs& attrs_;
  TensorView mask_;
  ref::Strides strides_{};
  std::vector<std::int64_t> lengths_;
  std::int64_t offset_ = 0, queries_ = 0;
  bool by_length_ = false;
};

/// Probabilities in place of biased scores; zeros where every key is closed.
template <class C>
void softmax(std::vector<C>& row, bool open) {
  C largest = -std::numeric_limits<C>::infinity();
  for (const C v : row) {
    if (v > largest) largest = v;
  }
  if (!open || largest == -std::numeric_limits<C>::infinity()) {
    std::ranges::fill(row, C{0});
    return;
  }
  ref::Sum<C> sum;
  for (C& v : row) {
    v = static_cast<C>(math::exp_f64(static_cast<double>(v - largest)));
    sum.add(v);
  }
  for (C& v : row) v = v / sum.value();
}

template <class C>
Result<void> run(const RefCall& call) {
  const Attrs& attrs = call.attrs;
  const Heads q(call.inputs[0].shape, attrs.i(0)), k(call.inputs[1].shape, attrs.i(1)),
      v(call.inputs[2].shape, attrs.i(1));
  const std::vector<C> keys = present<C>(call, 1, 4, k), values = present<C>(call, 2, 5, v);
  const std::size_t batch = ref::extent(call.inputs[0].shape, 0),
                    t = ref::extent(call.outputs[1].shape, 2);
  const Bias bias(call, q.rows, t - k.rows);
  const ref::Elements<C> queries(call.inputs[0]);
  ref::Outputs<C> y(call.outputs[0]), all_k(call.outputs[1]), all_v(call.outputs[2]),
      shown(call.outputs[3]);
  std::ranges::copy(keys, all_k.data());
  std::ranges::copy(values, all_v.data());
  const double scale = attrs.f(3) != 0.0F ? static_cast<double>(attrs.f(3))
                                          : 1.0 / std::sqrt(static_cast<double>(q.width));
  const double cap = attrs.f(4);
  const Heads out(call.outputs[0].shape, static_cast<std::int64_t>(q.heads));
  std::vector<C> row(t);
  for (std::size_t n = 0; n < batch * q.heads * q.rows; ++n) {
    const std::size_t b = n / (q.heads * q.rows), h = n / q.rows % q.heads, i = n % q.rows;
    const std::size_t group = b * k.heads + h / (q.heads / k.heads);
    bool open = false;
    for (std::size_t j = 0; j < t; ++j) {
      ref::Sum<C> sum;
      for (std::size_t d = 0; d < q.width; ++d)
        sum.add(queries[q.at(b, h, i) + d] * keys[(group * t + j) * q.width + d]);
      auto s = static_cast<C>(static_cast<double>(sum.value()) * scale);
      if (attrs.i(5) == kRaw) shown[n * t + j] = s;
      if (cap > 0.0) s = static_cast<C>(cap * math::tanh_f64(static_cast<double>(s) / cap));
      if (attrs.i(5) == kCapped) shown[n * t + j] = s;
      const double added = bias.at(b, h, i, j);
      open = open || added != -std::numeric_limits<double>::infinity();
      row[j] = s + static_cast<C>(added);
      if (attrs.i(5) == kBiased) shown[n * t + j] = row[j];
    }
    softmax(row, open);
    if (attrs.i(5) == kProbabilities) std::ranges::copy(row, shown.data() + n * t);
    for (std::size_t d = 0; d < v.width; ++d) {
      ref::Sum<C> sum;
      for (std::size_t j = 0; j < t; ++j) sum.add(row[j] * values[(group * t + j) * v.width + d]);
      y[out.at(b, h, i) + d] = sum.value();
    }
  }
  y.finish();
  all_k.finish();
  all_v.finish();
  shown.finish();
  return {};
}

Result<void> reference_attention(const RefCall& call) {
  const TensorView mask = ref::input(call, 3);
  if (mask.present() && mask.shape.rank() > 4)
    return fail(invalid_input("Op::Attention: a mask of rank > 4"));
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) { return run<C>(call); });
}

}  // namespace

OpImpl impl_Attention() {
  return {.attrs = kAttrs, .infer = infer_attention, .reference = reference_attention};
}

}  // namespace cyb
