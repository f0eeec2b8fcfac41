// The table of model types.
#include "import/hf/model_types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json_text.hpp"

namespace cyb::hf {
namespace {

constexpr std::array kTypes = {
#define CYB_MODEL_TYPE(...) ModelType{__VA_ARGS__},
#include "import/hf/model_types.inc"
#undef CYB_MODEL_TYPE
};

}  // namespace

Result<ModelType> find_model_type(std::string_view model_type) {
  const auto at = std::ranges::find(kTypes, model_type, &ModelType::model_type);
  if (at != kTypes.end()) return *at;
  std::string known;
  for (const ModelType& row : kTypes) known += fmt::format("{}, ", row.model_type);
  return fail(not_built(
      fmt::format("import of model_type {} (built: {}gemma3)", json_quote(model_type), known)));
}

}  // namespace cyb::hf
