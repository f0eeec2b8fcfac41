// Where the time of a run of tensors went: a table for people, a trace for a browser.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "runtime/tensor_session.hpp"

namespace cyb::cli {

/// A line per step (op, node, calls, ms, share, backend), slowest first, then a line per op.
std::string profile_text(std::span<const StepRecord> steps, std::string_view backend);

/// Chrome's trace event format: one complete event per step, microseconds from the first one's
/// begin. Written whole or not at all. Errors: Io.
Result<void> write_trace(const std::string& path, std::span<const StepRecord> steps,
                         std::string_view backend);

}  // namespace cyb::cli
