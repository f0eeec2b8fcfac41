// BlockAttention: K and V of the run's rows are normed, rotated and written to the pages; then
// every query attends to the pages in chunks of 64 keys at fixed absolute positions. Few queries:
// chunks are shared out and merged in order afterwards.
#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/step.hpp"
#include "ops/attention/rope.hpp"
#include "ops/blocks.hpp"

namespace cyb::cpu {
namespace {

constexpr std::size_t kQueryTile = 32;      // query vectors (rows x heads of a group) of one item
constexpr std::size_t kItemsPerThread = 4;  // below that many items a run is split by chunks too
constexpr std::size_t kPagesPerChunk = kChunkKeys / kPageTokens;
constexpr std::size_t kNoRope = std::numeric_limits<std::size_t>::max();

struct Heads {
  std::size_t n, n_kv, group, dim, padded;  // H, G, H/G, D, D rounded up to 16
};

/// Query rows [first, first + n) of a sequence against one KV head.
struct Item {
  const SequenceSpan* sequence;
  std::size_t first, n, head;
  std::int64_t position;  // of the first row
};

struct ItemScratch {
  float *q, *o, *max, *sum, *part_o, *part_max, *part_sum, *attend;
  float* pages;  // a chunk's K and V as f32, where they are stored as codes
  std::int64_t *lo, *hi;
};

class AttentionStep final : public CpuStep {
 public:
  AttentionStep(const Step& step, Build& build, std::size_t rope)
      : a_(BlockAttentionAttrs::from(step.op.attrs)),
        rope_(rope),
        split_counter_(build.counter()),
        item_counter_(build.counter()) {
    heads_ = {a_.n_heads, a_.n_kv_heads, a_.n_heads / a_.n_kv_heads, a_.head_dim,
              round_up(a_.head_dim, 16)};
    tile_rows_ = std::max<std::size_t>(1, kQueryTile / heads_.group);
    for (std::size_t i = 0; i < 5; ++i)
      in_[i] = i < step.inputs.size() ? step.inputs[i] : Operand{};
    out_ = step.outputs[0];
    build.want_thread(scratch_floats() * sizeof(float) + 256);
    const std::size_t partial =
        kItemsPerThread * build.n_threads * partial_floats() * sizeof(float);
    build.partial_bytes_per_chunk = std::max(build.partial_bytes_per_chunk, partial);
  }

  /// K and V are written; whole items, or chunks of them that are merged.
  unsigned phases(const Run& run) const noexcept override { return is_split(run) ? 3 : 2; }
  void run_phase(const Run& run, unsigned thread, unsigned phase) const noexcept override {
    if (phase == 0) return write_rows(run, thread);
    const std::size_t items = count_items(run), chunks = largest_chunks(run);
    const ItemScratch s = scratch(run.thread_scratch[thread]);
    if (!is_split(run)) {
      for (std::size_t i;
           (i = run.counters[item_counter_].fetch_add(1, std::memory_order_relaxed)) < items;) {
        whole_item(run, item(run, i), s);
      }
      return;
    }
    if (phase == 1) {
      for (std::size_t i; (i = run.counters[item_counter_].fetch_add(
                               1, std::memory_order_relaxed)) < items * chunks;) {
        chunk_item(run, item(run, i / chunks), i % chunks, partial(run, i), s);
      }
      return;
    }
    for (std::size_t i;
         (i = run.counters[split_counter_].fetch_add(1, std::memory_order_relaxed)) < items;) {
      merge_item(run, item(run, i), i, chunks, s);
    }
  }

 private:
  bool is_split(const Run& run) const noexcept {
    return run.n_threads > 1 && largest_chunks(run) > 1 &&
           count_items(run) < kItemsPerThread * run.n_threads;
  }

  void write_rows(const Run& run, unsigned thread) const noexcept {
    const std::size_t n_rows = run.params.n_tokens();
    float* temp = reinterpret_cast<float*>(run.thread_scratch[thread]);
    for (Share s(n_rows * heads_.n_kv, thread, run.n_threads); s.begin < s.end; ++s.begin)
      write_kv(run, s.begin / heads_.n_kv, s.begin % heads_.n_kv, temp);
  }

