// Every case as a general plan, with its tensors of any dtype as named inputs: what the cpu backend
// has no kernel for runs on the reference, with equal bits, whatever the dtype and however the
// shapes depend on data. Likewise a backend whose memory the host cannot see.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "conformance/case_run.hpp"
#include "conformance/targets.hpp"

namespace cyb::test {
namespace {

struct General {
  Plan plan;
  std::vector<TensorView> tensors;
  std::vector<std::unique_ptr<Weight>> weights;

  Operand tensor(const TensorView& view) {
    Operand in;
    in.kind = Operand::Kind::kTensor;
    in.dtype = view.dtype;
    in.shape = view.shape;
    in.index = static_cast<std::uint32_t>(tensors.size());
    tensors.push_back(view);
    plan.tensors.push_back(TensorSpec::of(view.dtype, view.shape));
    return in;
  }
  Result<Operand> weight(Backend& backend, const TensorView& view, Role role) {
    const bool matrix = role == Role::kMatmul && view.shape.rank() == 2;
    const WeightUse use = matrix ? WeightUse::kMatmul : WeightUse::kGather;
    const std::size_t size = tensor_bytes(view.dtype, view.shape).value();
    CYB_ASSIGN(auto held,
               backend.load_weight({"w", view.dtype, view.shape, {view.data, size}}, use, {}));
    Operand in;
    in.kind = Operand::Kind::kWeight;
    in.dtype = view.dtype;
    in.shape = view.shape;
    in.weight = held.get();
    weights.push_back(std::move(held));
    return in;
  }
};

Result<std::vector<Output>> run_general(Backend& backend, const Case& c, const Made& made) {
  General g;
  g.plan.token_step = false;
  Step step{c.op, {}, {}, "case"};
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const Role role = c.inputs[i].role;
    if (role == Role::kAbsent) {
      step.inputs.emplace_back();
    } else if (role == Role::kMatmul || role == Role::kGather) {
      CYB_ASSIGN(Operand in, g.weight(backend, made.views[i], role));
      step.inputs.push_back(in);
    } else {
      step.inputs.push_back(g.tensor(made.views[i]));
    }
  }
  CYB_ASSIGN(const std::vector<TensorSpec> specs, run_specs(c.op, made.views));
  for (const TensorSpec& spec : specs) {
    Operand out;
    out.kind = Operand::Kind::kArena;
    out.dtype = spec.dtype;
    out.shape = spec.bind({}).value();
    out.offset = g.plan.arena_bytes;
    g.plan.arena_bytes += (tensor_bytes(out.dtype, out.shape).value() + 256) / 256 * 256;
    step.outputs.push_back(out);
    g.plan.outputs.push_back(out);
  }
  g.plan.steps.push_back(std::move(step));
  CYB_ASSIGN(const auto executable, backend.compile(std::move(g.plan)));
  StepParams params;
  params.tensors = g.tensors;
  CYB_TRY(executable->submit(params));
  CYB_TRY(executable->sync());
  std::vector<Output> outputs;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    CYB_ASSIGN(const TensorView view, executable->output_tensor(i));
    outputs.push_back(take(view));
  }
  return outputs;
}

bool is_fused(const Case& c) {
  return op_info(c.op.tag).fused;
}

void check(Backend& backend, const std::string& name) {
  std::size_t ran = 0;
  for (const OpCases& table : all_cases()) {
    for (const Case& c : table.cases) {
      const std::string path = path_of(table, c);
      const Made made(c, path);
      const bool own_kernel = backend.name() == "cpu" && backend.supports(c.op, made.specs);
      const auto want = run_reference(c, made);
      if (own_kernel || is_fused(c) || !want) continue;
      const auto got = run_general(backend, c, made);
      ASSERT_TRUE(got) << name << " " << path << ": " << got.error().text();
      for (std::size_t i = 0; i < want->size(); ++i) {
        EXPECT_EQ((*got)[i].view.shape, (*want)[i].view.shape) << name << " " << path;
        EXPECT_EQ((*got)[i].bytes, (*want)[i].bytes) << name << " " << path << " output " << i;
      }
      ++ran;
    }
  }
  EXPECT_GT(ran, 2000u) << name;
}

TEST(Fallback, OpsWithoutAKernelHaveTheBitsOfTheReference) {
  const auto& targets = all_targets();
  const auto cpu =
      std::ranges::find_if(targets, [](const Target& t) { return t.name == "cpu scalar exact"; });
  ASSERT_NE(cpu, targets.end());
  check(*cpu->backend, cpu->name);
}

TEST(Fallback, DevicesWithTheReferencesKernelsToo) {
  check(*std::ranges::find(all_targets(), "far", &Target::name)->backend, "far");
}

}  // namespace
}  // namespace cyb::test
