// NllLoss (tag 445): the negative log-likelihood of targets. TfIdf (446): counts of n-grams with
// skips (ONNX's TfIdfVectorizer over integers).
#include <algorithm>
#include <map>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::array kLossAttrs = {AttrSpec{"reduction", AttrKind::kU8},
                                   AttrSpec{"has_ignore", AttrKind::kU8},
                                   AttrSpec{"ignore", AttrKind::kI64}};

/// x [B,C,...], target [B,...], weight [C]? -> [B,...] or a scalar.
Result<std::vector<TensorSpec>> infer_loss(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, 0, 2, "reduction"));
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_index(in, 1));
  CYB_TRY(rules::want_min_rank(in, 0, 2));
  std::vector<Dim> dims = in[0].dims;
  dims.erase(dims.begin() + 1);
  CYB_TRY(rules::want_rank(in, 1, dims.size()));
  CYB_TRY(rules::want_dims(in, 1, dims));
  if (!rules::at(in, 2).absent) {
    CYB_TRY(rules::want_dtype(in, 2, in[0].dtype));
    CYB_TRY(rules::want_dims(in, 2, std::span(&in[0].dims[1], 1)));
  }
  if (attrs.i(0) != 0) dims.clear();
  return rules::one(in[0].dtype, std::move(dims));
}

/// -weight·x at the target; the mean divides by the sum of weights. Ignored targets weigh 0.
Result<void> reference_loss(const RefCall& call) {
  const Shape& shape = call.inputs[0].shape;
  const ref::AxisView view(shape, 1);
  const bool has_ignore = call.attrs.i(1) != 0;
  std::vector<std::int64_t> targets = ref::integers(call.inputs[1]);
  for (std::int64_t& t : targets) {
    if (has_ignore && t == call.attrs.i(2))
      t = -1;
    else if (t < 0 || t >= shape[1])
      return fail(invalid_input("Op::NllLoss: a target out of range"));
  }
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    const ref::Elements<C> x(call.inputs[0]), w(ref::input(call, 2));
    ref::Outputs<C> y(call.outputs[0]);
    ref::Sum<C> losses, weights;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const bool ignored = targets[i] < 0;
      const auto t = static_cast<std::size_t>(ignored ? 0 : targets[i]);
      const C weight = ignored ? C{0} : (w.present() ? w[t] : C{1});
      const C loss = ignored ? C{0} : -x[view.base(i) + t * view.inner] * weight;
      if (call.attrs.i(0) == 0) y[i] = loss;
      losses.add(loss);
      weights.add(weight);
    }
    if (call.attrs.i(0) == 1) y[0] = losses.value();
    if (call.attrs.i(0) == 2) y[0] = losses.value() / weights.value();
    y.finish();
    return {};
  });
}

constexpr std::array kTextAttrs = {AttrSpec{"mode", AttrKind::kU8},
                                   AttrSpec{"min_gram", AttrKind::kU32},
                                   AttrSpec{"max_gram", AttrKind::kU32},
                                   AttrSpec{"max_skip", AttrKind::kU32},
                                   AttrSpec{"ngram_counts", AttrKind::kI64List},
                                   AttrSpec{"ngram_indexes", AttrKind::kI64List},
                                   AttrSpec{"pool", AttrKind::kI64List},
                                   AttrSpec{"weights", AttrKind::kBytes}};

/// The pool cut into n-grams: tokens -> number of the n-gram, sizes min_gram..max_gram only.
std::optional<std::map<std::vector<std::int64_t>, std::size_t>> ngrams(const Attrs& a) {
  std::map<std::vector<std::int64_t>, std::size_t> out;
  const auto &counts = a.list(4), &pool = a.list(6);
  std::size_t id = 0;
  for (std::size_t n = 1; n <= counts.size(); ++n) {
    const std::int64_t end = n < counts.size() ? counts[n] : static_cast<std::int64_t>(pool.size());
    const std::int64_t begin = counts[n - 1], size = static_cast<std::int64_t>(n);
    if (begin < 0 || end < begin || end > static_cast<std::int64_t>(pool.size()) ||
        (end - begin) % size != 0)
      return std::nullopt;
    for (std::int64_t at = begin; at < end; at += size, ++id) {
      if (size < a.i(1) || size > a.i(2)) continue;
      out[std::vector(pool.begin() + at, pool.begin() + at + size)] = id;
    }
  }
  if (id != a.list(5).size()) return std::nullopt;
  return out;
}

