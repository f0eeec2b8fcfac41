// What is said of a model without an engine: read from its file once, kept when the file is closed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/model.hpp"

namespace cyb {

/// Numbers are 0 and texts empty where the file does not say.
struct ModelFacts {
  std::string model_id;                     // "blake3:..."
  std::string path, type;                   // of the file; the architecture
  std::string encoding;                     // that most bytes have
  std::string chat_template;                // its text
  std::vector<std::string> stop_strings{};  // known once it was loaded
  std::uint64_t file_bytes = 0;
  std::int64_t modified = 0;  // of the file, seconds since 1970
  std::int64_t parameters = 0, max_positions = 0, hidden_size = 0, n_layers = 0, n_heads = 0,
               n_kv_heads = 0, vocab_size = 0;
};

/// Errors: those of the content id.
Result<ModelFacts> model_facts(const Model& model);

}  // namespace cyb
