// `run MODEL --input NAME=FILE.npy … [--output DIR]`: one run of a graph with named tensors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/model_flags.hpp"

namespace cyb::cli {

class TensorFlags {
 public:
  /// --input, --output, --force, --no-fuse, --profile, --trace.
  void declare(Options& options);
  bool given() const noexcept {
    return !inputs_.empty() || output_ || force_ || no_fuse_ || profile_ || trace_;
  }
  /// Errors: Usage, those of the files, as TensorSession.
  Result<int> run(Context& context, const ModelFlags& flags, std::shared_ptr<const Model> model,
                  bool json) const;

 private:
  std::vector<std::string> inputs_;
  std::optional<std::string> output_, trace_;
  bool force_ = false, no_fuse_ = false, profile_ = false;
};

}  // namespace cyb::cli
