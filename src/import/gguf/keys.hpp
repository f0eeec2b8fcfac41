// Keys: the metadata keys of one architecture's name space ("llama.block_count").
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "import/gguf/gguf_config.hpp"

namespace cyb::gguf {

class Keys {
 public:
  Keys(Metadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(std::string(architecture) + ".") {}
  std::string name(std::string_view suffix) const { return prefix_ + std::string(suffix); }
  const std::string& prefix() const { return prefix_; }
  Metadata& get() { return metadata_; }
  bool has(std::string_view suffix) const { return metadata_.has(name(suffix)); }
  Result<std::int64_t> integer(std::string_view suffix, IntegerRange range) {
    return metadata_.integer(name(suffix), range);
  }
  Result<double> number_or(std::string_view suffix, double fallback) {
    return metadata_.number_or(name(suffix), fallback);
  }

  /// One number for all layers; arrays whose entries differ are not built.
  Result<std::int64_t> uniform(std::string_view suffix, std::int64_t n_layers, IntegerRange range) {
    CYB_ASSIGN(const std::vector<std::int64_t> all,
               metadata_.integers(name(suffix), static_cast<std::size_t>(n_layers), range));
    if (std::ranges::count(all, all[0]) != n_layers)
      return refuse(suffix, "differs between layers, which is not built yet");
    return all[0];
  }

  std::unexpected<Error> refuse(std::string_view suffix, std::string_view why) const {
    return fail(invalid_config(name(suffix), why));
  }

 private:
  Metadata& metadata_;
  std::string prefix_;
};

/// Frequencies and their scaling. Errors: InvalidConfig naming the key.
Result<void> read_rope(Keys& keys, const TensorFacts& facts, LlamaStyleConfig& c,
                       ImportReport& report);

/// What one architecture has beside the common keys, and what GGUF does not say about it (execution
/// 6.1). Errors: InvalidConfig naming the key.
Result<void> read_kind(Keys& keys, Kind kind, LlamaStyleConfig& c, ImportReport& report);

}  // namespace cyb::gguf