  std::size_t queries() const noexcept { return std::max(tile_rows_ * heads_.group, kQueryTile); }
  std::size_t partial_floats() const noexcept { return queries() * (heads_.padded + 2); }
  std::size_t scratch_floats() const noexcept {
    return queries() * (heads_.dim + 2 * heads_.padded + 4 + 4) +
           attend_scratch_floats(heads_.padded, queries()) + 64 +
           2 * kPagesPerChunk * heads_.padded * kPageTokens;
  }
  ItemScratch scratch(std::byte* base) const noexcept {
    ItemScratch s{};
    const std::size_t n = queries();
    s.lo = reinterpret_cast<std::int64_t*>(base);
    s.hi = s.lo + n;
    s.q = reinterpret_cast<float*>(s.hi + n);
    s.o = s.q + n * heads_.dim;
    s.part_o = s.o + n * heads_.padded;
    s.max = s.part_o + n * heads_.padded;
    s.sum = s.max + n;
    s.part_max = s.sum + n;
    s.part_sum = s.part_max + n;
    s.attend = s.part_sum + n;
    s.pages = s.attend + attend_scratch_floats(heads_.padded, n);
    return s;
  }
  float* partial(const Run& run, std::size_t i) const noexcept {
    return reinterpret_cast<float*>(run.partials) + i * partial_floats();
  }

  /// Norm and rotation of one head's vector in place.
  void prepare(const Run& run, std::size_t row, const Operand& gain, float* x) const noexcept {
    if (gain.kind != Operand::Kind::kNone)
      run.k->rms_norm(x, run.f32(gain), heads_.dim, a_.norm_eps, x);
    if (rope_ == kNoRope) return;
    const RopeTable& table = run.ropes[rope_];
    const float* cos = table.cos + row * table.n;
    const float* sin = table.sin + row * table.n;
    if (a_.rope_style == static_cast<std::uint8_t>(RopeStyle::kGptj)) {
      run.k->rope_pairs(x, cos, sin, table.n);
    } else {
      const bool proportional =
          a_.rope_style == static_cast<std::uint8_t>(RopeStyle::kProportional);
      run.k->rope_split(x, x + (proportional ? heads_.dim / 2 : table.n), cos, sin, table.n);
    }
  }

  void write_kv(const Run& run, std::size_t row, std::size_t head, float* temp) const noexcept {
    const SequenceSpan& sequence = sequence_of(run, row);
    const std::size_t position = sequence.past_tokens + (row - sequence.row_begin);
    const std::uint32_t page = sequence.pages[position / kPageTokens];
    const std::size_t slot = position % kPageTokens;
    const auto layer = a_.layer;
    const std::size_t at = (row * heads_.n_kv + head) * heads_.dim;
    std::memcpy(temp, run.f32(in_[1]) + at, heads_.dim * sizeof(float));
    prepare(run, row, in_[4], temp);
    const float* v = run.f32(in_[2]) + at;
    run.kv->write(*run.k, {page, layer, static_cast<std::uint32_t>(head), slot}, temp, v,
                  reinterpret_cast<std::uint16_t*>(temp + heads_.padded));
  }

  static const SequenceSpan& sequence_of(const Run& run, std::size_t row) noexcept {
    for (const SequenceSpan& s : run.params.sequences) {
      if (row >= s.row_begin && row < s.row_begin + s.n_rows) return s;
    }
    return run.params.sequences.front();  // submit() checked that every row has one
  }

  std::size_t tiles(const SequenceSpan& s) const noexcept {
    return (s.n_rows + tile_rows_ - 1) / tile_rows_;
  }
  std::size_t count_items(const Run& run) const noexcept {
    std::size_t n = 0;
    for (const SequenceSpan& s : run.params.sequences) n += tiles(s) * heads_.n_kv;
    return n;
  }
  static std::size_t largest_chunks(const Run& run) noexcept {
    std::size_t n = 0;
    for (const SequenceSpan& s : run.params.sequences) {
      n = std::max<std::size_t>(
          n, (std::size_t{s.past_tokens} + s.n_rows + kChunkKeys - 1) / kChunkKeys);
    }
    return n;
  }
  /// Item i: sequences in order, KV heads of a row tile side by side.
  Item item(const Run& run, std::size_t i) const noexcept {
    const SequenceSpan* s = run.params.sequences.data();
    while (i >= tiles(*s) * heads_.n_kv) i -= tiles(*s++) * heads_.n_kv;
    const std::size_t begin = i / heads_.n_kv * tile_rows_;
    return {s, s->row_begin + begin, std::min<std::size_t>(tile_rows_, s->n_rows - begin),
            i % heads_.n_kv, static_cast<std::int64_t>(s->past_tokens + begin)};
  }