Result<std::vector<TensorSpec>> infer_text(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_at_most(attrs, 0, 2, "mode"));
  if (attrs.i(1) < 1 || attrs.i(2) < attrs.i(1) || attrs.i(2) > 64)
    return fail(rules::bad_payload("max_gram"));
  if (attrs.i(3) > 4096) return fail(rules::bad_payload("max_skip"));
  CYB_TRY(rules::want_index(in, 0));
  if (in[0].rank() != 1 && in[0].rank() != 2)
    return fail(rules::bad_shape(dims_text(in[0].dims), "1 or 2 dimensions"));
  const auto& indexes = attrs.list(5);
  const bool sane = !indexes.empty() && std::ranges::all_of(indexes, [](std::int64_t i) {
    return i >= 0 && i < (1 << 24);
  });
  if (!sane || !ngrams(attrs)) return fail(rules::bad_payload("ngram_counts"));
  const Dim width = *std::ranges::max_element(indexes) + 1;
  const std::size_t weights = attrs.bytes(7).size() / sizeof(float);
  if (weights != 0 && weights != indexes.size()) return fail(rules::bad_payload("weights"));
  std::vector<Dim> dims(in[0].dims.begin(), in[0].dims.end() - 1);
  dims.push_back(width);
  return rules::one(DType::kF32, std::move(dims));
}

/// Single tokens count once, whatever the skips.
Result<void> reference_text(const RefCall& call) {
  const Attrs& a = call.attrs;
  const auto grams = ngrams(a);
  if (!grams) return fail(rules::bad_payload("ngram_counts"));
  const Shape& shape = call.inputs[0].shape;
  const std::vector<std::int64_t> tokens = ref::integers(call.inputs[0]);
  const std::size_t length = ref::extent(shape, shape.rank() - 1),
                    width = ref::extent(call.outputs[0].shape, shape.rank() - 1);
  const ref::Elements<float> weights(TensorView{
      DType::kF32, Shape{static_cast<std::int64_t>(a.bytes(7).size() / 4)}, a.bytes(7).data()});
  auto* y = call.outputs[0].as<float>();
  const auto n_out = static_cast<std::size_t>(call.outputs[0].shape.count());
  std::fill_n(y, n_out, 0.0F);
  std::vector<float> weight_of(width, 1.0F);
  for (std::size_t id = 0; id < weights.size(); ++id)
    weight_of[static_cast<std::size_t>(a.list(5)[id])] = weights[id];
  for (std::size_t row = 0; length != 0 && row * length < tokens.size(); ++row) {
    for (std::size_t n = static_cast<std::size_t>(a.i(1)); n <= static_cast<std::size_t>(a.i(2));
         ++n) {
      const std::size_t most = n == 1 ? 1 : static_cast<std::size_t>(a.i(3)) + 1;
      for (std::size_t distance = 1; distance <= most; ++distance) {
        for (std::size_t start = 0; start + distance * (n - 1) < length; ++start) {
          std::vector<std::int64_t> gram;
          for (std::size_t k = 0; k < n; ++k)
            gram.push_back(tokens[row * length + start + k * distance]);
          const auto hit = grams->find(gram);
          if (hit != grams->end())
            y[row * width + static_cast<std::size_t>(a.list(5)[hit->second])] += 1.0F;
        }
      }
    }
  }
  for (std::size_t i = 0; i < n_out && a.i(0) != 0; ++i) {
    const float count = a.i(0) == 1 ? (y[i] > 0.0F ? 1.0F : 0.0F) : y[i];
    y[i] = count * weight_of[i % width];
  }
  return {};
}

}  // namespace

OpImpl impl_NllLoss() {
  return {.attrs = kLossAttrs, .infer = infer_loss, .reference = reference_loss};
}
OpImpl impl_TfIdf() {
  return {.attrs = kTextAttrs, .infer = infer_text, .reference = reference_text};
}

}  // namespace cyb
