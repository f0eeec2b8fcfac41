// Counters and histograms, and their text for Prometheus.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/model_shelf.hpp"

namespace cyb::server {

/// Thread-safe.
class Metrics {
 public:
  void count_request(std::string_view route, unsigned status);
  void observe_first_token(const std::string& model, double seconds);
  /// `n` tokens that came `seconds` after those before them.
  void observe_tokens(const std::string& model, double seconds, std::uint32_t n);

  /// Text exposition format 0.0.4; what is of a model has its name as the label `model`.
  std::string text(const ModelShelf& shelf, std::uint32_t n_connections) const;

 private:
  static constexpr std::array<double, 14> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,  0.5,    1,     2.5,  5,     10,   30};
  struct Histogram {
    std::array<std::uint64_t, kBounds.size() + 1> counts{};
    double sum = 0;
    void add(double seconds, std::uint64_t n) noexcept;
    void write(std::string& out, std::string_view name, std::string_view model) const;
  };
  using Histograms = std::map<std::string, Histogram>;  // by model
  static void write_all(std::string& out, std::string_view name, std::string_view help,
                        const Histograms& all);

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, unsigned>, std::uint64_t> requests_;
  Histograms first_token_, between_tokens_;
};

}  // namespace cyb::server
