// Attention of a few query vectors over one chunk of 64 keys at fixed absolute positions, and the
// merging of chunks. Every sum runs in key order inside a chunk and in chunk order between them, so
// chunking of the prompt and the thread count change no bit.
#include "backends/cpu/kernels/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/kernels/attend.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep

#include "backends/cpu/kernels/math-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cyb::cpu::HWY_NAMESPACE {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();

/// A stored page part as f32: in place, or converted into `to`.
CYB_FN const float* page_f32(const std::byte* page, bool f32, std::size_t n, float* to) {
  if (f32) return reinterpret_cast<const float*>(page);
  const auto* half = reinterpret_cast<const std::uint16_t*>(page);
  for (std::size_t i = 0; i < n; i += kL)
    vstore(load_half(half + i), to + i);  // n is a multiple of 16
  return to;
}

/// s[key] = q . k for the 16 keys of a page: one chain over d per key. k [D][16], s [Q][64].
template <int Q>
CYB_FN void scores(const float* k, const float* q, std::size_t head_dim, float* s) {
  F acc[Q][kR];
  CYB_UNROLL for (int i = 0; i < Q; ++i) {
    CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) acc[i][h] = vzero();
  }
  for (std::size_t d = 0; d < head_dim; ++d) {
    F key[kR];
    CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) key[h] = vload(k + 16 * d + h * kL);
    CYB_UNROLL for (int i = 0; i < Q; ++i) {
      const F v = vset(q[static_cast<std::size_t>(i) * head_dim + d]);
      CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) acc[i][h] = vfma(key[h], v, acc[i][h]);
    }
  }
  CYB_UNROLL for (int i = 0; i < Q; ++i) {
    CYB_UNROLL for (std::size_t h = 0; h < kR; ++h)
        vstore(acc[i][h], s + kChunkKeys * static_cast<std::size_t>(i) + h * kL);
  }
}

CYB_FN void all_scores(const float* k, const AttendJob& job, float* s) {
  const float* q = job.q;
  std::size_t left = job.n_q;
  for (; left >= 4; left -= 4, q += 4 * job.head_dim, s += 4 * kChunkKeys)
    scores<4>(k, q, job.head_dim, s);
  if (left == 3) scores<3>(k, q, job.head_dim, s);
  if (left == 2) scores<2>(k, q, job.head_dim, s);
  if (left == 1) scores<1>(k, q, job.head_dim, s);
}

/// Scales, caps and masks the scores of query i, then turns them into exp(s - max). Lanes 0..15 sum
/// every 16th key.
CYB_FN void soften(const AttendJob& job, std::size_t i, float* s) {
  const std::size_t n = job.n_pages * kPageTokens;
  const std::int64_t from = job.lo[i] - job.first_key, to = job.hi[i] - job.first_key;
  const std::size_t begin = from > 0 ? static_cast<std::size_t>(from) : 0;
  const std::size_t end =
      to < 0 ? 0 : (static_cast<std::size_t>(to) < n ? static_cast<std::size_t>(to) : n);
  job.sum[i] = 0.0f;
  job.max[i] = kMinusInfinity;
  if (begin >= end) return;
  const F factor = vset(job.scale), cap = vset(job.softcap);
  for (std::size_t k = 0; k < n; k += kL) {
    F v = vmul(vload(s + k), factor);
    if (job.softcap > 0.0f) v = vmul(cap, vtanh(vdiv(v, cap)));
    vstore(v, s + k);
  }
  for (std::size_t k = 0; k < begin; ++k) s[k] = kMinusInfinity;
  for (std::size_t k = end; k < n; ++k) s[k] = kMinusInfinity;
  F most = vset(kMinusInfinity);
  for (std::size_t k = 0; k < n; k += kL) {
    const F v = vload(s + k);
    most = vsel_lt(most, v, v, most);
  }
  alignas(64) float lanes[16];
  for (std::size_t h = 0; h < kL; ++h) lanes[h] = kMinusInfinity;
  vstore(most, lanes);
  float top = lanes[0];
  for (std::size_t h = 1; h < kL; ++h) top = top < lanes[h] ? lanes[h] : top;
  if (top == kMinusInfinity)
    top = 0.0f;  // only non-finite scores: they surface as NaN or as a zero row of weights
  F sums[kR];
  CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) sums[h] = vzero();
  for (std::size_t k = 0; k < n; k += 16) {
    CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) {
      const F p = vexp(vsub(vload(s + k + h * kL), vset(top)));
      vstore(p, s + k + h * kL);
      sums[h] = vadd(sums[h], p);
    }
  }
  CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) vstore(sums[h], lanes + h * kL);
  job.sum[i] = tree_sum(lanes);
  job.max[i] = top;
}

