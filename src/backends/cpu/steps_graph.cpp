// Steps that only graphs have, because plans fuse them: KvCache, Rope, Sdpa, Permute and Transpose.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/step.hpp"
#include "ops/attention/kv_cache.hpp"
#include "ops/attention/rope.hpp"
#include "ops/attention/sdpa.hpp"
#include "ops/math/elementary.hpp"

namespace cyb::cpu {
namespace {

std::size_t dim(const Shape& shape, std::size_t i) {
  return static_cast<std::size_t>(shape[i]);
}

/// Writes K and V rows to the pages, then returns all rows (the last T of a window) as the pages
/// hold them.
class KvCacheStep final : public CpuStep {
 public:
  KvCacheStep(const Step& step, Build& build)
      : layer_(KvCacheAttrs::from(step.op.attrs).layer),
        k_(step.inputs[0]),
        v_(step.inputs[1]),
        k_out_(step.outputs[0]),
        v_out_(step.outputs[1]),
        heads_(dim(k_.shape, 1)),
        rows_(dim(k_.shape, 2)),
        dim_(dim(k_.shape, 3)) {
    build.want_thread(round_up(dim_, 16) * kPageTokens * sizeof(float));
  }

  unsigned phases(const Run&) const noexcept override { return 2; }
  void run_phase(const Run& run, unsigned thread, unsigned phase) const noexcept override {
    phase == 0 ? write_rows(run, thread) : read_rows(run, thread);
  }

 private:
  void write_rows(const Run& run, unsigned thread) const noexcept {
    auto* half = reinterpret_cast<std::uint16_t*>(run.thread_scratch[thread]);
    const std::size_t batch = dim(k_.shape, 0);
    for (Share s(batch * heads_ * rows_, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const SequenceSpan& sequence = run.params.sequences[s.begin / (heads_ * rows_)];
      write(run, sequence, s.begin / rows_ % heads_, s.begin % rows_, s.begin * dim_, half);
    }
  }

  void read_rows(const Run& run, unsigned thread) const noexcept {
    auto* page = reinterpret_cast<float*>(run.thread_scratch[thread]);
    const std::size_t batch = dim(k_.shape, 0), total = dim(run_shape(k_out_, run.params), 2);
    for (std::size_t i = 0; i < batch; ++i) {
      const SequenceSpan& sequence = run.params.sequences[i];
      const std::size_t end = sequence.past_tokens + rows_, begin = end - total;
      const std::size_t first = begin / kPageTokens;
      const std::size_t pages = (end + kPageTokens - 1) / kPageTokens - first;
      for (Share s(heads_ * pages, thread, run.n_threads); s.begin < s.end; ++s.begin) {
        const std::size_t head = s.begin / pages, at = (first + s.begin % pages) * kPageTokens;
        const std::size_t lo = std::max(at, begin), hi = std::min(at + kPageTokens, end);
        read(run, sequence, {head, lo, hi, ((i * heads_ + head) * total + lo - begin) * dim_},
             page);
      }
    }
  }

  void write(const Run& run, const SequenceSpan& sequence, std::size_t head, std::size_t row,
             std::size_t at, std::uint16_t* half) const noexcept {
    const std::size_t position = sequence.past_tokens + row, slot = position % kPageTokens;
    const std::uint32_t page = sequence.pages[position / kPageTokens];
    const auto h = static_cast<std::uint32_t>(head);
    const float *k = run.f32(k_) + at, *v = run.f32(v_) + at;
    run.kv->write(*run.k, {page, layer_, h, slot}, k, v, half);
  }

  /// Positions [lo, hi) of one page and head; `at`: where position lo goes.
  struct Piece {
    std::size_t head, lo, hi, at;
  };

  /// `values`: room for a page of K or V as f32.
  void read(const Run& run, const SequenceSpan& sequence, const Piece& piece,
            float* values) const noexcept {
    const std::size_t padded = round_up(dim_, 16), slot = piece.lo % kPageTokens;
    const std::uint32_t page = sequence.pages[piece.lo / kPageTokens];
    const auto h = static_cast<std::uint32_t>(piece.head);
    float *k = run.out(k_out_) + piece.at, *v = run.out(v_out_) + piece.at;
    const float* k_page = run.kv->read_k(*run.k, {page, layer_, h, 0}, values);  // [D][16]
    for (std::size_t i = 0; i < piece.hi - piece.lo; ++i) {
      for (std::size_t d = 0; d < dim_; ++d) k[i * dim_ + d] = k_page[kPageTokens * d + slot + i];
    }
    const float* v_page = run.kv->read_v(*run.k, {page, layer_, h, 0}, values);  // [16][Dp]
    for (std::size_t i = 0; i < piece.hi - piece.lo; ++i)
      std::memcpy(v + i * dim_, v_page + (slot + i) * padded, dim_ * sizeof(float));
  }

  std::uint32_t layer_;
  Operand k_, v_, k_out_, v_out_;
  std::size_t heads_, rows_, dim_;
};

class RopeStep final : public PlainStep {
 public:
  RopeStep(const Step& step, std::size_t rope)
      : a_(RopeAttrs::from(step.op.attrs)),
        rope_(rope),
        x_(step.inputs[0]),
        out_(step.outputs[0]) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t rows = dim(x_.shape, 2), width = dim(x_.shape, 3);
    const RopeTable& table = run.ropes[rope_];
    for (Share s(run.rows(x_), thread, run.n_threads); s.begin < s.end; ++s.begin) {
      float* y = run.out(out_) + s.begin * width;
      const float* x = run.f32(x_) + s.begin * width;
      if (x != y) std::memcpy(y, x, width * sizeof(float));
      const float* cos = table.cos + s.begin % rows * table.n;
      const float* sin = table.sin + s.begin % rows * table.n;
      if (a_.style == RopeStyle::kGptj) {
        run.k->rope_pairs(y, cos, sin, table.n);
      } else {
        run.k->rope_split(y, y + (a_.style == RopeStyle::kProportional ? width / 2 : table.n), cos,
                          sin, table.n);
      }
    }
  }

