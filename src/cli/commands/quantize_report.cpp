// Errors are root mean squares over all values of an encoding: absolute, and as part of the values'
// own root mean square.
#include "cli/commands/quantize_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/hash.hpp"
#include "cli/json.hpp"
#include "cli/output.hpp"

namespace cyb::cli {
namespace {

struct Sum {
  DType dtype = DType::kF32;
  std::uint64_t n_tensors = 0, bytes = 0, n_encoded = 0;  // values
  double squared_error = 0, squared_values = 0;

  double rmse() const {
    return n_encoded == 0 ? 0.0 : std::sqrt(squared_error / static_cast<double>(n_encoded));
  }
  double relative() const {
    return squared_values > 0 ? std::sqrt(squared_error / squared_values) : 0.0;
  }
};

std::vector<Sum> by_encoding(const QuantizeReport& report) {
  std::map<DType, Sum> sums;
  for (const QuantizedTensor& row : report.tensors) {
    Sum& sum = sums[row.to];
    sum.dtype = row.to;
    ++sum.n_tensors;
    sum.bytes += row.bytes_after;
    if (row.to == row.from) continue;
    sum.n_encoded += row.n_values;
    sum.squared_error += row.squared_error;
    sum.squared_values += row.squared_values;
  }
  std::vector<Sum> out;
  for (const auto& [dtype, sum] : sums) out.push_back(sum);
  std::ranges::sort(out, std::ranges::greater{}, &Sum::bytes);
  return out;
}

struct Totals {
  std::uint64_t before = 0, after = 0, n_values = 0;
};
Totals totals(const QuantizeReport& report) {
  Totals out;
  for (const QuantizedTensor& row : report.tensors) {
    out.before += row.bytes_before;
    out.after += row.bytes_after;
    out.n_values += row.n_values;
  }
  return out;
}

Json tensor_json(const QuantizedTensor& row) {
  Json out{{"name", json_text(row.name)},
           {"from", dtype_name(row.from)},
           {"to", dtype_name(row.to)},
           {"bytes_before", row.bytes_before},
           {"bytes_after", row.bytes_after}};
  if (!row.reason.empty()) out["reason"] = row.reason;
  if (row.to != row.from && row.n_values > 0)
    out["rmse"] = std::sqrt(row.squared_error / static_cast<double>(row.n_values));
  return out;
}

}  // namespace

std::string quantize_text(const QuantizeReport& report) {
  std::string out;
  for (const QuantizedTensor& row : report.tensors) {
    const bool matrix = !row.reason.empty() && row.reason != "no weight matrix";
    if (matrix) {
      out += fmt::format("{}: {} ({})\n", terminal_safe(row.name), dtype_name(row.to), row.reason);
    }
  }
  out += fmt::format("{:<9} {:>7} {:>12} {:>11} {:>9}\n", "encoding", "tensors", "bytes", "rmse",
                     "relative");
  for (const Sum& sum : by_encoding(report)) {
    out += fmt::format("{:<9} {:>7} {:>12}", dtype_name(sum.dtype), sum.n_tensors, sum.bytes);
    out += sum.n_encoded == 0
               ? std::string(" as it was\n")
               : fmt::format(" {:>11.4e} {:>8.3f} %\n", sum.rmse(), sum.relative() * 100);
  }
  const Totals sums = totals(report);
  const double bits = sums.n_values == 0 ? 0.0
                                         : 8.0 * static_cast<double>(sums.after) /
                                               static_cast<double>(sums.n_values);
  out += fmt::format("weights: {} before, {} after, {:.3f} bits a value\n", size_text(sums.before),
                     size_text(sums.after), bits);
  return out;
}

std::string quantize_json(const QuantizeAnswer& answer) {
  const Totals sums = totals(answer.report);
  Json out{{"path", json_text(answer.made.path)},
           {"name", answer.made.name},
           {"model_id", digest_text(answer.made.written.model_id)},
           {"file_id", digest_text(answer.made.written.file_id)},
           {"to", dtype_name(answer.to)},
           {"bytes_before", sums.before},
           {"bytes_after", sums.after},
           {"requantized", answer.report.n_requantized},
           {"encodings", Json::array()},
           {"tensors", Json::array()},
           {"warnings", Json::array()}};
  for (const Sum& sum : by_encoding(answer.report)) {
    Json row{{"name", dtype_name(sum.dtype)}, {"tensors", sum.n_tensors}, {"bytes", sum.bytes}};
    if (sum.n_encoded > 0) {
      row["rmse"] = sum.rmse();
      row["relative_error"] = sum.relative();
    }
    out["encodings"].push_back(std::move(row));
  }
  for (const QuantizedTensor& row : answer.report.tensors)
    out["tensors"].push_back(tensor_json(row));
  for (const std::string& warning : answer.warnings) out["warnings"].push_back(json_text(warning));
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace cyb::cli
