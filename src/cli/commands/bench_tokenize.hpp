// `bench MODEL --tokenize FILE`: megabytes of text a second that become ids, on one thread.
#pragma once

#include <cstdint>
#include <string>

#include "cli/command.hpp"
#include "model/model.hpp"

namespace cyb::cli {

struct TokenizeBench {
  std::string file;
  std::uint64_t document_bytes = 0;  // the text is cut into documents of at most so many; 0: one
  std::uint64_t n_repeats = 5;
  bool json = false;
};

/// Errors: those of the file and of the tokenizer.
Result<int> bench_tokenize(Context& context, const Model& model, const TokenizeBench& what);

}  // namespace cyb::cli
