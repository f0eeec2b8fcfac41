// All rows by domain and name.
#include <array>
#include <map>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

using Table = std::map<std::string_view, const OpRow*, std::less<>>;

Table collect(std::initializer_list<std::span<const OpRow>> groups) {
  Table out;
  for (const std::span<const OpRow> group : groups) {
    for (const OpRow& row : group) out.emplace(row.name, &row);
  }
  return out;
}

}  // namespace

const OpRow* find_row(std::string_view domain, std::string_view name) noexcept {
  static const Table standard = collect(
      {rows_math(), rows_layout(), rows_index(), rows_activation(), rows_reduce(), rows_linear(),
       rows_norm(), rows_conv(), rows_image(), rows_quant(), rows_signal(), rows_attention()});
  if (!domain.empty()) return nullptr;
  const auto at = standard.find(name);
  return at == standard.end() ? nullptr : at->second;
}

}  // namespace cyb::onnx
