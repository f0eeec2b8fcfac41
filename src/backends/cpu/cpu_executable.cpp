// Compiling, checking and running of plans.
#include "backends/cpu/cpu_executable.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/fused.hpp"
#include "backends/cpu/layout.hpp"
#include "ops/attention/kv_cache.hpp"
#include "ops/blocks.hpp"
#include "ops/math/elementary.hpp"

namespace cyb::cpu {
namespace {

std::string_view dtype_text(const Step& step) {
  for (const Operand& in : step.inputs) {
    if (in.kind == Operand::Kind::kWeight) return dtype_name(in.dtype);
  }
  return step.inputs.empty() ? dtype_name(DType::kF32) : dtype_name(step.inputs[0].dtype);
}

}  // namespace

Result<std::unique_ptr<Executable>> CpuExecutable::compile(Plan plan,
                                                           const ExecutableContext& context) {
  std::unique_ptr<CpuExecutable> executable(new CpuExecutable(std::move(plan), context));
  CYB_TRY(executable->build_steps());
  return std::unique_ptr<Executable>(std::move(executable));
}

Result<void> CpuExecutable::build_steps() {
  LaidPlan laid = lay_out(plan_);
  const std::size_t n_steps = plan_.steps.size();
  plan_.outputs = std::move(laid.outputs);
  plan_.arena_bytes = laid.arena_bytes;
  plan_.steps.clear();
  for (LaidStep& step : laid.steps) plan_.steps.push_back(std::move(step.step));
  Build build{.k = context_.kernels,
              .n_threads = context_.pool->size(),
              .exact = context_.exact,
              .max_tokens = plan_.max_tokens};
  build.plan = &plan_;
  fallback_.assign(n_steps, false);
  for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
    const Step& step = plan_.steps[i];
    owner_ = laid.steps[i].owner;
    const bool last = laid.steps[i].channels_last;
    const bool whole = does_fused_ops(step, last, build);
    if (whole || step.fused.empty() || !FusedOps::takes_own_op(step)) {
      auto made = make_step(step, last, build);
      if (!made) return fail(std::move(made).error().in(step.label));
      CYB_TRY(note_step(step, *std::move(made)));
    }
    if (!whole && !step.fused.empty()) {
      CYB_ASSIGN(StepPtr fused, make_fused_step(step, build));
      CYB_TRY(note_step(step, std::move(fused)));
    }
    note_inputs(step);
  }
  return allocate(build);
}

/// `kernel` is null where the reference has to do it.
Result<void> CpuExecutable::note_step(const Step& step, StepPtr kernel) {
  fallbacks_.emplace_back();
  owners_.push_back(owner_);
  if (kernel == nullptr) {
    const OpInfo& info = op_info(step.op.tag);
    if (!context_.allow_fallback) {
      return fail(Error(ErrorKind::kDispatch, "D6",
                        fmt::format("Op::{} ({}): no backend accepts it; tried cpu", info.name,
                                    dtype_text(step)))
                      .in(step.label));
    }
    const bool stateful = step.op.tag == OpTag::kKvCache || step.op.tag == OpTag::kBlockAttention;
    if (stateful) return fail(unsupported_op(info.name, "cpu", dtype_text(step)).in(step.label));
    fallbacks_.back().emplace(step);
    ++n_fallback_;
    fallback_[owner_] = true;
  }
  steps_.push_back(std::move(kernel));
  return {};
}

void CpuExecutable::note_inputs(const Step& step) {
  if (step.op.tag == OpTag::kTokenEmbed && step.inputs[0].kind == Operand::Kind::kIds) {
    id_limits_.push_back(step.inputs[1].shape[0]);
  }
  const bool block = step.op.tag == OpTag::kBlockAttention;
  if (!block && step.op.tag != OpTag::kKvCache) return;
  const auto a = block ? BlockAttentionAttrs::from(step.op.attrs) : BlockAttentionAttrs{};
  const std::uint32_t layer = block ? a.layer : KvCacheAttrs::from(step.op.attrs).layer;
  if (kv_layers_.size() <= layer) kv_layers_.resize(layer + 1);
  kv_layers_[layer] = block ? KvLayerShape{a.n_kv_heads, a.head_dim}
                            : KvLayerShape{static_cast<std::uint32_t>(step.inputs[0].shape[1]),
                                           static_cast<std::uint32_t>(step.inputs[0].shape[3])};
  uses_kv_ = true;
}

