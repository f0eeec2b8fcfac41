// Planning a graph of tensors: input shapes from names and numbers, then the stage that a run would
// build for them.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/tensor_session.hpp"

namespace cyb {
namespace {

/// Symbols and axes with the sizes that were given; each must be of use.
struct Sizes {
  std::span<const NamedSize> given;
  std::vector<bool> used = std::vector<bool>(given.size(), false);

  std::optional<std::int64_t> find(std::string_view name) {
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].name != name) continue;
      used[i] = true;
      return given[i].size;
    }
    return std::nullopt;
  }
};

/// `input` with its dimensions as numbers. Error: InvalidInput that names --dim.
Result<Shape> bound_shape(const GraphInput& input, std::span<const std::string> symbols,
                          Sizes& sizes) {
  std::vector<std::int64_t> values(symbols.size(), -1);
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    if (const auto size = sizes.find(symbols[i])) values[i] = *size;
  }
  std::vector<std::int64_t> out;
  for (std::size_t axis = 0; axis < input.spec.rank(); ++axis) {
    const Dim& dim = input.spec.dims[axis];
    const std::string place = fmt::format("{}.{}", input.name, axis);
    std::optional<std::int64_t> size;
    if (!dim.is_constant()) size = sizes.find(place);
    if (!size) size = dim.eval(values);
    if (!size || *size < 0) {
      const std::string name = dim.is_anonymous() ? place : dim.text(symbols);
      return fail(
          invalid_input(fmt::format("the size of {} is not known: give it with --dim {}=N; "
                                    "the input is {}",
                                    name, name, input_text(input, symbols))));
    }
    out.push_back(*size);
  }
  const Shape shape{std::span<const std::int64_t>(out)};
  if (!tensor_bytes(input.spec.dtype, shape)) {
    return fail(invalid_input(fmt::format("\"{}\": too many elements", input.name)));
  }
  return shape;
}

}  // namespace

Result<TensorPlan> plan_tensor_session(std::shared_ptr<const Model> model,
                                       const EngineOptions& options,
                                       std::span<const NamedSize> sizes) {
  CYB_ASSIGN(const std::unique_ptr<TensorSession> session,
             TensorSession::open(std::move(model), options, true));
  Sizes named{sizes};
  std::vector<TensorView> inputs;
  TensorPlan plan{.backend = std::string(session->backend().name()), .inputs = {}, .bytes = {}};
  for (const GraphInput& input : session->inputs()) {
    static constexpr std::byte kNothing{};
    CYB_ASSIGN(const Shape shape, bound_shape(input, session->symbols(), named));
    inputs.push_back({input.spec.dtype, shape, &kNothing});
    plan.inputs.push_back(
        fmt::format("{} {} {}", input.name, dtype_name(input.spec.dtype), shape.text()));
  }
  if (const auto unused = std::ranges::find(named.used, false); unused != named.used.end()) {
    const NamedSize& size = sizes[static_cast<std::size_t>(unused - named.used.begin())];
    return fail(
        invalid_input(fmt::format("no input has a dimension \"{}\" without a size", size.name)));
  }
  CYB_TRY(session->forward_->plan_for(inputs));
  plan.bytes = session->memory();
  // Matrices that were measured in place of being packed.
  plan.bytes.weights_own += session->weights_->cached_bytes();
  return plan;
}

}  // namespace cyb
