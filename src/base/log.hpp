// Log: level + text to one sink that the program sets; without a sink nothing is written. Never
// prompt text.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace cyb {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

/// Receives every message; called from any thread, one call at a time. Must not log itself.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual void write(LogLevel level, std::string_view text) noexcept = 0;
};

/// Replaces the sink (null: none) and returns the previous one.
std::shared_ptr<LogSink> set_log_sink(std::shared_ptr<LogSink> sink);

/// A sink to standard error that drops messages below `least`.
std::shared_ptr<LogSink> make_stderr_log_sink(LogLevel least);

/// True if a sink is set: ask before building an expensive text.
bool log_enabled() noexcept;

void log(LogLevel level, std::string_view text) noexcept;
inline void log_debug(std::string_view text) noexcept {
  log(LogLevel::kDebug, text);
}
inline void log_info(std::string_view text) noexcept {
  log(LogLevel::kInfo, text);
}
inline void log_warning(std::string_view text) noexcept {
  log(LogLevel::kWarning, text);
}
inline void log_error(std::string_view text) noexcept {
  log(LogLevel::kError, text);
}

}  // namespace cyb
