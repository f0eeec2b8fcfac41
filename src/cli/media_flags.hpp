// --image-… and --sample-rate: what is done to a picture or a sound on its way into an input.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "cli/options.hpp"
#include "media/picture_tensor.hpp"

namespace cyb::cli {

class MediaFlags {
 public:
  void declare(Options& options);
  /// The first flag of a kind that was given, "" for none.
  std::string image_flag() const;
  std::string sound_flag() const { return rate_ ? "--sample-rate" : ""; }
  /// Errors: Usage.
  Result<media::PictureOptions> picture_options() const;
  std::optional<std::uint32_t> rate() const;

 private:
  std::optional<std::string> size_, channels_, layout_, scale_, mean_, deviation_;
  std::optional<std::uint64_t> rate_;
  bool crop_ = false;
};

}  // namespace cyb::cli
