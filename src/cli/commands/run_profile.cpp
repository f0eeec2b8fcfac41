// Tables and traces of steps.
#include "cli/commands/run_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/file.hpp"
#include "cli/json.hpp"
#include "cli/output.hpp"

namespace cyb::cli {
namespace {

constexpr std::size_t kMaxLines = 60;  // of one table

struct Row {
  std::string op, name;
  std::size_t calls = 0, fallbacks = 0;
  double ms = 0;
};

double ms_of(const StepTime& time) {
  return static_cast<double>(time.end_ns - time.begin_ns) / 1e6;
}

/// Rows by key, slowest first.
std::vector<Row> rows_by(std::span<const StepRecord> steps, bool by_node) {
  std::map<std::pair<std::string, std::string>, Row> found;
  for (const StepRecord& step : steps) {
    const std::string name = by_node ? step.name : "";
    Row& row = found[{step.op, name}];
    row.op = step.op;
    row.name = name;
    ++row.calls;
    row.fallbacks += step.fallback ? 1 : 0;
    row.ms += ms_of(step.time);
  }
  std::vector<Row> rows;
  for (auto& [key, row] : found) rows.push_back(std::move(row));
  std::ranges::stable_sort(rows, std::greater<>(), &Row::ms);
  return rows;
}

void add_table(std::string& text, const std::vector<Row>& rows, std::string_view title,
               std::string_view backend) {
  double total = 0;
  std::size_t width = 8;
  for (const Row& row : rows) {
    total += row.ms;
    width = std::max(width, std::min<std::size_t>(row.op.size(), 40));
  }
  text += fmt::format("{:<{}}  {:>5}  {:>10}  {:>5}  {:<9}  {:>8}  {}\n", "op", width, "calls",
                      "ms", "%", "backend", "fallback", title);
  for (std::size_t i = 0; i < rows.size() && i < kMaxLines; ++i) {
    const Row& row = rows[i];
    const double share = total > 0 ? 100 * row.ms / total : 0;
    text += fmt::format("{:<{}}  {:>5}  {:>10.3f}  {:>5.1f}  {:<9}  {:>8}  {}\n",
                        terminal_safe(row.op), width, row.calls, row.ms, share,
                        row.fallbacks == row.calls ? "reference" : backend, row.fallbacks,
                        terminal_safe(row.name));
  }
  if (rows.size() > kMaxLines) text += fmt::format("({} more)\n", rows.size() - kMaxLines);
  text += fmt::format("{:<{}}  {:>5}  {:>10.3f}\n", "all", width, "", total);
}

}  // namespace

std::string profile_text(std::span<const StepRecord> steps, std::string_view backend) {
  std::string text;
  add_table(text, rows_by(steps, true), "node", backend);
  text += "\n";
  add_table(text, rows_by(steps, false), "", backend);
  return text;
}

Result<void> write_trace(const std::string& path, std::span<const StepRecord> steps,
                         std::string_view backend) {
  std::int64_t start = steps.empty() ? 0 : steps[0].time.begin_ns;
  for (const StepRecord& step : steps) start = std::min(start, step.time.begin_ns);
  Json events = Json::array();
  for (const StepRecord& step : steps) {
    const std::string_view where = step.fallback ? "reference" : backend;
    events.push_back({{"name", step.op},
                      {"cat", "step"},
                      {"ph", "X"},
                      {"ts", static_cast<double>(step.time.begin_ns - start) / 1e3},
                      {"dur", ms_of(step.time) * 1e3},
                      {"pid", 1},
                      {"tid", 1},
                      {"args", {{"node", json_text(step.name)}, {"backend", where}}}});
  }
  CYB_ASSIGN(AtomicFile file, AtomicFile::create(path));
  CYB_TRY(file.write(Json{{"traceEvents", events}, {"displayTimeUnit", "ms"}}.dump() + "\n"));
  return file.commit();
}

}  // namespace cyb::cli
