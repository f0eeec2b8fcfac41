// `run MODEL --input NAME=FILE.npy … [--output DIR]`: one run of a graph with named tensors.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/model_flags.hpp"
#include "runtime/tensor_session.hpp"

namespace cyb {
class MappedFile;
}

namespace cyb::cli {

/// Tensors of .npy files, which stay mapped as long as the tensors are used.
struct GivenTensors {
  std::vector<std::shared_ptr<const MappedFile>> files;
  std::vector<NamedTensor> tensors;
};

/// `inputs`: NAME=FILE.npy each. Errors: Usage, those of the files.
Result<GivenTensors> read_tensors(const std::vector<std::string>& inputs);

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