  /// Query vectors and key ranges, row by row, the heads of the group side by side.
  void load_queries(const Run& run, const Item& item, const ItemScratch& s) const noexcept {
    for (std::size_t i = 0; i < item.n * heads_.group; ++i) {
      const std::size_t row = item.first + i / heads_.group;
      const std::size_t head = item.head * heads_.group + i % heads_.group;
      float* q = s.q + i * heads_.dim;
      std::memcpy(q, run.f32(in_[0]) + (row * heads_.n + head) * heads_.dim,
                  heads_.dim * sizeof(float));
      prepare(run, row, in_[3], q);
      const std::int64_t position = item.position + static_cast<std::int64_t>(i / heads_.group);
      s.hi[i] = position + 1;
      s.lo[i] =
          a_.window == 0 ? 0 : std::max<std::int64_t>(0, position + 1 - std::int64_t{a_.window});
    }
  }

  using Target = AttendPart;  // of all queries of an item
  /// One chunk; nothing is written where no query of the item may see it.
  bool attend(const Run& run, const Item& item, std::size_t chunk, const ItemScratch& s,
              const Target& to) const noexcept {
    const std::size_t n_q = item.n * heads_.group;
    const auto first_key = static_cast<std::int64_t>(chunk * kChunkKeys);
    const std::int64_t end = s.hi[n_q - 1];
    if (first_key >= end || first_key + static_cast<std::int64_t>(kChunkKeys) <= s.lo[0])
      return false;
    const std::byte *k_pages[kPagesPerChunk], *v_pages[kPagesPerChunk];
    const auto last_page = static_cast<std::size_t>(end - 1) / kPageTokens;
    const std::size_t first_page = chunk * kPagesPerChunk;
    const std::size_t n = std::min(kPagesPerChunk, last_page + 1 - first_page);
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t page = item.sequence->pages[first_page + i];
      const auto head = static_cast<std::uint32_t>(item.head);
      k_pages[i] = run.kv->k(page, a_.layer, head);
      v_pages[i] = run.kv->v(page, a_.layer, head);
      if (!run.kv->quantised()) continue;
      float* k = s.pages + 2 * i * heads_.padded * kPageTokens;
      float* v = k + heads_.padded * kPageTokens;
      k_pages[i] =
          reinterpret_cast<const std::byte*>(run.kv->read_k(*run.k, {page, a_.layer, head, 0}, k));
      v_pages[i] =
          reinterpret_cast<const std::byte*>(run.kv->read_v(*run.k, {page, a_.layer, head, 0}, v));
    }
    run.k->attend({.k_pages = k_pages,
                   .v_pages = v_pages,
                   .n_pages = n,
                   .first_key = first_key,
                   .f32 = run.kv->f32() || run.kv->quantised(),
                   .head_dim = heads_.dim,
                   .q = s.q,
                   .lo = s.lo,
                   .hi = s.hi,
                   .n_q = n_q,
                   .scale = a_.scale,
                   .softcap = a_.softcap,
                   .max = to.max,
                   .sum = to.sum,
                   .o = to.o,
                   .scratch = s.attend});
    return true;
  }

  void clear(const Item& item, const ItemScratch& s) const noexcept {
    const std::size_t n_q = item.n * heads_.group;
    std::fill_n(s.max, n_q, -std::numeric_limits<float>::infinity());
    std::fill_n(s.sum, n_q, 0.0f);
    std::fill_n(s.o, n_q * heads_.padded, 0.0f);
  }

  void add_part(const Run& run, const Item& item, const Target& part,
                const ItemScratch& s) const noexcept {
    for (std::size_t i = 0; i < item.n * heads_.group; ++i) {
      run.k->merge({s.max + i, s.sum + i, s.o + i * heads_.padded},
                   {part.max + i, part.sum + i, part.o + i * heads_.padded}, heads_.padded);
    }
  }

