// Case tables on every target against the reference (tolerances of the class).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>

#include "backends/cpu/kernels/table.hpp"
#include "conformance/case_run.hpp"
#include "conformance/targets.hpp"
#include "support/far_backend.hpp"
#include "support/tolerance.hpp"

namespace cyb::test {
namespace {

// ---- a case as a plan

class CasePlan {
 public:
  CasePlan(Backend& backend, const Case& c, const Made& made)
      : backend_(backend), case_(c), made_(made) {}

  /// False where a plan cannot carry the case: empty tensors, activations that no step can produce.
  bool expressible() const {
    if (case_.inputs.empty()) return false;
    for (const In& in : case_.inputs) {
      if (in.role == Role::kAbsent) continue;
      if (in.shape.count() == 0) return false;
      const bool index = in.fill == Fill::kIndex;
      if (in.role == Role::kActivation && in.dtype != DType::kF32 && !index) return false;
    }
    return true;
  }

  /// `fused` false: the decomposition's steps, on the same backend.
  Result<std::vector<std::vector<float>>> run(bool fused = true) {
    for (const In& in : case_.inputs) {
      if (in.role != Role::kActivation) continue;
      const bool index = in.fill == Fill::kIndex;
      has_rows_ = has_rows_ || !index;
      n_rows_ =
          std::max(n_rows_, index ? static_cast<std::uint32_t>(in.shape.count()) : rows_of(in));
    }
    plan_.max_tokens = n_rows_;
    plan_.max_outputs = 0;
    Step step{case_.op, {}, {}, "case"};
    for (std::size_t i = 0; i < case_.inputs.size(); ++i) {
      CYB_ASSIGN(Operand in, input(i));
      step.inputs.push_back(in);
    }
    if (fused) {
      CYB_ASSIGN(plan_.outputs, add_step(std::move(step), made_.specs));
    } else {
      Unfused sink(*this, step.inputs, made_.specs);
      CYB_ASSIGN(const std::vector<ValueId> outputs, decompose(case_.op, sink.inputs(), sink));
      for (const ValueId v : outputs) plan_.outputs.push_back(sink.operand(v));
    }
    return execute();
  }

 private:
  /// Writes the plain ops of a decomposition into the plan.
  class Unfused final : public OpSink {
   public:
    Unfused(CasePlan& plan, std::span<const Operand> inputs, std::span<const TensorSpec> specs)
        : plan_(plan), operands_(1), specs_{TensorSpec::none()} {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const bool absent = inputs[i].kind == Operand::Kind::kNone;
        inputs_.push_back(absent ? kNoValue : add(inputs[i], specs[i]));
      }
    }
    std::span<const ValueId> inputs() const { return inputs_; }
    const Operand& operand(ValueId v) const { return operands_[v]; }
    const TensorSpec& spec(ValueId v) const override { return specs_[v]; }

    Result<std::vector<ValueId>> emit(const Op& op, std::span<const ValueId> inputs) override {
      if (op_info(op.tag).fused) return decompose(op, inputs, *this);
      Step step{op, {}, {}, "unfused"};
      std::vector<TensorSpec> specs;
      for (const ValueId v : inputs) {
        step.inputs.push_back(operands_[v]);
        specs.push_back(specs_[v]);
      }
      CYB_ASSIGN(const std::vector<Operand> outputs, plan_.add_step(std::move(step), specs));
      std::vector<ValueId> ids;
      for (const Operand& out : outputs)
        ids.push_back(add(out, TensorSpec::of(out.dtype, out.shape)));
      return ids;
    }

    Result<ValueId> constant(std::span<const float> values, const Shape& shape) override {
      const auto bytes = std::as_bytes(values);
      plan_.tables_.emplace_back(bytes.begin(), bytes.end());
      CYB_ASSIGN(const Operand out,
                 plan_.load(DType::kF32, shape, plan_.tables_.back(), WeightUse::kVector));
      return add(out, TensorSpec::of(DType::kF32, shape));
    }

   private:
    ValueId add(const Operand& operand, const TensorSpec& spec) {
      operands_.push_back(operand);
      specs_.push_back(spec);
      return static_cast<ValueId>(operands_.size() - 1);
    }
    CasePlan& plan_;
    std::vector<Operand> operands_;
    std::vector<TensorSpec> specs_;
    std::vector<ValueId> inputs_;
  };

  Result<std::vector<Operand>> add_step(Step step, std::span<const TensorSpec> specs) {
    CYB_ASSIGN(std::vector<TensorSpec> inferred, infer(step.op, specs));
    if (has_data_dims(inferred)) {
      CYB_ASSIGN(inferred, run_specs(step.op, made_.views));
    }
    for (const TensorSpec& spec : inferred)
      step.outputs.push_back(arena(spec.dtype, *spec.bind({})));
    plan_.steps.push_back(step);
    return step.outputs;
  }

