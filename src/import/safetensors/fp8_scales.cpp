// weight = fp8 value * scale, also where the name says "inv": it is the inverse of the factor that
// the values were multiplied with before rounding.
#include "import/safetensors/fp8_scales.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "import/safetensors/safetensors_file.hpp"
#include "model/scale.hpp"

namespace cyb::safetensors {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::string_view, 2> kWeightScales = {".weight_scale_inv", ".weight_scale"};
/// Of activations and of the KV cache: what we compute is not rounded to 8 bits.
constexpr std::array<std::string_view, 6> kOtherScales = {".input_scale",      ".input_scale_ub",
                                                          ".activation_scale", ".output_scale",
                                                          ".k_scale",          ".v_scale"};

std::string text_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

bool is_square(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || at->is_null()) return true;
  return *at == Json::array({kScaleSquare, kScaleSquare});
}

std::optional<std::string> group_problem(const Json& group) {
  const auto weights = group.is_object() ? group.find("weights") : group.end();
  if (!group.is_object() || weights == group.end() || !weights->is_object())
    return "a group without weights";
  const bool eight = weights->value("num_bits", Json()) == Json(8);
  if (!eight || text_of(*weights, "type") != "float") return "weights that are not 8-bit floats";
  if (weights->value("symmetric", Json(true)) != Json(true)) return "weights with a zero point";
  const std::string strategy = text_of(*weights, "strategy");
  if (strategy == "tensor" || strategy == "channel") return std::nullopt;
  if (strategy == "block" && is_square(*weights, "block_structure")) return std::nullopt;
  return fmt::format("weights with the strategy {}", json_quote(strategy));
}

std::optional<std::string> compressed_problem(const Json& config) {
  const auto groups = config.find("config_groups");
  if (groups == config.end() || !groups->is_object() || groups->empty())
    return "compressed-tensors without config_groups";
  for (const auto& [name, group] : groups->items()) {
    if (auto problem = group_problem(group)) return "compressed-tensors: " + *problem;
  }
  return std::nullopt;
}

/// [], [1], [1, 1] and [N, 1] as what they are.
Shape plain_shape(const Shape& shape) {
  if (shape.rank() == 0 || (shape.rank() <= 2 && shape.count() == 1)) return Shape{1};
  if (shape.rank() == 2 && shape[1] == 1) return Shape{shape[0]};
  return shape;
}

Result<DraftTensor> make_sibling(const SourceTensor& weight, const SourceTensor& scale) {
  DraftTensor out;
  out.name = weight.name + ".scale";
  out.dtype = DType::kF32;
  out.shape = plain_shape(scale.shape);
  // One square may span a whole matrix or its rows: then the shape as it stands says how.
  if (!is_scale_shape(weight.dtype, weight.shape, out.shape)) out.shape = scale.shape;
  const FormatInfo& format = format_info(scale.dtype);
  const bool is_float =
      scale.dtype == DType::kF32 || scale.dtype == DType::kF16 || scale.dtype == DType::kBf16;
  if (!is_float || !is_scale_shape(weight.dtype, weight.shape, out.shape)) {
    return fail(safetensors_error(fmt::format(
        "tensor {}: a scale {} {} for {}: want f32, f16 or bf16, one value, one a row or one for "
        "each {} x {} values",
        json_quote(scale.source_name), format.name, scale.shape.text(), weight.shape.text(),
        kScaleSquare, kScaleSquare)));
  }
  out.produce = [scale](const ByteSink& sink) -> Result<void> {
    const std::span<const std::byte> bytes = scale.bytes();
    std::vector<float> values(static_cast<std::size_t>(scale.shape.count()));
    format_info(scale.dtype).decode(bytes.data(), values.data(), values.size());
    return sink(std::as_bytes(std::span(values)));
  };
  return out;
}

bool is_fp8(DType dtype) noexcept {
  return dtype == DType::kFp8e4m3 || dtype == DType::kFp8e5m2;
}

}  // namespace

std::optional<std::string> fp8_config_problem(const Json& quantization) {
  if (!quantization.is_object()) return "it is no object";
  const std::string method = text_of(quantization, "quant_method");
  if (method == "fbgemm_fp8") return std::nullopt;
  if (method == "compressed-tensors") return compressed_problem(quantization);
  if (method == "modelopt" && text_of(quantization, "quant_algo") == "FP8") return std::nullopt;
  if (method == "fp8") {
    if (is_square(quantization, "weight_block_size")) return std::nullopt;
    return "fp8 with a weight_block_size other than [128, 128]";
  }
  return fmt::format("method {}", method.empty() ? "unnamed" : json_quote(method));
}

bool Fp8Scales::is_scale_name(std::string_view canonical) noexcept {
  const auto ends = [canonical](std::string_view suffix) { return canonical.ends_with(suffix); };
  return std::ranges::any_of(kWeightScales, ends) || std::ranges::any_of(kOtherScales, ends);
}

Result<bool> Fp8Scales::take(SourceTensor& tensor, ImportReport& report) {
  const std::string_view name = tensor.name;
  const auto ends = [name](std::string_view suffix) { return name.ends_with(suffix); };
  if (std::ranges::any_of(kOtherScales, ends)) {
    report.skipped.push_back(tensor.source_name + " (of activations, which are not rounded here)");
    return true;
  }
  const auto suffix = std::ranges::find_if(kWeightScales, ends);
  if (suffix == kWeightScales.end()) return false;
  std::string weight(name.substr(0, name.size() - suffix->size()));
  weight += ".weight";
  const std::string source = tensor.source_name;
  if (scales_.emplace(std::move(weight), std::move(tensor)).second) return true;
  return fail(safetensors_error(
      fmt::format("tensor {}: its weight has another scale too", json_quote(source))));
}

Result<std::vector<DraftTensor>> Fp8Scales::siblings(const std::vector<SourceTensor>& tensors,
                                                     bool required) const {
  std::vector<DraftTensor> out;
  for (const SourceTensor& weight : tensors) {
    const auto scale = scales_.find(weight.name);
    if (scale == scales_.end()) {
      if (!required || !is_fp8(weight.dtype)) continue;
      return fail(Error(ErrorKind::kMissingTensor, "F32",
                        fmt::format("tensor {} is of 8-bit floats and has no scale",
                                    json_quote(weight.source_name))));
    }
    if (!is_fp8(weight.dtype)) {
      return fail(safetensors_error(fmt::format("tensor {} scales {} values",
                                                json_quote(scale->second.source_name),
                                                dtype_name(weight.dtype))));
    }
    CYB_ASSIGN(DraftTensor sibling, make_sibling(weight, scale->second));
    out.push_back(std::move(sibling));
  }
  if (out.size() == scales_.size()) return out;
  for (const auto& [weight, scale] : scales_) {
    if (std::ranges::find(tensors, weight, &SourceTensor::name) != tensors.end()) continue;
    return fail(
        safetensors_error(fmt::format("tensor {} scales nothing", json_quote(scale.source_name))));
  }
  return out;
}

}  // namespace cyb::safetensors
