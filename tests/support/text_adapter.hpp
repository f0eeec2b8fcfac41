// A LoRA adapter of the text checkpoint (text_checkpoint.hpp), in PEFT's form. Needs nothing of the
// project.
#pragma once

#include <string>

namespace cyb::test {

/// A and B of the down projection [32, 64], rank 2. `keys` of adapter_config.json: those beside
/// peft_type, r and bias. False: a file could not be written.
bool write_text_adapter(const std::string& folder, const std::string& keys = R"("lora_alpha":40)");

}  // namespace cyb::test