  static std::uint32_t rows_of(const In& in) {
    return static_cast<std::uint32_t>(in.shape.rank() == 0 ? 1
                                                           : in.shape.count() / in.shape.back());
  }

  Operand arena(DType dtype, const Shape& shape) {
    Operand out;
    out.kind = Operand::Kind::kArena;
    out.dtype = dtype;
    out.shape = shape;
    out.offset = plan_.arena_bytes;
    plan_.arena_bytes += (tensor_bytes(dtype, shape).value() + 255) / 256 * 256;
    return out;
  }

  Result<Operand> load(DType dtype, const Shape& shape, std::span<const std::byte> bytes,
                       WeightUse use) {
    CYB_ASSIGN(auto weight, backend_.load_weight({"w", dtype, shape, bytes}, use, {}));
    Operand out;
    out.kind = Operand::Kind::kWeight;
    out.dtype = dtype;
    out.shape = shape;
    out.weight = weight.get();
    weights_.push_back(std::move(weight));
    return out;
  }

  /// Indices travel as the run's ids, or as its positions where the ids already name table rows.
  Operand index_input(const In& in, const std::vector<std::byte>& bytes) {
    indices_.resize(bytes.size() / sizeof(std::int32_t));
    std::memcpy(indices_.data(), bytes.data(), bytes.size());
    Operand out;
    out.kind = has_rows_ ? Operand::Kind::kPositions : Operand::Kind::kIds;
    out.dtype = DType::kI32;
    out.shape = in.shape;
    return out;
  }

  /// Activations come out of a table of their rows: the only way into the arena.
  Result<Operand> input(std::size_t i) {
    const In& in = case_.inputs[i];
    if (in.role == Role::kAbsent) return Operand{};
    const std::vector<std::byte>& bytes = made_.bytes[i];
    if (in.role == Role::kVector) return load(in.dtype, in.shape, bytes, WeightUse::kVector);
    if (in.role == Role::kMatmul) return load(in.dtype, in.shape, bytes, WeightUse::kMatmul);
    if (in.role == Role::kGather) return load(in.dtype, in.shape, bytes, WeightUse::kGather);
    if (in.fill == Fill::kIndex) return index_input(in, bytes);
    const std::int64_t width = in.shape.rank() == 0 ? 1 : in.shape.back();
    const Shape padded{n_rows_, width};
    tables_.push_back(bytes);
    tables_.back().resize(static_cast<std::size_t>(padded.count()) * 4);
    CYB_ASSIGN(const Operand table, load(DType::kF32, padded, tables_.back(), WeightUse::kGather));
    Operand ids;
    ids.kind = Operand::Kind::kIds;
    ids.rows = RowKind::kTokens;
    ids.dtype = DType::kI32;
    ids.shape = Shape{n_rows_};
    Operand rows = arena(DType::kF32, padded);
    Operand produced = rows;
    produced.rows = RowKind::kTokens;
    plan_.steps.push_back({{OpTag::kTokenEmbed, {}}, {ids, table}, {produced}, "input"});
    rows.shape = in.shape;
    return rows;
  }

  Result<std::vector<std::vector<float>>> execute() {
    const std::size_t n_outputs = plan_.outputs.size();
    CYB_ASSIGN(const auto executable, backend_.compile(std::move(plan_)));
    std::vector<std::int32_t> ids(n_rows_);
    for (std::uint32_t i = 0; i < n_rows_; ++i) ids[i] = static_cast<std::int32_t>(i);
    const SequenceSpan span{0, n_rows_, 0, {}};
    std::vector<std::int32_t> positions = ids;
    std::copy(indices_.begin(), indices_.end(), has_rows_ ? positions.begin() : ids.begin());
    CYB_TRY(executable->submit({ids, positions, {}, std::span(&span, 1), nullptr}));
    CYB_TRY(executable->sync());
    std::vector<std::vector<float>> outputs;
    for (std::size_t i = 0; i < n_outputs; ++i) {
      CYB_ASSIGN(const std::span<const float> values, executable->output(i));
      outputs.emplace_back(values.begin(), values.end());
    }
    return outputs;
  }

