// The curated registry: family_list.inc as a table.
#include "paths/family.hpp"

#include <array>

#include "paths/curated/llama.hpp"

namespace cyb {
namespace {

constexpr std::array kFamilies = {
#define CYB_FAMILY(model_type, family, bind) FamilyRow{model_type, family, bind},
#include "paths/family_list.inc"
#undef CYB_FAMILY
};

}  // namespace

const FamilyRow* find_family(std::string_view model_type) noexcept {
  for (const FamilyRow& row : kFamilies) {
    if (row.model_type == model_type) return &row;
  }
  return nullptr;
}

std::span<const FamilyRow> all_families() noexcept {
  return kFamilies;
}

}  // namespace cyb
