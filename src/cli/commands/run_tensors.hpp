// `run MODEL --input NAME=FILE … [--output DIR]`: one run of a graph with named tensors.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/media_flags.hpp"
#include "cli/model_flags.hpp"
#include "runtime/tensor_session.hpp"

namespace cyb::cli {

class TensorFlags {
 public:
  /// --input, --image-…, --sample-rate, --output, --select, --force, --profile, --trace.
  void declare(Options& options);
  /// The first of these options that is given; "" where none is.
  std::string given() const;
  /// Errors: Usage, those of the files, as TensorSession.
  Result<int> run(Context& context, const ModelFlags& flags, std::shared_ptr<const Model> model,
                  bool json) const;

 private:
  Result<std::vector<std::size_t>> chosen(std::span<const std::string> outputs) const;
  Result<void> check_files(const ModelFlags& flags, std::span<const std::string> paths) const;

  std::vector<std::string> inputs_, select_;
  MediaFlags media_;
  std::optional<std::string> output_, trace_;
  bool force_ = false, profile_ = false;
};

}  // namespace cyb::cli
