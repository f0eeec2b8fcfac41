// Steps that move elements (Concat, Split) and arithmetic whose operands broadcast in any way.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "backends/cpu/step.hpp"
#include "ops/layout/concat.hpp"
#include "ops/layout/split.hpp"

namespace cyb::cpu {
namespace {

/// One side of a Concat or Split: `whole` is rows of all parts side by side.
class PartsStep final : public PlainStep {
 public:
  PartsStep(const Operand& whole, std::vector<Operand> parts, std::int64_t axis, bool joins)
      : whole_(whole), parts_(std::move(parts)), joins_(joins) {
    const std::size_t rank = whole_.shape.rank();
    const auto at =
        static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
    for (std::size_t i = 0; i < at; ++i) outer_ *= static_cast<std::size_t>(whole_.shape[i]);
    for (const Operand& part : parts_) {
      std::size_t bytes = format_info(part.dtype).block_bytes;
      for (std::size_t i = at; i < rank; ++i) bytes *= static_cast<std::size_t>(part.shape[i]);
      bytes_.push_back(bytes);
      row_ += bytes;
    }
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t n = outer_ * parts_.size();
    if (n == 0 || row_ == 0) return;
    // A copy is cut where one thread would have it all.
    const std::size_t cuts = outer_ >= run.n_threads ? 1 : run.n_threads;
    for (Share s(n * cuts, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      const std::size_t part = s.begin / cuts % parts_.size(), o = s.begin / cuts / parts_.size();
      std::size_t offset = 0;
      for (std::size_t p = 0; p < part; ++p) offset += bytes_[p];
      const Share bytes(bytes_[part], static_cast<unsigned>(s.begin % cuts),
                        static_cast<unsigned>(cuts));
      copy(run, o * row_ + offset + bytes.begin, part, o * bytes_[part] + bytes.begin,
           bytes.end - bytes.begin);
    }
  }

 private:
  void copy(const Run& run, std::size_t whole, std::size_t part, std::size_t at,
            std::size_t n) const noexcept {
    if (n == 0) return;
    if (joins_) {
      std::memcpy(run.arena + whole_.offset + whole, run.data(parts_[part]) + at, n);
    } else {
      std::memcpy(run.arena + parts_[part].offset + at, run.data(whole_) + whole, n);
    }
  }

  Operand whole_;
  std::vector<Operand> parts_;
  std::vector<std::size_t> bytes_;  // of one row of each part
  std::size_t outer_ = 1, row_ = 0;
  bool joins_;
};

/// Dimensions that both operands walk alike are one; a stride of 0 repeats.
struct Walk {
  std::vector<std::size_t> size, a, b;  // outermost first
};

Walk walk_of(const Shape& a, const Shape& b, const Shape& y) {
  Walk walk;
  std::size_t step_a = 1, step_b = 1;
  const auto dim_of = [&](const Shape& s, std::size_t back) {
    return back < s.rank() ? static_cast<std::size_t>(s[s.rank() - 1 - back]) : std::size_t{1};
  };
  for (std::size_t back = 0; back < y.rank(); ++back) {
    const std::size_t n = dim_of(y, back), in_a = dim_of(a, back), in_b = dim_of(b, back);
    const std::size_t stride_a = in_a == 1 ? 0 : step_a, stride_b = in_b == 1 ? 0 : step_b;
    step_a *= in_a;
    step_b *= in_b;
    if (n == 1) continue;
    const bool joins = !walk.size.empty() &&
                       stride_a == (walk.a.back() == 0 ? 0 : walk.a.back() * walk.size.back()) &&
                       stride_b == (walk.b.back() == 0 ? 0 : walk.b.back() * walk.size.back());
    if (joins) {
      walk.size.back() *= n;
    } else {
      walk.size.push_back(n);
      walk.a.push_back(stride_a);
      walk.b.push_back(stride_b);
    }
  }
  if (walk.size.empty()) walk = {{1}, {0}, {0}};
  std::ranges::reverse(walk.size);
  std::ranges::reverse(walk.a);
  std::ranges::reverse(walk.b);
  return walk;
}

class BroadcastStep final : public PlainStep {
 public:
  explicit BroadcastStep(const Step& step)
      : tag_(step.op.tag),
        a_(step.inputs[0]),
        b_(step.inputs[1]),
        y_(step.outputs[0]),
        walk_(walk_of(a_.shape, b_.shape, y_.shape)) {
    for (std::size_t i = 0; i + 1 < walk_.size.size(); ++i) rows_ *= walk_.size[i];
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    const std::size_t last = walk_.size.size() - 1, n = walk_.size[last];
    if (rows_ == 1) {  // one long row
      const Share s(n, thread, run.n_threads);
      row(run, s.begin * walk_.a[last], s.begin * walk_.b[last], s.begin, s.end - s.begin);
      return;
    }
    for (Share s(rows_, thread, run.n_threads); s.begin < s.end; ++s.begin) {
      std::size_t rest = s.begin, a = 0, b = 0;
      for (std::size_t i = last; i-- > 0; rest /= walk_.size[i]) {
        a += rest % walk_.size[i] * walk_.a[i];
        b += rest % walk_.size[i] * walk_.b[i];
      }
      row(run, a, b, s.begin * n, n);
    }
  }

 private:
  void row(const Run& run, std::size_t a_at, std::size_t b_at, std::size_t y_at,
           std::size_t n) const noexcept {
    if (n == 0) return;
    arithmetic(*run.k, tag_, {run.f32(a_) + a_at, walk_.a.back() == 0},
               {run.f32(b_) + b_at, walk_.b.back() == 0}, n, run.out(y_) + y_at);
  }

  OpTag tag_;
  Operand a_, b_, y_;
  Walk walk_;
  std::size_t rows_ = 1;
};

bool plain(const Operand& operand) {
  return operand.kind != Operand::Kind::kWeight || operand.dtype == cpu_weight(operand)->dtype();
}

}  // namespace

Result<StepPtr> make_layout_step(const Step& step) {
  switch (step.op.tag) {
    case OpTag::kConcat:
      if (!std::ranges::all_of(step.inputs, plain)) return StepPtr();
      return std::make_unique<PartsStep>(step.outputs[0], step.inputs,
                                         ConcatAttrs::from(step.op.attrs).axis, true);
    case OpTag::kSplit:
      if (!plain(step.inputs[0])) return StepPtr();
      return std::make_unique<PartsStep>(step.inputs[0], step.outputs,
                                         SplitAttrs::from(step.op.attrs).axis, false);
    default:
      return std::make_unique<BroadcastStep>(step);
  }
}

}  // namespace cyb::cpu
