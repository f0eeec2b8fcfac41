// A Hugging Face folder of a tiny random llama with a real tokenizer and a chat template: something
// that talks (nonsense) and is made in milliseconds. Needs nothing of the project, so that tests of
// the program and of the library can use it.
#pragma once

#include <string>

namespace cyb::test {

struct TextCheckpointOptions {
  unsigned context_tokens = 128;
  bool chat_template = true;
  unsigned ffn = 64;  // width of the mlp: what makes the files large
};

/// Makes `folder` with config.json, tokenizer.json (tests/golden/tokenizer/smollm.json: 1200
/// tokens, <|im_start|>, <|im_end|>), tokenizer_config.json and model.safetensors. False: a file
/// could not be written.
bool write_text_checkpoint(const std::string& folder, const TextCheckpointOptions& options = {});

}  // namespace cyb::test
