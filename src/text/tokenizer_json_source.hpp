// First half of reading a tokenizer.json: a streaming parse. The two big parts (model.vocab,
// model.merges) go straight into compact lists; everything else becomes a small document for the
// recogniser.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cyb::text {

/// Texts one after another in one blob.
class TextList {
 public:
  void add(std::string_view text) {
    blob_.append(text);
    ends_.push_back(blob_.size());
  }
  std::size_t size() const noexcept { return ends_.size(); }
  std::size_t n_bytes() const noexcept { return blob_.size(); }
  std::string_view operator[](std::size_t i) const noexcept {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(blob_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string blob_;
  std::vector<std::size_t> ends_;
};

struct TokenizerJson {
  nlohmann::json rest;            // the document without model.vocab and model.merges
  TextList tokens;                // model.vocab, in file order
  std::vector<std::int64_t> ids;  // of the tokens
  std::vector<float> scores;      // of the tokens of a Unigram model, whose vocab is a list
  TextList merges;                // "a b" texts, or a, b, a, b...
  bool merges_are_pairs = false;
};

/// Errors: Format "tokenizer.json: ..." with the byte offset.
Result<TokenizerJson> parse_tokenizer_json(std::string_view text);

}  // namespace cyb::text
