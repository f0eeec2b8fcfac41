// The pre-tokenizers that GGUF files name (tokenizer.ggml.pre): one table from a name to a preset
// or to the steps of a pipeline.
#pragma once

#include <string_view>

#include "text/tokenizer_config.hpp"

namespace cyb::text {

struct GgufPre {
  TokenizerConfig config;  // type, pre, pipeline, nfc, ignore_merges
  bool add_bos = false;    // where the file does not say
  bool add_sep = false;    // BOS and EOS around a text where the file does not say
};

/// Of a byte-level BPE vocabulary. Errors: NotBuilt for a name that is not in the table.
Result<GgufPre> gguf_pre(std::string_view name);

}  // namespace cyb::text