 private:
  RopeAttrs a_;
  std::size_t rope_;
  Operand x_, out_;
};

/// Rope with frequencies that the graph computes.
class ComputedRopeStep final : public PlainStep {
 public:
  explicit ComputedRopeStep(const Step& step, Build& build)
      : a_(RopeAttrs::from(step.op.attrs)),
        x_(step.inputs[0]),
        positions_(step.inputs[1]),
        frequencies_(step.inputs[2]),
        out_(step.outputs[0]) {
    build.want_thread(std::size_t{a_.rope_dim} * sizeof(float));
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t rows = dim(x_.shape, 2), width = dim(x_.shape, 3), n = a_.rope_dim / 2;
    const std::size_t planes = dim(x_.shape, 0) * dim(x_.shape, 1);
    const auto* positions = reinterpret_cast<const std::int32_t*>(run.data(positions_));
    const float* frequencies = run.f32(frequencies_);
    float* cos = reinterpret_cast<float*>(run.thread_scratch[thread]);
    float* sin = cos + n;
    for (Share s(rows, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const double position = positions[s.begin];
      for (std::size_t j = 0; j < n; ++j) {
        const math::SinCos angle = math::sincos_f64(position * double{frequencies[j]});
        cos[j] = static_cast<float>(angle.cos);
        sin[j] = static_cast<float>(angle.sin);
      }
      for (std::size_t plane = 0; plane < planes; ++plane) {
        const std::size_t at = (plane * rows + s.begin) * width;
        float* y = run.out(out_) + at;
        const float* x = run.f32(x_) + at;
        if (x != y) std::memcpy(y, x, width * sizeof(float));
        if (a_.style == RopeStyle::kGptj) {
          run.k->rope_pairs(y, cos, sin, n);
        } else {
          run.k->rope_split(y, y + (a_.style == RopeStyle::kProportional ? width / 2 : n), cos, sin,
                            n);
        }
      }
    }
  }

 private:
  RopeAttrs a_;
  Operand x_, positions_, frequencies_, out_;
};

constexpr std::size_t kQueries = 32;

/// Sdpa without a mask: keys are brought into page order chunk by chunk, then as BlockAttention.
class SdpaStep final : public PlainStep {
 public:
  SdpaStep(const Step& step, Build& build)
      : a_(SdpaAttrs::from(step.op.attrs)),
        q_(step.inputs[0]),
        k_(step.inputs[1]),
        v_(step.inputs[2]),
        out_(step.outputs[0]),
        heads_(dim(q_.shape, 1)),
        rows_(dim(q_.shape, 2)),
        dim_(dim(q_.shape, 3)),
        kv_heads_(dim(k_.shape, 1)),
        padded_(round_up(dim_, 16)),
        counter_(build.counter()) {
    const std::size_t floats = 2 * kChunkKeys * padded_ + kQueries * (2 * padded_ + 4 + 4) +
                               attend_scratch_floats(padded_, kQueries);
    build.want_thread(floats * sizeof(float));
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t tiles = (rows_ + kQueries - 1) / kQueries;
    const std::size_t items = dim(q_.shape, 0) * heads_ * tiles;
    for (std::size_t i;
         (i = run.counters[counter_].fetch_add(1, std::memory_order_relaxed)) < items;) {
      item(run, i / tiles, i % tiles * kQueries, run.thread_scratch[thread]);
    }
  }

