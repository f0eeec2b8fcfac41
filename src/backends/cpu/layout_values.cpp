// First fit by lifetime, as the plan's own placement.
#include "backends/cpu/layout_values.hpp"

#include <algorithm>

namespace cyb::cpu {
namespace {

constexpr std::uint64_t kAlignment = 256;

class Arena {
 public:
  std::uint64_t take(std::uint64_t bytes) {
    const std::uint64_t size = std::max<std::uint64_t>(bytes, 1);
    std::uint64_t begin = 0;
    auto at = live_.begin();
    for (; at != live_.end() && at->first < begin + size; ++at)
      begin = (at->second + kAlignment - 1) / kAlignment * kAlignment;
    live_.insert(at, {begin, begin + size});
    peak_ = std::max(peak_, begin + size);
    return begin;
  }
  void give_back(std::uint64_t begin) {
    std::erase_if(live_, [&](const auto& block) { return block.first == begin; });
  }
  std::uint64_t peak() const { return peak_; }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> live_;  // ascending
  std::uint64_t peak_ = 0;
};

class Placer {
 public:
  Placer(std::vector<DraftStep> drafts, const std::vector<LayoutValue>& values,
         const std::vector<std::uint32_t>& outputs)
      : drafts_(std::move(drafts)), values_(values) {
    last_use_.assign(values.size(), 0);
    offset_.assign(values.size(), 0);
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      const DraftStep& d = drafts_[i];
      for (const auto* list : {&d.inputs, &d.fused_inputs, &d.outputs}) {
        for (const std::uint32_t v : *list) {
          if (v != kNoValue) last_use_[values_[v].root] = i;
        }
      }
    }
    for (const std::uint32_t v : outputs) {
      if (v != kNoValue) last_use_[values_[v].root] = drafts_.size();
    }
  }

  LaidPlan place() {
    LaidPlan plan;
    std::vector<std::vector<std::uint32_t>> ending(drafts_.size() + 1);
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      DraftStep& d = drafts_[i];
      for (std::size_t k = 0; k < d.outputs.size(); ++k) {
        const std::uint32_t root = values_[d.outputs[k]].root;
        offset_[root] = take(d, root, i, ending[i]);
        ending[last_use_[root]].push_back(root);
      }
      set_offsets(d.laid.step.inputs, d.inputs);
      set_offsets(d.laid.step.fused_inputs, d.fused_inputs);
      set_offsets(d.laid.step.outputs, d.outputs);
      plan.steps.push_back(std::move(d.laid));
      for (const std::uint32_t root : ending[i]) arena_.give_back(offset_[root]);
    }
    plan.arena_bytes = arena_.peak();
    return plan;
  }

  std::uint64_t offset(std::uint32_t v) const { return offset_[values_[v].root]; }

 private:
  std::uint64_t take(const DraftStep& d, std::uint32_t root, std::size_t i,
                     std::vector<std::uint32_t>& ending) {
    const auto bytes = [&](std::uint32_t v) {
      return tensor_bytes(values_[v].dtype, values_[v].shape).value_or(0);
    };
    if (d.shares != kNoValue && d.outputs.size() == 1) {
      const std::uint32_t from = values_[d.shares].root;
      const auto reads = [&](const std::vector<std::uint32_t>& list) {
        return std::ranges::count_if(
            list, [&](std::uint32_t v) { return v != kNoValue && values_[v].root == from; });
      };
      const bool free = last_use_[from] == i && reads(d.inputs) + reads(d.fused_inputs) == 1;
      if (free && bytes(from) == bytes(root)) {
        std::erase(ending, from);
        return offset_[from];
      }
    }
    return arena_.take(bytes(root));
  }

  void set_offsets(std::vector<Operand>& operands, const std::vector<std::uint32_t>& values) const {
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (values[k] != kNoValue) operands[k].offset = offset(values[k]);
    }
  }

  std::vector<DraftStep> drafts_;
  const std::vector<LayoutValue>& values_;
  std::vector<std::size_t> last_use_;  // of roots
  std::vector<std::uint64_t> offset_;  // of roots
  Arena arena_;
};

}  // namespace

bool is_trivial(const Shape& shape) {
  if (shape.rank() < 3 || shape.count() == 0) return true;
  return shape[1] == 1 || shape.count() == shape[0] * shape[1];
}

LaidPlan place(std::vector<DraftStep> drafts, const std::vector<LayoutValue>& values,
               const std::vector<std::uint32_t>& outputs) {
  Placer placer(std::move(drafts), values, outputs);
  LaidPlan plan = placer.place();
  for (const std::uint32_t v : outputs) {
    plan.outputs.push_back(
        {.kind = Operand::Kind::kArena, .offset = v == kNoValue ? 0 : placer.offset(v)});
  }
  return plan;
}

}  // namespace cyb::cpu
