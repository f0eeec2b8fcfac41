// A pipeline as the table `[tokenizer.pipeline]` of a config part, and back.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/config.hpp"

namespace cyb {

/// Of TokenizerConfig::pipeline. Errors: InvalidConfig for a text that is no pipeline.
Result<ConfigTable> pipeline_table(std::string_view pipeline);

/// The text that TokenizerConfig::pipeline holds. Nothing is checked here: Tokenizer::create()
/// does.
std::string pipeline_text(const ConfigTable& table);

}  // namespace cyb