Result<void> CpuExecutable::allocate(const Build& build) {
  CYB_ASSIGN(arena_, Buffer::allocate(std::max<std::uint64_t>(plan_.arena_bytes, 1), "cpu"));
  CYB_ASSIGN(shared_, Buffer::allocate(std::max<std::size_t>(build.shared_bytes, 1), "cpu"));
  const std::size_t each = round_up(build.thread_bytes + 256, 4096);
  CYB_ASSIGN(thread_memory_, Buffer::allocate(each * build.n_threads, "cpu"));
  for (unsigned t = 0; t < build.n_threads; ++t)
    thread_scratch_.push_back(thread_memory_.data() + t * each);
  ropes_ = build.ropes;
  for (const RopeConfig& rope : ropes_) {
    const std::size_t n = rope.frequencies.size(),
                      rows = std::max<std::size_t>(plan_.max_tokens, 1);
    CYB_ASSIGN(Buffer memory,
               Buffer::allocate(std::max<std::size_t>(2 * rows * n * sizeof(float), 1), "cpu"));
    rope_tables_.push_back({memory.as<float>(), memory.as<float>() + rows * n, n});
    rope_memory_.push_back(std::move(memory));
  }
  n_counters_ = build.n_counters;
  faults_ = build.faults;
  counters_ = std::make_unique<std::atomic<std::uint32_t>[]>(std::max<std::size_t>(n_counters_, 1));
  partial_bytes_per_chunk_ = build.partial_bytes_per_chunk;
  kept_bytes_ = build.kept_bytes;
  ids_.reserve(plan_.max_tokens);
  positions_.reserve(plan_.max_tokens);
  output_rows_.reserve(plan_.max_outputs);
  sequences_.reserve(plan_.max_tokens);
  return {};
}

Result<void> CpuExecutable::check_sequences(const StepParams& params) const {
  const auto* kv = params.kv;
  const std::vector<KvLayerShape>& layers = kv->layout().layers;
  for (std::size_t i = 0; i < kv_layers_.size(); ++i) {
    if (kv_layers_[i].head_dim == 0) continue;
    if (i >= layers.size() || layers[i].head_dim != kv_layers_[i].head_dim ||
        layers[i].n_kv_heads != kv_layers_[i].n_kv_heads) {
      return fail(internal_error("KV pages have another shape than the plan"));
    }
  }
  std::uint32_t row = 0;
  for (const SequenceSpan& s : params.sequences) {
    if (s.row_begin != row || s.n_rows == 0 || s.n_rows > params.n_tokens() - row) {
      return fail(internal_error("sequences do not cover the rows of the run"));
    }
    row += s.n_rows;
    const std::uint64_t end = std::uint64_t{s.past_tokens} + s.n_rows;
    const std::uint64_t needed = (end + kPageTokens - 1) / kPageTokens;
    if (s.pages.size() < needed)
      return fail(context_overflow(s.pages.size() * kPageTokens, s.pages.size() * kPageTokens));
    for (std::uint64_t p = 0; p < needed; ++p) {
      if (s.pages[p] >= kv->n_pages()) return fail(internal_error("KV page out of range"));
    }
  }
  if (row != params.n_tokens())
    return fail(internal_error("sequences do not cover the rows of the run"));
  return {};
}

Result<void> CpuExecutable::check(const StepParams& params) const {
  CYB_TRY(check_tensors(plan_, params));
  if (!plan_.token_step) return {};
  if (params.n_tokens() == 0) return fail(invalid_input("no tokens"));
  if (params.n_tokens() > plan_.max_tokens)
    return fail(invalid_input(
        fmt::format("{} tokens in one run, at most {}", params.n_tokens(), plan_.max_tokens)));
  if (params.output_rows.size() > plan_.max_outputs)
    return fail(invalid_input("too many output rows"));
  if (params.positions.size() != params.ids.size())
    return fail(invalid_input("one position per token"));
  for (const std::int64_t limit : id_limits_) {
    for (const std::int32_t id : params.ids) {
      if (id < 0 || id >= limit)
        return fail(invalid_input(fmt::format("token id {} is outside 0..{}", id, limit - 1)));
    }
  }
  for (const std::int32_t r : params.output_rows) {
    if (r < 0 || static_cast<std::uint32_t>(r) >= params.n_tokens())
      return fail(invalid_input("output row out of range"));
  }
  if (!uses_kv_) return {};
  if (dynamic_cast<CpuKvStore*>(params.kv) == nullptr)
    return fail(internal_error("a run with attention needs KV pages of cpu"));
  return check_sequences(params);
}

