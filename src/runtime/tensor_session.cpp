// Opening a graph-only model and binding tensors by name.
#include "runtime/tensor_session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "paths/family.hpp"
#include "paths/forward.hpp"
#include "runtime/held_model.hpp"
#include "runtime/memory.hpp"
#include "runtime/pack_cache.hpp"

namespace cyb {

std::string input_text(const GraphInput& input, std::span<const std::string> symbols) {
  return fmt::format("{} {}", input.name, input.spec.text(symbols));
}

Result<bool> is_tensor_model(const Model& model) {
  if (!model.has_graph() || find_family(model.model_type()) != nullptr) return false;
  CYB_ASSIGN(const Graph graph, model.graph());
  return !std::ranges::all_of(graph.inputs, [](const GraphInput& input) {
    return input.name == "ids" || input.name == "pos" || input.name == "len";
  });
}

Result<std::unique_ptr<TensorSession>> TensorSession::open(std::shared_ptr<const Model> model,
                                                           const EngineOptions& options) {
  return open(std::move(model), options, false);
}

Result<std::unique_ptr<TensorSession>> TensorSession::open(std::shared_ptr<const Model> model,
                                                           const EngineOptions& options,
                                                           bool measure) {
  CYB_ASSIGN(const Path path, choose_path(*model, options.path));
  if (path != Path::kGraph) {
    return fail(invalid_input("a model of a language family takes a prompt, not --input"));
  }
  CYB_ASSIGN(const Graph graph, model->graph());
  std::unique_ptr<TensorSession> session(new TensorSession);
  session->process_bytes_ = resident_bytes();
  BackendOptions wanted;
  wanted.n_threads = options.n_threads;
  wanted.exact = options.exact;
  wanted.isa = options.isa;
  wanted.allow_fallback = options.allow_fallback;
  CYB_ASSIGN(session->backend_, create_backend(options.backend, wanted));
  session->model_ = held_model(std::move(model), *session->backend_, measure).model;
  session->weights_ = std::make_unique<WeightTable>(session->model_, session->backend_,
                                                    measure ? measured_panels() : nullptr);
  CYB_ASSIGN(session->forward_,
             TensorForward::make(graph, *session->weights_, {.fuse = options.fuse}));
  return session;
}

MemoryPools TensorSession::memory() const {
  return {.weights_mapped = weights_->mapped_bytes(),
          .weights_own = weights_->own_bytes() + forward_->constant_bytes(),
          .run = forward_->peak_bytes(),
          .process = process_bytes_};
}

Result<void> TensorSession::run(std::span<const NamedTensor> inputs, std::stop_token stop) {
  std::vector<TensorView> ordered(this->inputs().size());
  const auto all = [&] {
    std::string text;
    for (const GraphInput& input : this->inputs())
      text += (text.empty() ? "" : "; ") + input_text(input, symbols());
    return text;
  };
  for (const NamedTensor& given : inputs) {
    const auto want = std::ranges::find(this->inputs(), given.name, &GraphInput::name);
    if (want == this->inputs().end()) {
      return fail(invalid_input(
          fmt::format("the model has no input \"{}\"; it takes: {}", given.name, all())));
    }
    TensorView& slot = ordered[static_cast<std::size_t>(want - this->inputs().begin())];
    if (slot.present()) return fail(invalid_input(fmt::format("input \"{}\" twice", given.name)));
    slot = given.tensor;
  }
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    if (ordered[i].present()) continue;
    return fail(invalid_input(fmt::format("input \"{}\" is missing; the model takes: {}",
                                          this->inputs()[i].name, all())));
  }
  return forward_->run(ordered, std::move(stop));
}

std::vector<StepRecord> TensorSession::steps() const {
  std::vector<StepRecord> records;
  for (const StepLog::Entry& entry : forward_->log().entries)
    records.push_back({entry.step.op, entry.step.name, entry.step.fallback, entry.time});
  return records;
}

}  // namespace cyb
