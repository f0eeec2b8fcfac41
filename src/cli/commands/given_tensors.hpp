// --input NAME=FILE: tensors of .npy files as they are; pictures and sound as the input takes them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/media_flags.hpp"
#include "cli/output.hpp"
#include "runtime/tensor_session.hpp"

namespace cyb {
class MappedFile;
}

namespace cyb::cli {

/// Tensors inside .npy files, which stay mapped as long as the tensors are used, and those made of
/// pictures and sound.
struct GivenTensors {
  std::vector<std::shared_ptr<const MappedFile>> files;
  std::vector<std::unique_ptr<media::MadeTensor>> made;
  std::vector<NamedTensor> tensors;
};

/// `inputs`: NAME=FILE each; what a file is, its first bytes say. What a picture or sound became is
/// said as a note. Errors: Usage, those of the files, M codes.
Result<GivenTensors> read_tensors(const std::vector<std::string>& inputs, const MediaFlags& media,
                                  const TensorSession& session, Output& output);

}  // namespace cyb::cli
