// The weight stands after the last `=`.
#include "api/adapter_source.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/json_text.hpp"
#include "import/lora/lora_import.hpp"

namespace cyb::api {
namespace {

bool exists(std::string_view path) {
  std::error_code code;
  return std::filesystem::exists(std::filesystem::path(path), code);
}

std::optional<double> number(std::string_view text) noexcept {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

}  // namespace

Result<AdapterName> adapter_name(std::string_view text) {
  const std::size_t equals = text.rfind('=');
  if (text.empty()) return fail(invalid_input("an adapter's path is empty"));
  if (equals == std::string_view::npos || exists(text)) return AdapterName{std::string(text)};
  const std::string_view path = text.substr(0, equals), weight = text.substr(equals + 1);
  const auto value = number(weight);
  if (path.empty() || (!value && exists(path))) {
    return fail(invalid_input(fmt::format("adapter {}: the weight {} is no number",
                                          json_quote(text), json_quote(weight))));
  }
  if (!value) return AdapterName{std::string(text)};  // opening it says that it is not there
  return AdapterName{std::string(path), *value};
}

Result<std::vector<LoraUse>> read_adapters(std::span<const AdapterName> names, const Model& model) {
  std::vector<LoraUse> out;
  for (const AdapterName& name : names) {
    CYB_ASSIGN(std::shared_ptr<const LoraAdapter> adapter, read_adapter(name.path, model));
    out.push_back({std::move(adapter), name.weight});
  }
  return out;
}

}  // namespace cyb::api