/// o[Q][Dp] += p[key] V[key] for keys [begin, end) of a page, in order. v [16][Dp], columns 16 at a
/// time.
template <int Q>
CYB_FN void values(const float* v, const float* p, std::size_t begin, std::size_t end,
                   std::size_t padded, float* o) {
  for (std::size_t c = 0; c < padded; c += 16) {
    F acc[Q][kR];
    CYB_UNROLL for (int i = 0; i < Q; ++i) {
      CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) acc[i][h] =
          vload(o + static_cast<std::size_t>(i) * padded + c + h * kL);
    }
    for (std::size_t j = begin; j < end; ++j) {
      F row[kR];
      CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) row[h] = vload(v + j * padded + c + h * kL);
      CYB_UNROLL for (int i = 0; i < Q; ++i) {
        const F w = vset(p[kChunkKeys * static_cast<std::size_t>(i) + j]);
        CYB_UNROLL for (std::size_t h = 0; h < kR; ++h) acc[i][h] = vfma(row[h], w, acc[i][h]);
      }
    }
    CYB_UNROLL for (int i = 0; i < Q; ++i) {
      CYB_UNROLL for (std::size_t h = 0; h < kR; ++h)
          vstore(acc[i][h], o + static_cast<std::size_t>(i) * padded + c + h * kL);
    }
  }
}

struct KeyRange {
  std::size_t begin, end;
  CYB_FN_MEMBER bool operator==(const KeyRange& other) const {
    return begin == other.begin && end == other.end;
  }
};

/// Allowed keys of query i in the page that starts at `first`.
CYB_FN KeyRange allowed(const AttendJob& job, std::size_t i, std::int64_t first) {
  const std::int64_t from = job.lo[i] - first, to = job.hi[i] - first;
  const std::int64_t page = kPageTokens;
  const std::int64_t begin = from < 0 ? 0 : (from > page ? page : from);
  const std::int64_t end = to < 0 ? 0 : (to > page ? page : to);
  return {static_cast<std::size_t>(begin), static_cast<std::size_t>(end < begin ? begin : end)};
}

CYB_FN void all_values(const AttendJob& job, std::size_t page, const float* v, const float* p,
                       std::size_t padded) {
  const std::int64_t first = job.first_key + static_cast<std::int64_t>(page * kPageTokens);
  p += page * kPageTokens;
  for (std::size_t i = 0; i < job.n_q;) {
    const KeyRange range = allowed(job, i, first);
    std::size_t same = 1;
    while (same < 4 && i + same < job.n_q && allowed(job, i + same, first) == range) ++same;
    if (range.begin < range.end) {
      float* o = job.o + i * padded;
      const float* weights = p + i * kChunkKeys;
      if (same == 4) values<4>(v, weights, range.begin, range.end, padded, o);
      if (same == 3) values<3>(v, weights, range.begin, range.end, padded, o);
      if (same == 2) values<2>(v, weights, range.begin, range.end, padded, o);
      if (same == 1) values<1>(v, weights, range.begin, range.end, padded, o);
    }
    i += same;
  }
}

HWY_NOINLINE void attend(const AttendJob& job) noexcept {
  const std::size_t padded = (job.head_dim + 15) / 16 * 16;
  float* converted = job.scratch;
  float* s = job.scratch + padded * kPageTokens;
  for (std::size_t page = 0; page < job.n_pages; ++page) {
    const float* k = page_f32(job.k_pages[page], job.f32, job.head_dim * kPageTokens, converted);
    all_scores(k, job, s + page * kPageTokens);
  }
  for (std::size_t i = 0; i < job.n_q; ++i) soften(job, i, s + i * kChunkKeys);
  for (std::size_t i = 0; i < job.n_q * padded; i += kL) vstore(vzero(), job.o + i);
  for (std::size_t page = 0; page < job.n_pages; ++page) {
    const float* v = page_f32(job.v_pages[page], job.f32, padded * kPageTokens, converted);
    all_values(job, page, v, s, padded);
  }
}

/// Lane 0 of e^(a - b).
CYB_FN float exp_difference(float a, float b) {
  alignas(64) float lanes[16];
  vstore(vexp(vset(a - b)), lanes);
  return lanes[0];
}

HWY_NOINLINE void merge(const AttendPart& into, const AttendPart& part, std::size_t n) noexcept {
  if (*part.max == kMinusInfinity) return;
  const float top = *into.max < *part.max ? *part.max : *into.max;
  const float keep = *into.max == kMinusInfinity ? 0.0f : exp_difference(*into.max, top);
  const float take = exp_difference(*part.max, top);
  *into.max = top;
  *into.sum = *into.sum * keep + *part.sum * take;
  for (std::size_t i = 0; i < n; i += kL) {
    const F kept = vmul(vload(into.o + i), vset(keep));
    vstore(vfma(vload(part.o + i), vset(take), kept), into.o + i);
  }
}

}  // namespace

void fill_attend(KernelTable& table) {
  table.attend = attend;
  table.merge = merge;
}

}  // namespace cyb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
