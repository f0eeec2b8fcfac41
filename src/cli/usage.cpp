// Closeness is the number of letters to change, add or leave out (Levenshtein).
#include "cli/usage.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cyb::cli {
namespace {

constexpr std::size_t kLongestName = 64;  // longer ones are no mistyped names

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string_view without_dashes(std::string_view name) noexcept {
  while (name.starts_with('-')) name.remove_prefix(1);
  return name;
}

}  // namespace

Error usage_error(std::string_view what) {
  return Error(ErrorKind::kInvalidInput, std::string(kUsageCode), std::string(what));
}

std::string closest_name(std::string_view given, std::span<const std::string> names) {
  const std::string_view wanted = without_dashes(given);
  if (wanted.empty() || wanted.size() > kLongestName) return {};
  const std::size_t allowed = wanted.size() <= 3 ? 1 : 1 + wanted.size() / 3;
  std::string best;
  std::size_t best_distance = allowed + 1;
  for (const std::string& name : names) {
    const std::string_view known = without_dashes(name);
    const bool lengthened = known.size() >= 3 && wanted.starts_with(known);
    const bool shortened = wanted.size() >= 3 && known.starts_with(wanted);
    const std::size_t d = shortened || lengthened
                              ? std::min<std::size_t>(1, distance(wanted, known))
                              : distance(wanted, known);
    if (d >= best_distance || d >= std::max(wanted.size(), known.size())) continue;
    best = name;
    best_distance = d;
  }
  return best;
}

}  // namespace cyb::cli
