// Normalisations.
#include <array>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

NamedAttr eps(Call& c, double fallback = 1e-5F) {
  return {"eps", static_cast<float>(c.f("epsilon", fallback))};
}

/// Batch statistics: what training does, and the running ones for the next step.
void batch_norm_training(Call& c, NamedAttr e) {
  const Val x = c.in(0);
  const double momentum = c.f("momentum", 0.9F);
  std::vector<std::int64_t> axes;
  for (std::size_t k = 0; k < c.rank(x); ++k) {
    if (k != 1) axes.push_back(static_cast<std::int64_t>(k));
  }
  const auto mean_of = [&](Val v, bool keep) {
    return c.emit("Reduce", {{"kind", std::int64_t{1}}, {"keep", std::int64_t{keep}}},
                  {v, c.int_list(axes)});
  };
  const Val mean = mean_of(x, false);
  const Val centred = c.emit("Sub", {x, mean_of(x, true)});
  const Val variance = mean_of(c.emit("Mul", {centred, centred}), false);
  const auto running = [&](Val old, Val now) {
    const Val kept = c.emit("Mul", {old, c.scalar(momentum, c.dtype(old))});
    return c.emit("Add", {kept, c.emit("Mul", {now, c.scalar(1 - momentum, c.dtype(now))})});
  };
  c.out(0, c.emit("BatchNorm", {std::move(e), {"momentum", 0.0F}},
                  {x, c.in(1), c.in(2), mean, variance}));
  c.out(1, running(c.in(3), mean));
  c.out(2, running(c.in(4), variance));
}

void lower_batch_norm(Call& c) {
  if (c.opset() >= 14 && c.i("training_mode", 0) != 0) return batch_norm_training(c, eps(c));
  c.ignore({"momentum"});
  if (c.opset() < 7 && c.i("is_test", 0) == 0) c.refuse("is_test = 0");
  if (c.i("spatial", 1) != 1) c.refuse("spatial = 0");
  c.out(0, c.emit("BatchNorm", {eps(c), {"momentum", 0.0F}},
                  {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)}));
}

void lower_instance_norm(Call& c) {
  c.out(0, c.emit("InstanceNorm", {eps(c)}, {c.in(0), c.in(1), c.in(2)}));
}

/// Opset 18 has one scale for each group, 21 one for each channel.
Val per_channel(Call& c, Val scale, std::int64_t groups) {
  if (c.opset() >= 21 || scale == 0) return scale;
  const std::int64_t channels = c.size(c.in(0), 1, "the number of channels");
  if (groups < 1 || channels % groups != 0) {
    c.refuse("groups that do not divide the channels");
    return 0;
  }
  const Val column = c.reshape(scale, {groups, 1});
  const std::array shape = {groups, channels / groups};
  return c.reshape(c.emit("ExpandTo", {column, c.int_list(shape)}), {channels});
}

void lower_group_norm(Call& c) {
  c.ignore({"stash_type"});
  const std::int64_t groups = c.i("num_groups", 0);
  const Val scale = per_channel(c, c.in(1), groups), bias = per_channel(c, c.in(2), groups);
  c.out(0, c.emit("GroupNorm", {{"num_groups", groups}, eps(c)}, {c.in(0), scale, bias}));
}

bool last_axis(Call& c, std::int64_t axis, Val gain) {
  const std::size_t rank = c.rank(c.in(0));
  return rank > 0 && c.axis(axis, rank) + 1 == rank && c.rank(gain) == 1 &&
         (c.dtype(c.in(0)) == DType::kF32 || c.dtype(c.in(0)) == DType::kF16);
}

void lower_layer_norm(Call& c) {
  if (c.i("stash_type", 1) != 1) c.refuse("a stash_type but FLOAT");
  const std::int64_t axis = c.i("axis", -1);
  const NamedAttr e = eps(c);
  const bool plain = last_axis(c, axis, c.in(1)) && (c.in(2) == 0 || c.rank(c.in(2)) == 1) &&
                     !c.wants(1) && !c.wants(2);
  if (plain) return c.out(0, c.emit("LayerNorm", {e}, {c.in(0), c.in(1), c.in(2)}));
  const auto out = c.emit_all("LayerNormFull", {{"axis", axis}, e}, {c.in(0), c.in(1), c.in(2)});
  for (std::size_t k = 0; k < out.size(); ++k) c.out(k, out[k]);
}

void lower_rms_norm(Call& c) {
  if (c.i("stash_type", 1) != 1) c.refuse("a stash_type but FLOAT");
  const std::int64_t axis = c.i("axis", -1);
  const NamedAttr e = eps(c);
  if (last_axis(c, axis, c.in(1))) return c.out(0, c.emit("RmsNorm", {e}, {c.in(0), c.in(1)}));
  c.out(0, c.emit("RmsNormFrom", {{"axis", axis}, e}, {c.in(0), c.in(1)}));
}

void lower_lrn(Call& c) {
  const double alpha = c.f("alpha", 1e-4F), beta = c.f("beta", 0.75), bias = c.f("bias", 1);
  c.out(0, c.emit("Lrn",
                  {{"size", c.i("size", 0)},
                   {"alpha", static_cast<float>(alpha)},
                   {"beta", static_cast<float>(beta)},
                   {"bias", static_cast<float>(bias)}},
                  {c.in(0)}));
}

void lower_lp_norm(Call& c) {
  c.out(0, c.emit("LpNorm", {{"axis", c.i("axis", -1)}, {"p", c.i("p", 2)}}, {c.in(0)}));
}

void lower_mean_variance(Call& c) {
  c.out(0, c.emit("MeanVarianceNorm", {{"axes", c.ints("axes", {0, 2, 3})}}, {c.in(0)}));
}

}  // namespace

std::span<const OpRow> rows_norm() noexcept {
  static constexpr std::array kRows = {
      OpRow{"BatchNormalization", 6, lower_batch_norm},
      OpRow{"GroupNormalization", 18, lower_group_norm},
      OpRow{"InstanceNormalization", 6, lower_instance_norm},
      OpRow{"LRN", 1, lower_lrn},
      OpRow{"LayerNormalization", 1, lower_layer_norm},  // onnxruntime's, before the schema's 17
      OpRow{"LpNormalization", 1, lower_lp_norm},
      OpRow{"MeanVarianceNormalization", 9, lower_mean_variance},
      OpRow{"RMSNormalization", 23, lower_rms_norm}};
  return kRows;
}

}  // namespace cyb::onnx
