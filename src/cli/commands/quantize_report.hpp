// What `quantize` prints.
#pragma once

#include <span>
#include <string>

#include "api/quantize_source.hpp"
#include "import/quantize/quantize.hpp"

namespace cyb::cli {

/// A line per tensor that got another encoding than the target, then a table: encodings with their
/// tensors, bytes and errors.
std::string quantize_text(const QuantizeReport& report);

struct QuantizeAnswer {
  const api::QuantizedModel& made;
  DType to;
  const QuantizeReport& report;
  std::span<const std::string> warnings;
};
/// One JSON object.
std::string quantize_json(const QuantizeAnswer& answer);

}  // namespace cyb::cli