  void store(const Run& run, const Item& item, const ItemScratch& s) const noexcept {
    for (std::size_t i = 0; i < item.n * heads_.group; ++i) {
      const std::size_t row = item.first + i / heads_.group;
      const std::size_t head = item.head * heads_.group + i % heads_.group;
      run.k->scale(s.o + i * heads_.padded, 1.0f / s.sum[i], heads_.dim,
                   run.out(out_) + (row * heads_.n + head) * heads_.dim);
    }
  }

  void whole_item(const Run& run, const Item& item, const ItemScratch& s) const noexcept {
    load_queries(run, item, s);
    clear(item, s);
    const std::size_t n_q = item.n * heads_.group;
    const auto begin = static_cast<std::size_t>(s.lo[0]) / kChunkKeys;
    const auto end = static_cast<std::size_t>(s.hi[n_q - 1] - 1) / kChunkKeys;
    const Target part{s.part_max, s.part_sum, s.part_o};
    for (std::size_t chunk = begin; chunk <= end; ++chunk) {
      if (attend(run, item, chunk, s, part)) add_part(run, item, part, s);
    }
    store(run, item, s);
  }

  Target target(float* partial) const noexcept {
    return {partial, partial + queries(), partial + 2 * queries()};
  }

  void chunk_item(const Run& run, const Item& item, std::size_t chunk, float* partial,
                  const ItemScratch& s) const noexcept {
    load_queries(run, item, s);
    const Target to = target(partial);
    if (!attend(run, item, chunk, s, to)) {
      std::fill_n(to.max, item.n * heads_.group, -std::numeric_limits<float>::infinity());
    }
  }

  void merge_item(const Run& run, const Item& item, std::size_t i, std::size_t chunks,
                  const ItemScratch& s) const noexcept {
    clear(item, s);
    for (std::size_t chunk = 0; chunk < chunks; ++chunk)
      add_part(run, item, target(partial(run, i * chunks + chunk)), s);
    store(run, item, s);
  }

  BlockAttentionAttrs a_;
  std::size_t rope_, split_counter_, item_counter_;
  Heads heads_{};
  std::size_t tile_rows_ = 1;
  Operand in_[5];  // q, k, v, q_gain, k_gain
  Operand out_;
};

Result<RopeConfig> rope_config(const BlockAttentionAttrs& a, const Step& step,
                               std::vector<double> frequencies) {
  constexpr std::size_t kLongFreqs = 7;
  RopeConfig out{std::move(frequencies)};
  if (a.rope_rule == RopeRule::kFixed) return out;
  out.original = a.rope_original;
  if (a.rope_rule == RopeRule::kDynamic) {
    out.dynamic_factor = double{a.rope_factor};
    out.base = double{a.rope_base};
    return out;
  }
  if (step.inputs.size() <= kLongFreqs || step.inputs[kLongFreqs].kind != Operand::Kind::kWeight)
    return fail(internal_error("long rope frequencies that are no constant"));
  const float* values = cpu_weight(step.inputs[kLongFreqs])->vector();
  out.long_frequencies.assign(values, values + out.frequencies.size());
  return out;
}

}  // namespace

Result<StepPtr> make_attention_step(const Step& step, Build& build) {
  const auto a = BlockAttentionAttrs::from(step.op.attrs);
  if (a.n_kv_heads == 0 || a.n_heads % a.n_kv_heads != 0 || a.head_dim == 0) {
    return fail(shape_mismatch("BlockAttention", "heads that are a multiple of kv heads",
                               std::to_string(a.n_heads) + "/" + std::to_string(a.n_kv_heads)));
  }
  std::size_t rope = kNoRope;
  if (a.rope_dim != 0) {
    const bool given = step.inputs.size() > 5 && step.inputs[5].kind == Operand::Kind::kWeight;
    std::span<const float> freqs;
    if (given)
      freqs = {cpu_weight(step.inputs[5])->vector(),
               static_cast<std::size_t>(step.inputs[5].shape.count())};
    const RopeAttrs attrs{a.head_dim, a.rope_dim, a.rope_base,
                          static_cast<RopeStyle>(a.rope_style)};
    CYB_ASSIGN(RopeConfig config, rope_config(a, step, rope_frequencies(attrs, freqs)));
    rope = build.rope(std::move(config));
  }
  return std::make_unique<AttentionStep>(step, build, rope);
}

}  // namespace cyb::cpu
