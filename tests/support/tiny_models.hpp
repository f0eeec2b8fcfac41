// Small models for tests: those of tests/golden/tiny, whose weights are functions of their names,
// and a text model whose vocabulary a test chooses. Written once per process to a temporary folder;
// any failure throws, which fails the test.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "model/writer.hpp"

namespace cyb::test {

/// The folders of tests/golden/tiny.
const std::vector<std::string>& tiny_names();
std::shared_ptr<const Model> tiny_model(const std::string& name);

/// What transformers computed for a tiny model.
struct TinyGolden {
  std::uint32_t n_rows = 0, n_tokens = 0, vocab = 0;
  std::vector<std::int32_t> ids;     // [rows, tokens]
  std::vector<float> logits;         // [rows, tokens, V]
  std::vector<std::int32_t> greedy;  // the tokens of row 0, then 8 greedy ones
};
TinyGolden tiny_golden(const std::string& name);

/// One text past the model's window and original context (tests/golden/make/tiny.py).
struct LongGolden {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> lengths;  // [K]
  std::vector<float> logits;          // [K, V]: last row of a whole forward of lengths[i] ids
  std::uint32_t n_prompt = 0;
  std::vector<std::int32_t> greedy;  // after n_prompt ids, by a cached run
  std::vector<float> cached;         // [greedy.size(), V]: what they were chosen from
};
/// Models with such a golden.
const std::vector<std::string>& long_names();
LongGolden long_golden(const std::string& name);

struct TextToken {
  std::string text;  // bytes that it stands for (mapped to the byte-level alphabet here)
  TokenType type = TokenType::kNormal;
};

struct TextModelOptions {
  std::vector<TextToken> tokens;  // ids from 256 on; 0..255 are the bytes
  std::vector<std::int32_t> eos;
  std::int32_t bos = -1;  // -1: none
  bool add_bos = false;
  std::int64_t max_positions = 128;
  ConfigTable chat;      // empty: no chat part
  ConfigTable sampling;  // empty: greedy
};
/// A one-layer llama of byte-level BPE without merges. Its weights do not matter where a scripted
/// backend runs it.
std::shared_ptr<const Model> text_model(const TextModelOptions& options);

/// Writes a draft to the temporary folder and opens it.
std::shared_ptr<const Model> write_and_open(const ModelDraft& draft);

}  // namespace cyb::test
