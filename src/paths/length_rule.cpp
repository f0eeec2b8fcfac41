// The rule from [architecture.rope_scaling].
#include "paths/length_rule.hpp"

namespace cyb {

Result<LengthRule> read_length_rule(const ConfigTable& config) {
  LengthRule rule;
  CYB_ASSIGN(const std::string type, config.string_or("architecture.rope_scaling.type", "default"));
  if (type == "longrope") rule.kind = LengthRule::Kind::kSwitch;
  if (type == "dynamic") rule.kind = LengthRule::Kind::kEach;
  if (rule.kind == LengthRule::Kind::kNone) return rule;
  CYB_ASSIGN(const std::int64_t original,
             config.integer_in("architecture.rope_scaling.original_max_position_embeddings", 1,
                               std::int64_t{1} << 30));
  rule.original = static_cast<std::uint32_t>(original);
  return rule;
}

}  // namespace cyb
