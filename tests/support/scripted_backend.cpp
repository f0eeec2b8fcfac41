// See the header.
#include "support/scripted_backend.hpp"

#include <algorithm>

namespace cyb::test {
namespace {

class ScriptedWeight final : public Weight {
 public:
  explicit ScriptedWeight(const WeightSource& source) : Weight(source) {}
  std::uint64_t own_bytes() const noexcept override { return 0; }
};

class ScriptedStore final : public KvStore {
 public:
  ScriptedStore(KvLayout layout, std::uint32_t n_pages, std::uint32_t& n_copies)
      : layout_(std::move(layout)),
        ids_(std::size_t{n_pages} * layout_.page_tokens, -1),
        n_pages_(n_pages),
        n_copies_(n_copies) {}
  const KvLayout& layout() const noexcept override { return layout_; }
  std::uint32_t n_pages() const noexcept override { return n_pages_; }
  std::uint64_t page_bytes() const noexcept override {
    return std::uint64_t{layout_.page_tokens} * sizeof(std::int32_t);
  }
  Result<void> copy_page(std::uint32_t from, std::uint32_t to) override {
    ++n_copies_;
    std::copy_n(ids_.begin() + from * layout_.page_tokens, layout_.page_tokens,
                ids_.begin() + to * layout_.page_tokens);
    return {};
  }
  std::int32_t& at(std::span<const std::uint32_t> pages, std::uint32_t position) {
    const std::uint32_t n = layout_.page_tokens;
    return ids_.at(std::size_t{pages[position / n]} * n + position % n);
  }

 private:
  KvLayout layout_;
  std::vector<std::int32_t> ids_;
  std::uint32_t n_pages_;
  std::uint32_t& n_copies_;
};

void hash_row(std::span<const std::int32_t> history, std::span<float> logits) {
  std::uint64_t h = 0xCBF29CE484222325ull;
  for (const std::int32_t id : history) {
    h = (h ^ static_cast<std::uint64_t>(id)) * 0x100000001B3ull;
  }
  for (std::size_t i = 0; i < logits.size(); ++i) {
    std::uint64_t z = (h + i) * 0x9E3779B97F4A7C15ull;
    z ^= z >> 29;
    logits[i] = static_cast<float>(z >> 40) * 0x1p-22f;
  }
}

class ScriptedExecutable final : public Executable {
 public:
  ScriptedExecutable(ScriptedBackend& backend, Plan plan)
      : backend_(backend), plan_(std::move(plan)) {
    vocab_ = static_cast<std::size_t>(plan_.outputs.at(0).shape.back());
    logits_.resize(vocab_ * plan_.max_outputs);
  }

  Result<void> submit(const StepParams& params) override {
    backend_.run_sizes.push_back(params.n_tokens());
    if (params.n_tokens() > plan_.max_tokens || params.output_rows.size() > plan_.max_outputs) {
      return fail(internal_error("a run larger than its plan"));
    }
    if (backend_.script.before_run) CYB_TRY(backend_.script.before_run(params));
    auto& store = static_cast<ScriptedStore&>(*params.kv);
    std::size_t output = 0;
    for (const SequenceSpan& sequence : params.sequences) {
      for (std::uint32_t i = 0; i < sequence.n_rows; ++i) {
        const std::uint32_t row = sequence.row_begin + i;
        const std::uint32_t position = sequence.past_tokens + i;
        if (params.positions[row] != static_cast<std::int32_t>(position)) {
          return fail(internal_error("a wrong position"));
        }
        store.at(sequence.pages, position) = params.ids[row];
        const bool wanted = output < params.output_rows.size() &&
                            params.output_rows[output] == static_cast<std::int32_t>(row);
        if (wanted) write_row(store, sequence, position, output++);
      }
    }
    return output == params.output_rows.size() ? Result<void>()
                                               : fail(internal_error("a lost row"));
  }
  Result<void> sync(std::stop_token stop) override {
    if (stop.stop_requested()) return fail(cancelled(0));
    return {};
  }
  Result<std::span<const float>> output(std::size_t) override {
    return std::span<const float>(logits_).first(n_rows_ * vocab_);
  }
  Result<TensorView> output_tensor(std::size_t) override {
    return fail(internal_error("a scripted backend has logits only"));
  }
  std::uint32_t n_fallback_steps() const noexcept override { return 0; }

 private:
  void write_row(ScriptedStore& store, const SequenceSpan& sequence, std::uint32_t position,
                 std::size_t output) {
    history_.clear();
    for (std::uint32_t p = 0; p <= position; ++p) history_.push_back(store.at(sequence.pages, p));
    const std::span<float> logits = std::span(logits_).subspan(output * vocab_, vocab_);
    backend_.script.row ? backend_.script.row(history_, logits) : hash_row(history_, logits);
    n_rows_ = output + 1;
  }

  ScriptedBackend& backend_;
  Plan plan_;
  std::size_t vocab_ = 0, n_rows_ = 0;
  std::vector<float> logits_;
  std::vector<std::int32_t> history_;
};

std::byte packed_byte(std::byte b) {
  return ~b;
}

}  // namespace

Script scripted_answer(std::size_t n_prompt, std::vector<std::int32_t> answer) {
  Script script;
  script.row = [n_prompt, answer = std::move(answer)](std::span<const std::int32_t> history,
                                                      std::span<float> logits) {
    std::ranges::fill(logits, 0.0f);
    const std::size_t at = history.size() < n_prompt ? 0 : history.size() - n_prompt;
    logits[static_cast<std::size_t>(answer[std::min(at, answer.size() - 1)])] = 20.0f;
  };
  return script;
}

ScriptedBackend::ScriptedBackend(Script s) : script(std::move(s)) {}

std::uint64_t ScriptedBackend::packed_bytes(const WeightSource& source, WeightUse use) const {
  return packs && use != WeightUse::kVector ? source.bytes.size() : 0;
}

Result<void> ScriptedBackend::pack(const WeightSource& source, WeightUse,
                                   std::span<std::byte> out) const {
  ++n_packs;
  std::ranges::transform(source.bytes, out.begin(), packed_byte);
  return {};
}

Result<std::unique_ptr<Weight>> ScriptedBackend::load_weight(const WeightSource& source,
                                                             WeightUse use,
                                                             std::span<const std::byte> packed) {
  if (!packed.empty()) {
    if (packed.size() != packed_bytes(source, use))
      return fail(internal_error("a packed weight of a wrong size"));
    for (std::size_t i = 0; i < packed.size(); ++i) {
      if (packed[i] != packed_byte(source.bytes[i]))
        return fail(internal_error("wrong packed bytes"));
    }
    ++n_packed_loads;
  }
  return std::make_unique<ScriptedWeight>(source);
}

Result<std::unique_ptr<KvStore>> ScriptedBackend::alloc_kv(const KvLayout& kv,
                                                           std::uint32_t n_pages) {
  return std::make_unique<ScriptedStore>(kv, n_pages, n_copies);
}

Result<std::unique_ptr<Executable>> ScriptedBackend::compile(Plan plan) {
  compiled.clear();
  for (const Step& step : plan.steps) compiled.push_back(step.op.tag);
  return std::make_unique<ScriptedExecutable>(*this, std::move(plan));
}

}  // namespace cyb::test
