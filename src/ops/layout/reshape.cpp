// Reshape (tag 6). The inferred dimension is found by cancelling symbolic factors; where that
// leaves a product of symbols it is anonymous until the shapes are known.
#include "ops/layout/reshape.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.hpp"
#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/values.hpp"

namespace cyb {
namespace {

constexpr std::array kAttrs = {AttrSpec{"shape", AttrKind::kI64List}};

/// A product of dimensions: one constant and the factors that have symbols.
struct Product {
  std::uint64_t constant = 1;
  bool overflow = false;
  std::vector<Dim> factors;

  void multiply(const Dim& dim) {
    if (!dim.is_constant()) {
      factors.push_back(dim);
      return;
    }
    const auto product = checked_mul(
        constant, static_cast<std::uint64_t>(std::max<std::int64_t>(dim.constant(), 0)));
    overflow = overflow || !product;
    constant = product.value_or(1);
  }
};

void cancel(Product& a, Product& b) {
  for (auto it = a.factors.begin(); it != a.factors.end();) {
    const auto same = std::ranges::find(b.factors, *it);
    if (same == b.factors.end()) {
      ++it;
      continue;
    }
    b.factors.erase(same);
    it = a.factors.erase(it);
  }
}

/// a / b as a dimension; nullopt if that is certainly not a whole number.
std::optional<Dim> quotient(const Product& a, const Product& b) {
  if (!b.factors.empty() || a.factors.size() > 1) return Dim::anonymous();
  if (b.constant == 0) return std::nullopt;
  if (a.factors.empty()) {
    if (a.constant % b.constant != 0) return std::nullopt;
    return Dim(static_cast<std::int64_t>(a.constant / b.constant));
  }
  const Dim scaled = a.factors[0] * static_cast<std::int64_t>(a.constant);
  return scaled.divided_by(static_cast<std::int64_t>(b.constant)).value_or(Dim::anonymous());
}

}  // namespace

namespace layout {

Result<std::vector<Dim>> reshaped(const TensorSpec& x, std::span<const Dim> shape,
                                  bool allow_zero) {
  if (shape.size() > Shape::kMaxRank) return fail(rules::bad_payload("shape"));
  Product source, target;
  for (const Dim& dim : x.dims) source.multiply(dim);
  std::vector<Dim> dims;
  std::optional<std::size_t> inferred;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool copy = shape[i] == Dim(0) && !allow_zero, infer_it = shape[i] == Dim(-1);
    const bool negative = shape[i].is_constant() && shape[i].constant() < -1;
    if (negative || (infer_it && inferred) || (copy && i >= x.rank())) {
      return fail(rules::bad_payload("shape"));
    }
    if (infer_it) inferred = i;
    dims.push_back(copy ? x.dims[i] : shape[i]);
    if (!infer_it) target.multiply(dims.back());
  }
  if (source.overflow || target.overflow) return fail(rules::bad_payload("shape"));
  cancel(source, target);
  const bool known = source.factors.empty() && target.factors.empty();
  const auto mismatch = [&] { return fail(rules::bad_shape(dims_text(x.dims), dims_text(dims))); };
  if (inferred) {
    const auto dim = quotient(source, target);
    if (!dim) return mismatch();
    dims[*inferred] = *dim;
  } else if (known && source.constant != target.constant) {
    return mismatch();
  }
  return dims;
}

Result<std::vector<Dim>> unknown_dims(std::span<const TensorSpec> in, std::size_t k) {
  const auto n = rules::length_of(in, k);
  if (!n || *n < 0 || *n > static_cast<std::int64_t>(Shape::kMaxRank)) {
    return fail(rules::bad_shape(dims_text(in[k].dims), "a known length of at most 8"));
  }
  return std::vector<Dim>(static_cast<std::size_t>(*n), Dim::anonymous());
}

Result<std::vector<Dim>> listed_dims(std::span<const TensorSpec> in, std::size_t k) {
  const auto* value = rules::value_of(in, k);
  if (value == nullptr) return unknown_dims(in, k);
  for (const Dim& d : *value) {
    if (d.is_constant() && d.constant() < 0)
      return fail(rules::bad_shape(dims_text(*value), "no negative dimension"));
  }
  return *value;
}

std::vector<TensorSpec> with_same_value(const TensorSpec& x, std::vector<Dim> dims) {
  TensorSpec out{x.dtype, std::move(dims)};
  if (out.rank() <= 1) out.value = x.value;
  return std::vector{std::move(out)};
}

}  // namespace layout

namespace {

Result<std::vector<TensorSpec>> infer_reshape(const Attrs& attrs, rules::Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  const std::vector<std::int64_t>& shape = attrs.list(0);
  const std::vector<Dim> target(shape.begin(), shape.end());
  CYB_ASSIGN(std::vector<Dim> dims, layout::reshaped(in[0], target, false));
  return layout::with_same_value(in[0], std::move(dims));
}

constexpr std::array kToAttrs = {AttrSpec{"allow_zero", AttrKind::kU8}};

Result<std::vector<TensorSpec>> infer_reshape_to(const Attrs& attrs, rules::Specs in) {
  CYB_TRY(rules::want_elements(in, 0));
  CYB_TRY(rules::want_list(in, 1));
  if (const auto* value = rules::value_of(in, 1)) {
    CYB_ASSIGN(std::vector<Dim> dims, layout::reshaped(in[0], *value, attrs.i(0) != 0));
    return layout::with_same_value(in[0], std::move(dims));
  }
  CYB_ASSIGN(std::vector<Dim> dims, layout::unknown_dims(in, 1));
  return rules::one(in[0].dtype, std::move(dims));
}

Result<void> reference_reshape(const RefCall& call) {
  const TensorView& x = call.inputs[0];
  const auto n = static_cast<std::size_t>(x.shape.count());
  if (n != 0) std::memcpy(call.outputs[0].data, x.data, n * ref::element_bytes(x.dtype));
  return {};
}

}  // namespace

OpImpl impl_Reshape() {
  return {.attrs = kAttrs, .infer = infer_reshape, .reference = reference_reshape};
}

OpImpl impl_ReshapeTo() {
  return {.attrs = kToAttrs, .infer = infer_reshape_to, .reference = reference_reshape};
}

}  // namespace cyb
