// `bench MODEL --input NAME=FILE …`: milliseconds a run of a graph with named tensors, planning
// and the first run apart.
#pragma once

#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "model/model.hpp"
#include "runtime/engine.hpp"

namespace cyb::cli {

struct TensorBench {
  std::vector<std::string> inputs;  // NAME=FILE
  std::vector<unsigned> threads;
  std::uint64_t n_repeats = 5;
  EngineOptions engine;
  bool json = false;
  std::stop_token stop;
};

/// Errors: Usage, those of the files, as TensorSession.
Result<int> bench_tensors(Context& context, std::shared_ptr<const Model> model,
                          const TensorBench& what);

}  // namespace cyb::cli
