// The regime that a test run is forced into: CYB_BACKEND, CYB_PATH, CYB_ISA, CYB_THREADS. Tests
// that build an engine or run the program take their defaults from here, so that the whole suite
// can be repeated under each regime.
#pragma once

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

namespace cyb::test {

/// The variable's value, or `fallback` where it is not set or empty.
inline std::string regime_value(const char* name, std::string_view fallback) {
  const char* value = std::getenv(name);
  return std::string(value != nullptr && *value != '\0' ? std::string_view(value) : fallback);
}

inline std::string regime_backend(std::string_view fallback = "cpu") {
  return regime_value("CYB_BACKEND", fallback);
}
inline std::string regime_path(std::string_view fallback = "auto") {
  return regime_value("CYB_PATH", fallback);
}
/// Empty: the best that the machine has.
inline std::string regime_isa() {
  return regime_value("CYB_ISA", "");
}
inline unsigned regime_threads(unsigned fallback = 2) {
  const std::string text = regime_value("CYB_THREADS", "");
  unsigned threads = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), threads);
  return code == std::errc{} && end == text.data() + text.size() && threads > 0 ? threads
                                                                                : fallback;
}

}  // namespace cyb::test
