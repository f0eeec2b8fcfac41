// The matrix product phase.
#include "backends/cpu/gemm.hpp"

#include <algorithm>
#include <cstring>

namespace cyb::cpu {
namespace {

constexpr std::size_t kFewTokens =
    kTileTokens;  // up to here every thread prepares all tokens itself: cheaper than a phase
constexpr std::size_t kManyTokens = 128;         // from here on work is taken from a counter
constexpr std::size_t kSliceValues = 256;        // K of one dequantised slice
constexpr std::size_t kChunkBytes = 192 * 1024;  // activations that stay in the second-level cache
constexpr std::size_t kLine = 64;
// From this many outputs on (vocabulary heads) q8 weights meet activations in two int8 levels:
// logits feel every rounding, and the second level costs little where memory is the limit.
constexpr std::size_t kFineOutputs = 16384;
constexpr std::size_t kHeadWidening = 5;  // feed-forward parts of large models widen by less
// So do block weights of products that widen by no more than this: those of attention, whose
// scores feel every rounding, and those back to the residual stream, whose inputs have outliers.
// That leaves the wide half of the feed-forward part in one level.
constexpr std::size_t kFineWidening = 2;

/// y = x - (what the record holds), for one 32-block of token t of a tile of n tokens.
void rounding_error(const std::uint8_t* record, std::size_t n, std::size_t t, const float* x,
                    std::size_t n_values, float* y) noexcept {
  float dx;
  std::memcpy(&dx, record + 4 * (kDx * n + t), sizeof dx);
  for (std::size_t i = 0; i < n_values; ++i) {
    const auto q = static_cast<std::int8_t>(record[4 * (i / 4 * n + t) + i % 4]);
    y[i] = x[i] - dx * static_cast<float>(q);
  }
}

/// By the shape alone: fused and single products round alike.
bool wants_two_levels(const CpuWeight& weight, std::size_t k) {
  const bool head = weight.n_out() >= kFineOutputs && weight.n_out() > kHeadWidening * k;
  if (head) return weight.format() == PanelFormat::kQ8;
  return is_block_format(weight.format()) && weight.n_out() <= kFineWidening * k;
}

}  // namespace

struct Gemm::Scratch {
  std::uint8_t *records, *unpacked;
  float *rows, *temp, *tile_a, *tile_b, *levels, *slice, *acc;
  std::size_t bytes;  // before acc
};

Gemm::Gemm(GemmSpec spec, std::size_t max_rows, Build& build)
    : spec_(std::move(spec)), exact_(build.exact) {
  k_ = static_cast<std::size_t>(spec_.x.shape.back());
  k_padded_ = round_up(k_, 16);
  n_blocks_ = (k_ + 31) / 32;
  chunk_ = std::clamp(kChunkBytes / (n_blocks_ * kRecordBytes) / kTileTokens * kTileTokens,
                      std::size_t{16}, std::size_t{128});
  std::vector<std::size_t> cost;
  first_unit_.push_back(0);
  for (const GemmPart& part : spec_.parts) {
    for (const CpuWeight* w : {part.weight, part.gate}) {
      if (w == nullptr) continue;
      (is_block_format(w->format()) && !exact_ ? q8_ : f32_) = true;
    }
    if (!exact_ && wants_two_levels(*part.weight, k_)) levels_ = 2;
    const std::size_t bytes =
        part.weight->panel_size() + (part.gate != nullptr ? part.gate->panel_size() : 0);
    cost.insert(cost.end(), part.weight->n_panels(), bytes);
    first_unit_.push_back(cost.size());
  }
  std::size_t total = 0, done = 0;
  for (const std::size_t c : cost) total += c;
  bounds_.assign(build.n_threads + 1, cost.size());
  bounds_[0] = 0;
  unsigned thread = 1;
  for (std::size_t u = 0; u < cost.size() && thread < build.n_threads; ++u) {
    while (thread < build.n_threads && (done + cost[u] / 2) * build.n_threads >= total * thread)
      bounds_[thread++] = u;
    done += cost[u];
  }
  counter_ = build.counter();
  build.want_thread(scratch(nullptr).bytes + chunk_ * 64 * sizeof(float));
  const std::size_t rows = round_up(max_rows, kTileTokens);
  build.want_shared(rows * levels_ * n_blocks_ * kRecordBytes + kLine +
                    (f32_ ? rows * k_padded_ * sizeof(float) : 0));
}

Gemm::Scratch Gemm::scratch(std::byte* base) const noexcept {
  Carver carver(base);
  Scratch s{};
  s.records = carver.take<std::uint8_t>(kFewTokens * levels_ * n_blocks_ * kRecordBytes);
  s.unpacked = carver.take<std::uint8_t>(q8_ ? dot_scratch_bytes(n_blocks_) : 0);
  s.rows = carver.take<float>(kFewTokens * k_padded_);
  s.temp = carver.take<float>(kTileTokens * k_padded_);
  s.tile_a = carver.take<float>(chunk_ * kPanelRows);
  s.tile_b = carver.take<float>(chunk_ * levels_ * kPanelRows);
  s.levels = carver.take<float>(levels_ > 1 ? kTileTokens * levels_ * k_padded_ : 0);
  s.slice = carver.take<float>(kSliceValues * kPanelRows);
  s.acc = carver.take<float>(0);
  s.bytes = carver.bytes();
  return s;
}

/// At most 4 tokens: the norm, then records and f32 rows as wanted.
void Gemm::prepare_tile(const Run& run, const Tokens& tokens, const Scratch& s) const noexcept {
  const std::size_t n = tokens.n;
  const float* x = run.f32(spec_.x) + tokens.first * k_;
  float* rows = f32_ ? tokens.acts.rows + tokens.first * k_padded_ : s.temp;
  std::size_t stride = k_;
  if (spec_.gain.kind != Operand::Kind::kNone) {
    for (std::size_t t = 0; t < n; ++t) {
      run.k->rms_norm(x + t * k_, run.f32(spec_.gain), k_, spec_.eps, rows + t * k_padded_);
    }
    x = rows;
    stride = k_padded_;
  } else if (f32_) {
    for (std::size_t t = 0; t < n; ++t) {
      std::memcpy(rows + t * k_padded_, x + t * k_, k_ * sizeof(float));
    }
  }
  if (f32_) {
    for (std::size_t t = 0; t < n; ++t) {
      std::memset(rows + t * k_padded_ + k_, 0, (k_padded_ - k_) * sizeof(float));
    }
  }
  if (!q8_) return;
  run.k->quantize(x, stride, k_, n, record(tokens.acts, tokens.first));
  if (levels_ > 1) write_levels(run, x, stride, tokens, s.levels);
}

/// Records of x and of what their int8 rounding lost, side by side. The tokens' records hold the
/// first level alone on entry; `rows` takes 2 n rows.
void Gemm::write_levels(const Run& run, const float* x, std::size_t stride, const Tokens& tokens,
                        float* rows) const noexcept {
  std::uint8_t* records = record(tokens.acts, tokens.first);
  for (std::size_t t = 0; t < tokens.n; ++t) {
    std::memcpy(rows + 2 * t * k_padded_, x + t * stride, k_ * sizeof(float));
    for (std::size_t b = 0; b < n_blocks_; ++b) {
      rounding_error(records + b * tokens.n * kRecordBytes, tokens.n, t, x + t * stride + 32 * b,
                     std::min<std::size_t>(32, k_ - 32 * b),
                     rows + (2 * t + 1) * k_padded_ + 32 * b);
    }
  }
  const std::size_t n = 2 * tokens.n;
  for (std::size_t t = 0; t < n; t += kTileTokens) {
    run.k->quantize(rows + t * k_padded_, k_padded_, k_, std::min(kTileTokens, n - t),
                    records + t * n_blocks_ * kRecordBytes);
  }
}

/// out[n][16] = products of the tokens with one panel.
void Gemm::product(const Run& run, const CpuWeight& weight, std::size_t panel, const Tokens& tokens,
                   const Scratch& s, float* out) const noexcept {
  const auto format = static_cast<std::size_t>(weight.format());
  const Acts& acts = tokens.acts;
  if (is_block_format(weight.format()) && !exact_) {
    float* to = levels_ > 1 ? s.tile_b : out;
    run.k->dot_q8[format]({weight.panel(panel), n_blocks_, record(acts, tokens.first),
                           tokens.n * levels_, to, s.unpacked});
    for (std::size_t t = 0; levels_ > 1 && t < tokens.n; ++t) {
      const float* level = s.tile_b + 2 * t * kPanelRows;
      for (std::size_t r = 0; r < kPanelRows; ++r) {
        out[t * kPanelRows + r] = level[r] + level[kPanelRows + r];
      }
    }
    return;
  }
  if (weight.format() == PanelFormat::kF32) {
    run.k->tile({.a = acts.rows + tokens.first * acts.stride,
                 .packed = false,
                 .a_panel = kTileRows * acts.stride,
                 .a_row = acts.stride,
                 .b = reinterpret_cast<const float*>(weight.panel(panel)),
                 .b_block = 0,
                 .rows = tokens.n,
                 .n_blocks = 1,
                 .k = k_,
                 .c = out,
                 .c_row = kPanelRows,
                 .row_bias = nullptr});
    return;
  }
  std::memset(s.acc, 0, tokens.n * 64 * sizeof(float));
  const std::size_t k = round_up(k_, 4);
  for (std::size_t at = 0; at < k; at += kSliceValues) {
    const std::size_t n_k = std::min(kSliceValues, k - at);
    run.k->dequant[format](weight.panel(panel), at, n_k, s.slice);
    run.k->dot_f32({s.slice, n_k / 4, acts.rows + tokens.first * acts.stride + at, acts.stride,
                    tokens.n, s.acc});
  }
  run.k->finish_f32(s.acc, tokens.n, out);
}

void Gemm::epilogue(const Run& run, const GemmPart& part, std::size_t panel, const Tokens& tokens,
                    const float* tile) const noexcept {
  const std::size_t n_out = part.weight->n_out();
  const std::size_t column = panel * kPanelRows;
  const std::size_t width = std::min(kPanelRows, n_out - column);
  const float* bias =
      part.bias.kind == Operand::Kind::kNone ? nullptr : run.f32(part.bias) + column;
  const float* residual =
      part.residual.kind == Operand::Kind::kNone ? nullptr : run.f32(part.residual) + column;
  float* out = run.out(part.out) + column;
  for (std::size_t t = 0; t < tokens.n; ++t, tile += kPanelRows) {
    const std::size_t at = (tokens.first + t) * n_out;
    float values[kPanelRows];
    std::memcpy(values, tile, sizeof values);
    if (bias != nullptr) {
      for (std::size_t r = 0; r < width; ++r) values[r] += bias[r];
    }
    if (residual != nullptr) {
      for (std::size_t r = 0; r < width; ++r) values[r] = residual[at + r] + values[r];
    }
    if (width == kPanelRows) {
      std::memcpy(out + at, values, sizeof values);
    } else {
      std::memcpy(out + at, values, width * sizeof(float));
    }
  }
}

void Gemm::unit(const Run& run, std::size_t index, const Tokens& tokens,
                const Scratch& s) const noexcept {
  std::size_t p = 0;
  while (index >= first_unit_[p + 1]) ++p;
  const GemmPart& part = spec_.parts[p];
  const std::size_t panel = index - first_unit_[p];
  product(run, *part.weight, panel, tokens, s, s.tile_a);
  if (part.gate != nullptr) {
    product(run, *part.gate, panel, tokens, s, s.tile_b);
    const std::size_t values = tokens.n * kPanelRows;
    run.k->gate[static_cast<std::size_t>(spec_.activation)](s.tile_b, s.tile_a, values, s.tile_a);
  }
  epilogue(run, part, panel, tokens, s.tile_a);
}

unsigned Gemm::phases(const Run& run) const noexcept {
  return run.rows(spec_.x) <= kFewTokens ? 1 : 2;
}

void Gemm::run_phase(const Run& run, unsigned thread, unsigned phase) const noexcept {
  const std::size_t rows = run.rows(spec_.x);
  const Scratch s = scratch(run.thread_scratch[thread]);
  const std::size_t units = first_unit_.back();
  if (rows == 0) return;
  if (rows <= kFewTokens) {
    const Acts acts{s.records, s.rows, k_padded_};
    prepare_tile(run, {acts, 0, rows}, s);
    for (std::size_t u = bounds_[thread]; u < bounds_[thread + 1]; ++u)
      unit(run, u, {acts, 0, rows}, s);
    return;
  }
  const std::size_t record_bytes =
      round_up(round_up(rows, kTileTokens) * levels_ * n_blocks_ * kRecordBytes, kLine);
  const Acts acts{reinterpret_cast<std::uint8_t*>(run.shared),
                  reinterpret_cast<float*>(run.shared + record_bytes), k_padded_};
  if (phase == 0) {
    const std::size_t tiles = (rows + kTileTokens - 1) / kTileTokens;
    const Share mine(tiles, thread, run.n_threads);
    for (std::size_t tile = mine.begin; tile < mine.end; ++tile) {
      const std::size_t first = tile * kTileTokens;
      prepare_tile(run, {acts, first, std::min(kTileTokens, rows - first)}, s);
    }
    return;
  }
  const std::size_t chunks = (rows + chunk_ - 1) / chunk_;
  const auto item = [&](std::size_t chunk, std::size_t u) {
    unit(run, u, {acts, chunk * chunk_, std::min(chunk_, rows - chunk * chunk_)}, s);
  };
  if (rows < kManyTokens) {
    for (std::size_t c = 0; c < chunks; ++c) {
      for (std::size_t u = bounds_[thread]; u < bounds_[thread + 1]; ++u) item(c, u);
    }
    return;
  }
  for (std::size_t i;
       (i = run.counters[counter_].fetch_add(1, std::memory_order_relaxed)) < chunks * units;) {
    item(i / units, i % units);
  }
}

}  // namespace cyb::cpu