void CpuExecutable::copy_params(const StepParams& params) {
  ids_.assign(params.ids.begin(), params.ids.end());
  positions_.assign(params.positions.begin(), params.positions.end());
  output_rows_.assign(params.output_rows.begin(), params.output_rows.end());
  sequences_.assign(params.sequences.begin(), params.sequences.end());
  pages_.clear();
  for (const SequenceSpan& s : sequences_)
    pages_.insert(pages_.end(), s.pages.begin(), s.pages.end());
  std::size_t at = 0;
  for (SequenceSpan& s : sequences_) {
    s.pages = std::span<const std::uint32_t>(pages_).subspan(at, s.pages.size());
    at += s.pages.size();
  }
  tensors_.clear();
  for (const TensorView& tensor : params.tensors) tensors_.push_back(present_tensor(tensor));
  run_ = {.k = context_.kernels,
          .pool = context_.pool,
          .n_threads = context_.pool->size(),
          .arena = arena_.data(),
          .params = {.ids = ids_,
                     .positions = positions_,
                     .output_rows = output_rows_,
                     .sequences = sequences_,
                     .kv = params.kv,
                     .tensors = tensors_,
                     .times = params.times},
          .kv = static_cast<CpuKvStore*>(params.kv),
          .shared = shared_.data(),
          .thread_scratch = thread_scratch_.data(),
          .partials = partials_.data(),
          .ropes = rope_tables_.data(),
          .counters = counters_.get(),
          .length = sequences_.empty() ? 0 : static_cast<std::int32_t>(sequences_[0].tokens())};
}

/// Room for the partial results of attention that is split by key chunks.
Result<void> CpuExecutable::reserve(const RunLimits& limits) {
  if (!uses_kv_) return {};
  pages_.reserve(limits.kv_pages);
  const std::size_t chunks = (std::size_t{limits.sequence_tokens} + kChunkKeys - 1) / kChunkKeys;
  const std::size_t bytes = partial_bytes_per_chunk_ * chunks;
  if (partials_.size() < bytes) {
    CYB_ASSIGN(partials_, Buffer::allocate(bytes, "cpu"));
  }
  return {};
}

/// For a caller that has reserved nothing: a sequence may come to hold all pages of the store.
Result<void> CpuExecutable::want_partials(const StepParams& params) {
  if (!uses_kv_) return {};
  std::uint64_t longest = 0;
  for (const SequenceSpan& s : params.sequences) {
    longest = std::max(longest, std::uint64_t{s.past_tokens} + s.n_rows);
  }
  const std::uint64_t chunks = (longest + kChunkKeys - 1) / kChunkKeys;
  const std::uint32_t n_pages = params.kv->n_pages();
  const bool enough = partial_bytes_per_chunk_ * chunks <= partials_.size();
  if (enough && pages_.capacity() >= n_pages) return {};
  const std::uint64_t most = std::uint64_t{n_pages} * kPageTokens;
  return reserve({n_pages, static_cast<std::uint32_t>(std::min<std::uint64_t>(most, UINT32_MAX))});
}

Result<void> CpuExecutable::submit(const StepParams& params) {
  if (pending_) return fail(busy("executable"));
  ready_ = false;
  CYB_TRY(check(params));
  CYB_TRY(want_partials(params));
  copy_params(params);
  pending_ = true;
  return {};
}

/// T of the sequence that a row of the run belongs to.
std::uint32_t CpuExecutable::tokens_of(std::size_t row) const noexcept {
  for (const SequenceSpan& s : sequences_) {
    if (row >= s.row_begin && row < s.row_begin + s.n_rows) return s.tokens();
  }
  return 0;
}

/// theta·(factor·T/original - (factor - 1))^(R/(R-2)).
double CpuExecutable::dynamic_base(const RopeConfig& rope, std::size_t row) const noexcept {
  const double r = 2.0 * static_cast<double>(rope.frequencies.size());
  const double growth =
      rope.dynamic_factor * tokens_of(row) / rope.original - (rope.dynamic_factor - 1);
  return rope.base * math::pow_f64(growth, r / (r - 2));
}

