// The log sink, the only mutable global that modules share, and the standard-error sink on spdlog.
#include "base/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <mutex>
#include <utility>

namespace cyb {
namespace {

std::mutex g_mutex;
std::shared_ptr<LogSink> g_sink;  // guarded by g_mutex
std::atomic<bool> g_enabled{false};

spdlog::level::level_enum to_spdlog(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

class StderrSink final : public LogSink {
 public:
  explicit StderrSink(LogLevel least)
      : logger_("cyb-llm", std::make_shared<spdlog::sinks::stderr_sink_st>()) {
    logger_.set_pattern("%l: %v");
    logger_.set_level(to_spdlog(least));
    logger_.set_error_handler([](const std::string&) {});
  }
  void write(LogLevel level, std::string_view text) noexcept override {
    logger_.log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
  }

 private:
  spdlog::logger logger_;
};

}  // namespace

std::shared_ptr<LogSink> set_log_sink(std::shared_ptr<LogSink> sink) {
  const std::lock_guard lock(g_mutex);
  g_enabled.store(sink != nullptr, std::memory_order_release);
  return std::exchange(g_sink, std::move(sink));
}

std::shared_ptr<LogSink> make_stderr_log_sink(LogLevel least) {
  return std::make_shared<StderrSink>(least);
}

bool log_enabled() noexcept {
  return g_enabled.load(std::memory_order_acquire);
}

void log(LogLevel level, std::string_view text) noexcept {
  if (!log_enabled()) return;
  const std::lock_guard lock(g_mutex);
  if (g_sink) g_sink->write(level, text);
}

}  // namespace cyb