 private:
  /// `head`: batch * H + h.
  void item(const Run& run, std::size_t head, std::size_t first,
            std::byte* scratch) const noexcept {
    const std::size_t n = std::min(kQueries, rows_ - first);
    const std::size_t total = dim(run_shape(k_, run.params), 2);
    auto* lo = reinterpret_cast<std::int64_t*>(scratch);
    auto* hi = lo + kQueries;
    auto* o = reinterpret_cast<float*>(hi + kQueries);
    float* part_o = o + kQueries * padded_;
    float *max = part_o + kQueries * padded_, *sum = max + kQueries, *part_max = sum + kQueries,
          *part_sum = part_max + kQueries;
    float *k_pages = part_sum + kQueries, *v_pages = k_pages + kChunkKeys * padded_,
          *attend = v_pages + kChunkKeys * padded_;
    for (std::size_t i = 0; i < n; ++i) {
      const auto position = static_cast<std::int64_t>(total - rows_ + first + i);
      hi[i] = a_.causal ? position + 1 : static_cast<std::int64_t>(total);
      lo[i] =
          a_.window == 0 ? 0 : std::max<std::int64_t>(0, position + 1 - std::int64_t{a_.window});
      max[i] = -std::numeric_limits<float>::infinity();
      sum[i] = 0.0f;
    }
    std::fill_n(o, n * padded_, 0.0f);
    const std::size_t group = heads_ / kv_heads_;
    const std::size_t kv_head = head / heads_ * kv_heads_ + head % heads_ / group;
    const float* q = run.f32(q_) + (head * rows_ + first) * dim_;
    const float scale = a_.scale == 0.0f
                            ? static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim_)))
                            : a_.scale;
    for (std::size_t key = static_cast<std::size_t>(lo[0]) / kChunkKeys * kChunkKeys;
         key < static_cast<std::size_t>(hi[n - 1]); key += kChunkKeys) {
      const std::size_t n_keys = std::min(kChunkKeys, total - key);
      load_chunk(run, kv_head * total + key, n_keys, k_pages, v_pages);
      const std::byte *k_list[4], *v_list[4];
      const std::size_t pages = (n_keys + kPageTokens - 1) / kPageTokens;
      for (std::size_t p = 0; p < pages; ++p) {
        k_list[p] = reinterpret_cast<const std::byte*>(k_pages + p * kPageTokens * dim_);
        v_list[p] = reinterpret_cast<const std::byte*>(v_pages + p * kPageTokens * padded_);
      }
      run.k->attend({.k_pages = k_list,
                     .v_pages = v_list,
                     .n_pages = pages,
                     .first_key = static_cast<std::int64_t>(key),
                     .f32 = true,
                     .head_dim = dim_,
                     .q = q,
                     .lo = lo,
                     .hi = hi,
                     .n_q = n,
                     .scale = scale,
                     .softcap = a_.softcap,
                     .max = part_max,
                     .sum = part_sum,
                     .o = part_o,
                     .scratch = attend});
      for (std::size_t i = 0; i < n; ++i) {
        run.k->merge({max + i, sum + i, o + i * padded_},
                     {part_max + i, part_sum + i, part_o + i * padded_}, padded_);
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      const bool none = hi[i] <= lo[i];  // no key allowed: zeros
      run.k->scale(o + i * padded_, none ? 0.0f : 1.0f / sum[i], dim_,
                   run.out(out_) + (head * rows_ + first + i) * dim_);
    }
  }

  void load_chunk(const Run& run, std::size_t row, std::size_t n, float* k_pages,
                  float* v_pages) const noexcept {
    for (std::size_t j = 0; j < n; ++j) {
      const float* k = run.f32(k_) + (row + j) * dim_;
      float* k_to = k_pages + j / kPageTokens * kPageTokens * dim_ + j % kPageTokens;
      for (std::size_t d = 0; d < dim_; ++d) k_to[kPageTokens * d] = k[d];
      float* v_to = v_pages + j * padded_;
      std::memcpy(v_to, run.f32(v_) + (row + j) * dim_, dim_ * sizeof(float));
      std::fill(v_to + dim_, v_to + padded_, 0.0f);
    }
  }

  SdpaAttrs a_;
  Operand q_, k_, v_, out_;
  std::size_t heads_, rows_, dim_, kv_heads_, padded_, counter_;
};

/// y = x with dimension i of y taken from dimension perm[i] of x; 4-byte elements.
class PermuteStep final : public PlainStep {
 public:
  PermuteStep(const Step& step, std::vector<std::int64_t> perm)
      : x_(step.inputs[0]), out_(step.outputs[0]), perm_(std::move(perm)) {}

