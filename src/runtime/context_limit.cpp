// A factor that is no number above 1 reaches no further; the rope itself refuses it with its name.
#include "runtime/context_limit.hpp"

#include <algorithm>
#include <cmath>

namespace cyb {
namespace {

constexpr double kMostPositions = 1 << 30;

}  // namespace

ContextLimit context_limit(const ConfigTable& config, std::uint32_t trained) {
  ContextLimit out{trained, trained, "it has no rope_scaling that reaches further"};
  const auto type = config.string_or("architecture.rope_scaling.type", "");
  const auto factor = config.number_or("architecture.rope_scaling.factor", 1.0);
  if (!type || !factor || !(*factor > 1.0)) return out;
  const bool yarn = *type == "yarn";
  if (!yarn && *type != "linear" && *type != "dynamic") return out;
  const auto original = config.number_or(
      "architecture.rope_scaling.original_max_position_embeddings", static_cast<double>(trained));
  const double from = yarn && original ? *original : static_cast<double>(trained);
  const double most = std::min(std::floor(from * *factor), kMostPositions);
  if (most <= static_cast<double>(trained)) return out;
  out.most = static_cast<std::uint32_t>(most);
  out.reason = "its rope_scaling " + *type + " reaches " + std::to_string(out.most);
  return out;
}

}  // namespace cyb
