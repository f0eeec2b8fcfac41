// Runs of neighbours are copied 16 lanes at a time; what a copy puts past its run is written over
// by the next run or set to zero.
#include "backends/cpu/conv_pack.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace cyb::cpu {
namespace {

constexpr std::int64_t kLanes = kBlock;

bool is_pointwise(const conv::Problem& p) {
  return p.volume() == 1 && std::ranges::all_of(p.axes, [](const conv::Axis& a) {
           return a.stride == 1 && a.before == 0 && a.after == 0;
         });
}

}  // namespace

/// A row of the input that a run of outputs meets; null: it lies outside.
struct ConvPack::Line {
  const float* row;
  const float *begin, *end;  // of the memory that may be read
};

ConvPack::ConvPack(const conv::Problem& problem)
    : a_(problem.axes),
      channels_(problem.in_channels),
      plane_(problem.in_size()),
      k_(problem.in_channels * problem.volume()) {
  if (!is_pointwise(problem)) return;
  a_ = {};
  a_[2].in = a_[2].out = static_cast<std::int64_t>(plane_);
}

/// One tap of a run; `to`: lane 0. May write past the run, at most kPackSlack floats.
void ConvPack::tap(const Line& line, const Run& run, std::int64_t l, float* to) const noexcept {
  const conv::Axis& a = a_[2];
  const auto n = static_cast<std::int64_t>(run.n);
  float* lanes = to + run.lane;
  if (line.row == nullptr) {
    std::fill_n(lanes, n, 0.0f);
    return;
  }
  const std::int64_t at = run.x + l * a.dilation;
  // Lanes [lo, hi) are inside.
  const std::int64_t lo = at >= 0 ? 0 : std::min(n, (-at + a.stride - 1) / a.stride);
  const std::int64_t room = a.in - at;
  const std::int64_t hi = room <= 0 ? 0 : std::min(n, (room + a.stride - 1) / a.stride);
  if (a.stride == 1 && at >= line.begin - line.row && at + kLanes <= line.end - line.row) {
    std::memcpy(lanes, line.row + at, kBlock * sizeof(float));
    for (std::int64_t i = 0; i < lo; ++i) lanes[i] = 0.0f;
    for (std::int64_t i = hi; i < n; ++i) lanes[i] = 0.0f;
    return;
  }
  for (std::int64_t i = 0; i < lo; ++i) lanes[i] = 0.0f;
  for (std::int64_t i = lo; i < hi; ++i) lanes[i] = line.row[at + i * a.stride];
  for (std::int64_t i = std::max(lo, hi); i < n; ++i) lanes[i] = 0.0f;
}

void ConvPack::block(const float* x, std::size_t room, std::size_t first, std::size_t n,
                     float* to) const noexcept {
  std::array<Run, kBlock> runs;
  std::size_t n_runs = 0;
  for (std::size_t lane = 0; lane < n;) {
    const auto flat = static_cast<std::int64_t>(first + lane);
    const std::int64_t q = flat % a_[2].out, r = flat / a_[2].out % a_[1].out,
                       z = flat / (a_[2].out * a_[1].out);
    const std::size_t width = std::min(n - lane, static_cast<std::size_t>(a_[2].out - q));
    runs[n_runs++] = {lane, width, conv::tap(a_[0], z, 0), conv::tap(a_[1], r, 0),
                      conv::tap(a_[2], q, 0)};
    lane += width;
  }
  std::array<Line, kBlock> lines;
  for (std::size_t c = 0; c < channels_; ++c) {
    const float* plane = x + c * plane_;
    for (std::int64_t i = 0; i < a_[0].kernel; ++i) {
      for (std::int64_t j = 0; j < a_[1].kernel; ++j) {
        for (std::size_t s = 0; s < n_runs; ++s) {
          const std::int64_t z = runs[s].z + i * a_[0].dilation, y = runs[s].y + j * a_[1].dilation;
          const bool is_inside = conv::inside(a_[0], z) && conv::inside(a_[1], y);
          lines[s] = {is_inside ? plane + (z * a_[1].in + y) * a_[2].in : nullptr, x, x + room};
        }
        // Run by run within a tap: what a copy writes too far is written again.
        for (std::int64_t l = 0; l < a_[2].kernel; ++l, to += kBlock) {
          for (std::size_t s = 0; s < n_runs; ++s) tap(lines[s], runs[s], l, to);
          std::fill(to + n, to + kBlock, 0.0f);
        }
      }
    }
  }
}

}  // namespace cyb::cpu
