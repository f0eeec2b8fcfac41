// Integer sums along memory: a matrix product as dot products of rows, a convolution as one
// multiple of an input row after the other.
#include "ops/quant/integer_sums.hpp"

#include <algorithm>

namespace cyb::quant {
namespace {

constexpr std::size_t kExact = 16384;  // products of 255 · 255 that an i32 holds

std::int32_t dot(const std::int16_t* a, const std::int16_t* b, std::size_t n) {
  std::uint32_t total = 0;
  for (std::size_t begin = 0; begin < n; begin += kExact) {
    const std::size_t end = std::min(n, begin + kExact);
    std::int32_t sum = 0;
    for (std::size_t t = begin; t < end; ++t) sum += a[t] * b[t];
    total += static_cast<std::uint32_t>(sum);
  }
  return static_cast<std::int32_t>(total);
}

/// [N, K] of b [K, N].
Shifted transposed(const std::int16_t* b, std::size_t k, std::size_t n) {
  Shifted out(k * n);
  for (std::size_t t = 0; t < k; ++t) {
    for (std::size_t j = 0; j < n; ++j) out[j * k + t] = b[t * n + j];
  }
  return out;
}

/// Outputs [first, last) of an axis whose tap k lies inside the input.
struct Reach {
  std::int64_t first, last;
  Reach(const conv::Axis& axis, std::int64_t k) {
    const std::int64_t at = axis.before - k * axis.dilation;  // inside: at <= o·stride < at + in
    const auto up = [&](std::int64_t n) {
      return n <= 0 ? 0 : (n + axis.stride - 1) / axis.stride;
    };
    last = std::min(axis.out, up(at + axis.in));
    first = std::min(last, up(at));
  }
};

/// sums[o] += w x[from + o · stride] for o in [first, last), wrapping; `from` may be negative.
void add_row(std::int32_t* sums, const std::int16_t* x, std::int64_t from, std::int16_t w,
             const Reach& o, std::int64_t stride) {
  const auto add = [&](std::int64_t at, std::int32_t product) {
    sums[at] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[at]) +
                                         static_cast<std::uint32_t>(product));
  };
  if (stride == 1) {
    for (std::int64_t i = o.first; i < o.last; ++i) add(i, w * x[from + i]);
  } else {
    for (std::int64_t i = o.first; i < o.last; ++i) add(i, w * x[from + i * stride]);
  }
}

}  // namespace

Shifted shifted(const TensorView& x, const TensorView& zero, std::size_t inner, std::size_t n) {
  Shifted out(static_cast<std::size_t>(x.shape.count()));
  const bool many = zero.present() && zero.shape.count() > 1;
  const auto zero_at = [&](std::size_t i) {
    return static_cast<std::int16_t>(ref::integer_at(zero, i));
  };
  const std::int16_t single = zero.present() && !many ? zero_at(0) : std::int16_t{0};
  ref::visit_int(x.dtype, [&]<class T>(ref::Type<T>) {
    const T* from = x.as<T>();
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::int16_t z = many ? zero_at(i / inner % n) : single;
      out[i] = static_cast<std::int16_t>(static_cast<std::int32_t>(from[i]) - z);
    }
  });
  return out;
}

void integer_matmul(const linear::MatmulShape& s, const Shifted& a, const Shifted& b,
                    std::int32_t* y, ThreadPool* pool) {
  for (std::size_t batch = 0; batch < s.a_offsets.size(); ++batch) {
    const Shifted columns = transposed(b.data() + s.b_offsets[batch], s.k, s.n);
    const std::int16_t* rows = a.data() + s.a_offsets[batch];
    std::int32_t* out = y + batch * s.m * s.n;
    ref::parallel(pool, s.n, s.m * s.n * s.k, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = 0; i < s.m; ++i) {
        for (std::size_t j = begin; j < end; ++j)
          out[i * s.n + j] = dot(rows + i * s.k, columns.data() + j * s.k, s.k);
      }
    });
  }
}

void integer_plane(const conv::Problem& p, const std::int16_t* x, const std::int16_t* w,
                   std::int32_t* sums) {
  const auto& a = p.axes;
  std::fill_n(sums, p.out_size(), 0);
  for (std::size_t tap = 0; tap < p.in_channels * p.volume(); ++tap) {
    if (w[tap] == 0) continue;
    const auto k = static_cast<std::int64_t>(tap % p.volume());
    const std::int64_t kz = k / (a[1].kernel * a[2].kernel), ky = k / a[2].kernel % a[1].kernel,
                       kx = k % a[2].kernel;
    const std::int16_t* plane = x + tap / p.volume() * p.in_size();
    const Reach z(a[0], kz), row(a[1], ky), o(a[2], kx);
    for (std::int64_t oz = z.first; oz < z.last; ++oz) {
      for (std::int64_t oy = row.first; oy < row.last; ++oy) {
        const std::int64_t in_row = conv::tap(a[0], oz, kz) * a[1].in + conv::tap(a[1], oy, ky);
        add_row(sums + (oz * a[1].out + oy) * a[2].out, plane,
                in_row * a[2].in + conv::tap(a[2], 0, kx), w[tap], o, a[2].stride);
      }
    }
  }
}

}  // namespace cyb::quant