  void run(const Run& run, unsigned thread) const noexcept override {
    const Shape in = run_shape(x_, run.params), out = run_shape(out_, run.params);
    const std::size_t rank = out.rank();
    std::array<std::size_t, Shape::kMaxRank> strides{}, steps{};
    std::size_t stride = 1;
    for (std::size_t i = rank; i-- > 0; stride *= dim(in, i)) strides[i] = stride;
    for (std::size_t i = 0; i < rank; ++i) steps[i] = strides[static_cast<std::size_t>(perm_[i])];
    const std::size_t width = dim(out, rank - 1), step = steps[rank - 1];
    if (step != 1 && rank >= 2) return tiles(run, thread, steps);
    for (Share s(run.rows(out_), thread, run.n_threads); s.begin < s.end; ++s.begin) {
      std::size_t rest = s.begin, from = 0;
      for (std::size_t i = rank - 1; i-- > 0; rest /= dim(out, i))
        from += rest % dim(out, i) * steps[i];
      std::memcpy(run.out(out_) + s.begin * width, run.f32(x_) + from, width * sizeof(float));
    }
  }

 private:
  using Steps = std::array<std::size_t, Shape::kMaxRank>;

  /// The last dimension of x is dimension `near` of y: squares of the two last ones, so that both
  /// sides are read and written by lines of the cache.
  void tiles(const Run& run, unsigned thread, const Steps& steps) const noexcept {
    constexpr std::size_t kSide = 16;
    const Shape out = run_shape(out_, run.params);
    const std::size_t rank = out.rank(), last = rank - 1;
    if (out.count() == 0) return;
    std::size_t near = 0;
    while (static_cast<std::size_t>(perm_[near]) != last) ++near;
    Steps strides{};
    std::size_t stride = 1;
    for (std::size_t i = rank; i-- > 0; stride *= dim(out, i)) strides[i] = stride;
    const std::size_t n = dim(out, near), m = dim(out, last);
    const std::size_t cuts = (n + kSide - 1) / kSide, outer = stride / (n * m);
    for (Share s(outer * cuts, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      std::size_t rest = s.begin / cuts, from = 0, to = 0;
      for (std::size_t i = last; i-- > 0;) {
        if (i == near) continue;
        from += rest % dim(out, i) * steps[i];
        to += rest % dim(out, i) * strides[i];
        rest /= dim(out, i);
      }
      const std::size_t first = s.begin % cuts * kSide, end = std::min(n, first + kSide);
      const float* x = run.f32(x_) + from;
      float* y = run.out(out_) + to;
      for (std::size_t k = 0; k < m; k += kSide) {
        const std::size_t k_end = std::min(m, k + kSide);
        for (std::size_t i = first; i < end; ++i) {
          for (std::size_t j = k; j < k_end; ++j) y[i * strides[near] + j] = x[i + j * steps[last]];
        }
      }
    }
  }

  Operand x_, out_;
  std::vector<std::int64_t> perm_;
};

Result<StepPtr> make_permute(const Step& step) {
  std::vector<std::int64_t> perm = step.op.attrs.list(0);
  const std::size_t rank = step.inputs[0].shape.rank();
  if (perm.empty()) {
    for (std::size_t i = 0; i < rank; ++i) perm.push_back(static_cast<std::int64_t>(i));
    std::swap(perm[rank - 1], perm[rank - 2]);
  }
  return std::make_unique<PermuteStep>(step, std::move(perm));
}

}  // namespace

Result<StepPtr> make_graph_step(const Step& step, Build& build) {
  switch (step.op.tag) {
    case OpTag::kKvCache:
      return std::make_unique<KvCacheStep>(step, build);
    case OpTag::kSdpa:
    case OpTag::kFlashAttention:
      return std::make_unique<SdpaStep>(step, build);
    case OpTag::kTranspose:
    case OpTag::kPermute:
      return make_permute(step);
    case OpTag::kRope: {
      // The tables are those of the run's own positions.
      if (step.inputs[1].kind != Operand::Kind::kPositions || step.inputs[1].shape.rank() != 1)
        return StepPtr();
      std::span<const float> freqs;
      const bool given = step.inputs.size() > 2 && step.inputs[2].kind != Operand::Kind::kNone;
      if (given && step.inputs[2].kind != Operand::Kind::kWeight)
        return std::make_unique<ComputedRopeStep>(step, build);
      if (step.inputs.size() > 2 && step.inputs[2].kind == Operand::Kind::kWeight) {
        freqs = {cpu_weight(step.inputs[2])->vector(),
                 static_cast<std::size_t>(step.inputs[2].shape.count())};
      }
      return std::make_unique<RopeStep>(
          step, build.rope({rope_frequencies(RopeAttrs::from(step.op.attrs), freqs)}));
    }
    default:
      return StepPtr();
  }
}

}  // namespace cyb::cpu
