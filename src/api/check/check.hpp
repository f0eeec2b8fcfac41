// The proof that a model does what its source does: rows that pass, fail or say why they were not
// run. A row that was not run never counts as passed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/model.hpp"

namespace cyb::api {

enum class Verdict : std::uint8_t { kPass, kFail, kNotRun };
std::string_view verdict_name(Verdict verdict) noexcept;  // "pass", "fail", "not run"

struct CheckRow {
  std::string name;
  Verdict verdict = Verdict::kNotRun;
  std::string detail;  // what was compared, what differs, or why it was not run
};

struct CheckOptions {
  std::string against;  // a GGUF file, a folder, a tokenizer file or goldens; "": the model alone
  unsigned n_threads = 0;  // 0: one per physical core
  bool all = false;        // the reference backend also where the model is big
  std::function<void(std::string_view row)> progress;  // may be empty
  std::stop_token stop;
};

struct CheckReport {
  std::vector<CheckRow> rows;
  std::size_t count(Verdict verdict) const noexcept;
};

/// Errors: of reading `against` (what cannot be read proves nothing), Cancelled. What is wrong with
/// the model is a row that fails.
Result<CheckReport> check_model(std::shared_ptr<const Model> model, const CheckOptions& options);

}  // namespace cyb::api
