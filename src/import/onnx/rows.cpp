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
  static const Table standard =
      collect({rows_math(), rows_layout(), rows_index(), rows_activation(), rows_reduce(),
               rows_linear(), rows_norm(), rows_conv(), rows_image(), rows_quant(), rows_signal(),
               rows_attention(), rows_recurrent(), rows_random()});
  static const Table contrib = collect({rows_contrib(), rows_contrib_attention()});
  const Table* table = domain.empty() ? &standard : domain == "com.microsoft" ? &contrib : nullptr;
  if (table == nullptr) return nullptr;
  const auto at = table->find(name);
  if (at != table->end()) return at->second;
  // onnxruntime puts this one into the standard domain, which has no such name.
  if (domain.empty() && name == "SimplifiedLayerNormalization") return contrib.at(name);
  return nullptr;
}

}  // namespace cyb::onnx
