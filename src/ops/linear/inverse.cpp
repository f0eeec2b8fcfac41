// MatrixInverse (tag 162) and Det (440): LU with partial pivoting, in f64, rounded once.
#include <cmath>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

/// L and U in place of a [n, n], rows swapped so that each pivot is the largest of its column.
struct Factors {
  std::vector<double> a;
  std::vector<std::size_t> row;  // original row of each
  bool odd = false, singular = false;
};

Factors factorise(std::vector<double> a, std::size_t n) {
  Factors f{std::move(a), {}, false, false};
  for (std::size_t i = 0; i < n; ++i) f.row.push_back(i);
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t best = k;
    for (std::size_t i = k + 1; i < n; ++i) {
      if (std::fabs(f.a[i * n + k]) > std::fabs(f.a[best * n + k])) best = i;
    }
    if (best != k) {
      for (std::size_t j = 0; j < n; ++j) std::swap(f.a[k * n + j], f.a[best * n + j]);
      std::swap(f.row[k], f.row[best]);
      f.odd = !f.odd;
    }
    const double pivot = f.a[k * n + k];
    if (pivot == 0.0) {
      f.singular = true;
      continue;
    }
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = f.a[i * n + k] / pivot;
      f.a[i * n + k] = factor;
      for (std::size_t j = k + 1; j < n; ++j) f.a[i * n + j] -= factor * f.a[k * n + j];
    }
  }
  return f;
}

std::vector<double> matrix_at(const TensorView& x, std::size_t m, std::size_t n) {
  std::vector<double> a(n * n);
  for (std::size_t i = 0; i < n * n; ++i) a[i] = ref::number_at(x, m * n * n + i);
  return a;
}

Result<void> want_square(Specs in) {
  CYB_TRY(rules::want_real(in, 0));
  CYB_TRY(rules::want_min_rank(in, 0, 2));
  const std::vector<Dim>& d = in[0].dims;
  if (rules::merge(d[d.size() - 1], d[d.size() - 2])) return {};
  return fail(rules::bad_shape(dims_text(d), "square matrices"));
}

Result<std::vector<TensorSpec>> infer_inverse(const Attrs&, Specs in) {
  CYB_TRY(rules::want_dtype(in, 0, DType::kF32));
  CYB_TRY(rules::want_rank(in, 0, 2));
  CYB_TRY(want_square(in));
  return rules::one(in[0].dtype, in[0].dims);
}

Result<void> reference_inverse(const RefCall& call) {
  const std::size_t n = ref::extent(call.inputs[0].shape, 0);
  if (call.inputs[0].shape[1] != call.inputs[0].shape[0])
    return fail(shape_mismatch("MatrixInverse", "a square", call.inputs[0].shape.text()));
  const Factors f = factorise(matrix_at(call.inputs[0], 0, n), n);
  if (f.singular) return fail(invalid_input("Op::MatrixInverse: the matrix is singular"));
  auto* y = call.outputs[0].as<float>();
  std::vector<double> x(n);
  for (std::size_t c = 0; c < n; ++c) {
    for (std::size_t i = 0; i < n; ++i) {
      x[i] = f.row[i] == c ? 1.0 : 0.0;
      for (std::size_t j = 0; j < i; ++j) x[i] -= f.a[i * n + j] * x[j];
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t j = i + 1; j < n; ++j) x[i] -= f.a[i * n + j] * x[j];
      x[i] /= f.a[i * n + i];
      y[i * n + c] = static_cast<float>(x[i]);
    }
  }
  return {};
}

Result<std::vector<TensorSpec>> infer_det(const Attrs&, Specs in) {
  CYB_TRY(want_square(in));
  return rules::one(in[0].dtype, std::vector<Dim>(in[0].dims.begin(), in[0].dims.end() - 2));
}

Result<void> reference_det(const RefCall& call) {
  const auto n = static_cast<std::size_t>(call.inputs[0].shape.back());
  return ref::visit_real(call.inputs[0].dtype, [&]<class C>(ref::Type<C>) -> Result<void> {
    ref::Outputs<C> y(call.outputs[0]);
    for (std::size_t m = 0; m < y.size(); ++m) {
      const Factors f = factorise(matrix_at(call.inputs[0], m, n), n);
      double det = f.odd ? -1.0 : 1.0;
      for (std::size_t i = 0; i < n; ++i) det *= f.a[i * n + i];
      y[m] = static_cast<C>(det);
    }
    y.finish();
    return {};
  });
}

}  // namespace

OpImpl impl_MatrixInverse() {
  return {.infer = infer_inverse, .reference = reference_inverse};
}
OpImpl impl_Det() {
  return {.infer = infer_det, .reference = reference_det};
}

}  // namespace cyb