void CpuExecutable::fill_ropes(unsigned thread) noexcept {
  for (std::size_t i = 0; i < ropes_.size(); ++i) {
    const RopeTable& table = rope_tables_[i];
    const RopeConfig& rope = ropes_[i];
    for (Share s(positions_.size(), thread, run_.n_threads); s.begin < s.end; ++s.begin) {
      const double position = positions_[s.begin];
      const bool longer = rope.original != 0 && tokens_of(s.begin) > rope.original;
      const double base = longer && rope.dynamic_factor > 0 ? dynamic_base(rope, s.begin) : 0;
      const std::vector<double>& frequencies =
          longer && !rope.long_frequencies.empty() ? rope.long_frequencies : rope.frequencies;
      for (std::size_t j = 0; j < table.n; ++j) {
        const double frequency =
            base > 0 ? math::pow_f64(base, -static_cast<double>(j) / static_cast<double>(table.n))
                     : frequencies[j];
        const math::SinCos angle = math::sincos_f64(position * frequency);
        table.cos[s.begin * table.n + j] = static_cast<float>(angle.cos);
        table.sin[s.begin * table.n + j] = static_cast<float>(angle.sin);
      }
    }
  }
}

bool CpuExecutable::Region::next() noexcept {
  if (stage == Stage::kStart && !of.ropes_.empty()) {
    stage = Stage::kRopes;
    return true;
  }
  if (stage == Stage::kSteps && ++phase < phases) return true;
  if (stage == Stage::kSteps) ++step;
  stage = Stage::kSteps;
  if (step == end) return false;
  if (stop.stop_requested()) {
    stopped = true;
    return false;
  }
  if (!of.run_.params.times.empty()) of.note_begin(step, now_ns());
  phase = 0;
  phases = of.steps_[step]->phases(of.run_);
  return true;
}

void CpuExecutable::Region::share(unsigned thread) noexcept {
  if (stage == Stage::kRopes) {
    of.fill_ropes(thread);
  } else {
    of.steps_[step]->run_phase(of.run_, thread, phase);
  }
}

/// Steps [begin, end), none of them a fallback. False: stopped.
bool CpuExecutable::walk(std::size_t begin, std::size_t end, const std::stop_token& stop) noexcept {
  Region region{*this, stop, end, begin == 0 ? Stage::kStart : Stage::kRopes, begin};
  context_.pool->run(
      RoundsTask{[](void* self) noexcept { return static_cast<Region*>(self)->next(); },
                 [](void* self, unsigned thread, unsigned) noexcept {
                   static_cast<Region*>(self)->share(thread);
                 },
                 &region});
  return !region.stopped;
}

/// A step ends where the next one of its region begins.
void CpuExecutable::note_begin(std::size_t i, std::int64_t ns) const noexcept {
  if (run_.params.times.size() != fallback_.size()) return;
  StepTime& time = run_.params.times[owners_[i]];
  if (time.begin_ns == 0) time.begin_ns = ns;
  if (i > 0 && steps_[i - 1] != nullptr) note_end(i - 1, ns);
}

void CpuExecutable::note_end(std::size_t i, std::int64_t ns) const noexcept {
  if (run_.params.times.size() != fallback_.size()) return;
  run_.params.times[owners_[i]].end_ns = ns;
}

Result<void> CpuExecutable::run_all(const std::stop_token& stop) {
  for (std::size_t begin = 0; begin < steps_.size();) {
    std::size_t end = begin;
    while (end < steps_.size() && steps_[end] != nullptr) ++end;
    if (begin < end) {
      const bool finished = walk(begin, end, stop);
      note_end(end - 1, now_ns());
      if (!finished) return fail(cancelled(0));
    }
    for (; end < steps_.size() && steps_[end] == nullptr; ++end) {
      if (stop.stop_requested()) return fail(cancelled(0));
      note_begin(end, now_ns());
      CYB_TRY(fallbacks_[end]->call(run_));
      note_end(end, now_ns());
    }
    begin = end;
  }
  return {};
}

Result<void> CpuExecutable::sync(std::stop_token stop) {
  if (!pending_) return fail(internal_error("sync without submit"));
  pending_ = false;
  for (std::size_t i = 0; i < n_counters_; ++i) counters_[i].store(0, std::memory_order_relaxed);
  CYB_TRY(run_all(stop));
  for (const Build::Fault& fault : faults_) {
    const std::uint32_t row = counters_[fault.counter].load(std::memory_order_relaxed);
    if (row != 0) return fail(non_finite(fault.op, fault.what, row - 1).in(fault.label));
  }
  ready_ = true;
  return {};
}

Result<TensorView> CpuExecutable::output_tensor(std::size_t i) {
  if (!ready_ || i >= plan_.outputs.size())
    return fail(internal_error("no such output, or no finished run"));
  const Operand& operand = plan_.outputs[i];
  return TensorView{operand.dtype, run_shape(operand, run_.params), run_.data(operand)};
}

}  // namespace cyb::cpu
