// What no preset says: a tokenizer.json as a type and a pipeline (model-format 7.8).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "text/tokenizer_config.hpp"

namespace cyb::text {

/// type, pipeline, fallback and the like from `document`. Every component is compiled once, so that
/// what is not known is refused here. Errors: NotBuilt with the component's name.
Result<TokenizerConfig> general_pipeline(const nlohmann::json& document);

/// The ids around a text, in front of it and behind it. Errors: NotBuilt.
struct Frame {
  std::vector<std::int32_t> before, after;
};
Result<Frame> read_frame(const nlohmann::json& document);

/// Puts a frame of more than one id a side into the pipeline.
void set_frame(const Frame& frame, TokenizerConfig& config);

}  // namespace cyb::text