  Backend& backend_;
  const Case& case_;
  const Made& made_;
  std::uint32_t n_rows_ = 1;
  bool has_rows_ = false;  // some activation comes out of a table
  std::vector<std::int32_t> indices_;
  Plan plan_;
  std::vector<std::unique_ptr<Weight>> weights_;
  std::deque<std::vector<std::byte>> tables_;
};

/// Rounded activations enter a product of products: only the plain product has a bound against the
/// reference. A fused step is then held to its unfused form on the same backend (class F), whose
/// products are held to the reference by the cases of Matmul.
bool is_rounded_composition(const Backend& backend, const Case& c) {
  if (backend.numeric_mode() == NumericMode::kExact || !op_info(c.op.tag).fused) return false;
  return std::any_of(c.inputs.begin(), c.inputs.end(),
                     [](const In& in) { return in.role == Role::kMatmul && is_block(in.dtype); });
}

double allowed_error(const Backend& backend, const Case& c) {
  std::size_t k = 64;
  bool blocks = false, outliers = false;
  for (const In& in : c.inputs) {
    if (in.role == Role::kMatmul) k = static_cast<std::size_t>(in.shape.back());
    blocks = blocks || (in.role == Role::kMatmul && is_block(in.dtype));
    outliers = outliers || in.fill == Fill::kWide;
  }
  if (blocks && backend.numeric_mode() != NumericMode::kExact)
    return quantised_tolerance(backend.numeric_mode(), outliers);
  return tolerance(op_info(c.op.tag).cls, DType::kF32, k);
}

bool all_finite(const std::vector<Output>& outputs) {
  for (const Output& out : outputs) {
    for (const float v : out.values) {
      if (!std::isfinite(v)) return false;
    }
  }
  return true;
}

/// What a plan can hand out.
bool all_f32(const std::vector<Output>& outputs) {
  return std::ranges::all_of(outputs, [](const Output& o) { return o.view.dtype == DType::kF32; });
}

/// True if the target ran the case on a kernel of its own.
bool check_on_target(const Target& target, const OpCases& table, const Case& c) {
  const std::string path = path_of(table, c);
  const Made made(c, path);
  const auto want = run_reference(c, made);
  CasePlan plan(*target.backend, c, made);
  if (!want || !plan.expressible() || !all_f32(*want)) return false;
  if (!target.backend->supports(c.op, made.specs)) return false;
  const auto got = plan.run();
  // Where the reference has no number there is none on the target either: an error, or the same NaN
  // and Inf.
  const bool refused = !got && got.error().kind() == ErrorKind::kNonFinite;
  if (refused && !all_finite(*want)) return true;
  EXPECT_TRUE(got) << target.name << " " << path << ": " << got.error().text();
  if (!got) return true;
  if (is_rounded_composition(*target.backend, c)) {
    const auto unfused = CasePlan(*target.backend, c, made).run(false);
    EXPECT_TRUE(unfused) << target.name << " " << path << ": " << unfused.error().text();
    for (std::size_t i = 0; unfused && i < got->size(); ++i) {
      EXPECT_LE(error_of((*got)[i], (*unfused)[i]), tolerance(ToleranceClass::kF, DType::kF32))
          << target.name << " " << path << " output " << i << " against its unfused form";
    }
    return true;
  }
  for (std::size_t i = 0; i < want->size(); ++i) {
    EXPECT_LE(error_of((*got)[i], (*want)[i].values), allowed_error(*target.backend, c))
        << target.name << " " << path << " output " << i;
  }
  return true;
}

/// `exact`: targets with f32 activations; else those that round activations to integer blocks.
void check_targets(bool exact) {
  for (const Target& target : all_targets()) {
    if ((target.backend->numeric_mode() == NumericMode::kExact) != exact) continue;
    std::map<OpTag, std::size_t> ran;
    for (const OpCases& table : all_cases()) {
      for (const Case& c : table.cases) ran[table.tag] += check_on_target(target, table, c) ? 1 : 0;
    }
    for (const OpTag tag : {OpTag::kMatmul, OpTag::kAdd, OpTag::kMul, OpTag::kRmsNorm, OpTag::kSilu,
                            OpTag::kTokenEmbed, OpTag::kBlockNormLinear, OpTag::kBlockLinearAdd,
                            OpTag::kBlockGatedMlp, OpTag::kBlockNormAdd, OpTag::kBlockSoftcap}) {
      EXPECT_GT(ran[tag], 0u) << target.name << " has no kernel for Op::" << op_info(tag).name;
    }
  }
}

TEST(Conformance, ExactTargetsAreWithinToleranceOfTheReference) {
  check_targets(true);
}

TEST(Conformance, RoundingTargetsAreWithinToleranceOfTheReference) {
  check_targets(false);
}

std::vector<Target> make_targets() {
  const auto start = [](std::string_view name, const BackendOptions& options) {
    auto backend = create_backend(name, options);
    if (!backend) throw std::runtime_error(backend.error().text());
    return *backend;
  };
  BackendOptions options;
  options.n_threads = 2;
  std::vector<Target> out = {{"reference", start("reference", options)}};
  out.push_back({"far", make_far_backend(options).value()});
  const char* names[16];
  const std::size_t n = cpu::available_isas(names, 16);
  for (std::size_t i = 0; i < n; ++i) {
    options.isa = names[i];
    for (const bool exact : {false, true}) {
      options.exact = exact;
      out.push_back(
          {std::string("cpu ") + names[i] + (exact ? " exact" : ""), start("cpu", options)});
    }
  }
  return out;
}

}  // namespace

const std::vector<Target>& all_targets() {
  static const std::vector<Target> targets = make_targets();
  return targets;
}

}  // namespace cyb::test
