// Reader of tests/golden/ops/*.safetensors: tensors and cases (JSON in the metadata) that other
// implementations computed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ops/op.hpp"

namespace cyb::test {

struct GoldenCase {
  std::string name;
  Op op;
  std::vector<TensorView> inputs;  // absent: data == nullptr
  std::vector<TensorView> outputs;
};

class GoldenFile {
 public:
  /// Throws std::runtime_error on a malformed file: a test must not go on without it.
  explicit GoldenFile(const std::string& name);
  TensorView tensor(const std::string& key) const { return tensors_.at(key); }
  const std::vector<GoldenCase>& cases() const { return cases_; }

 private:
  std::vector<std::vector<std::uint64_t>> values_;  // aligned copies: the file's need not be
  std::map<std::string, TensorView> tensors_;
  std::vector<GoldenCase> cases_;
};

/// Attributes of an op by field name, from a JSON object.
Attrs attrs_from_json(const OpInfo& op, const std::string& json);

}  // namespace cyb::test
