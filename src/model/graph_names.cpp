// Symbols, names and errors of stored graphs.
#include "model/graph_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.hpp"
#include "model/format_error.hpp"

namespace cyb {
namespace {

constexpr std::size_t kMaxUnknownShown = 32;

bool is_total(const Dim& dim) {
  return dim == Dim::symbol(kSymbolS) + Dim::symbol(kSymbolP);
}

}  // namespace

Error graph_error(std::string_view code, std::string_view what) {
  return Error(ErrorKind::kGraph, std::string(code), fmt::format("graph: {}", what));
}

Error node_error(std::string_view code, std::uint32_t id, std::string_view op,
                 std::string_view what) {
  return graph_error(code, fmt::format("node {} ({}): {}", id, op, what));
}

void UnknownOps::add(std::uint32_t id, std::string_view tag) {
  if (count_++ >= kMaxUnknownShown) return;
  text_ += fmt::format("{}node {}: unknown op tag {}", text_.empty() ? "" : "; ", id, tag);
}

Error UnknownOps::error() const {
  if (count_ <= kMaxUnknownShown) return graph_error("G03", text_);
  return graph_error("G03", fmt::format("{}; and {} more", text_, count_ - kMaxUnknownShown));
}

const OpInfo* find_stored_op(std::uint16_t tag) noexcept {
  const OpInfo* info = find_op(tag);
  return info != nullptr && info->fused && tag > 199 ? nullptr : info;
}

const OpInfo* find_stored_op(std::string_view name) noexcept {
  const OpInfo* info = find_op(name);
  return info == nullptr ? nullptr : find_stored_op(static_cast<std::uint16_t>(info->tag));
}

bool is_graph_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 256 && !name.contains('\0') &&
         utf8_find_invalid(name) == std::string_view::npos;
}

Result<FileSymbols> read_symbols(std::vector<std::string> names) {
  FileSymbols out;
  out.names = {"B", "S", "P"};
  std::vector<std::string> sorted = names;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) {
    return fail(
        graph_error("G10", fmt::format("symbol \"{}\" is declared twice", printable(*twice))));
  }
  for (std::string& name : names) {
    if (!is_graph_name(name))
      return fail(graph_error("G10", fmt::format("bad symbol name \"{}\"", printable(name))));
    if (name == "T") {
      out.dims.push_back(Dim::symbol(kSymbolS) + Dim::symbol(kSymbolP));
    } else if (name == "B" || name == "S" || name == "P") {
      out.dims.push_back(Dim::symbol(name == "B" ? kSymbolB : name == "S" ? kSymbolS : kSymbolP));
    } else {
      out.dims.push_back(Dim::symbol(static_cast<std::uint32_t>(out.names.size())));
      out.names.push_back(std::move(name));
    }
  }
  return out;
}

std::vector<std::string> symbols_to_write(const Graph& graph) {
  std::vector<std::string> out = graph.symbols;
  const bool total = std::ranges::any_of(graph.inputs, [](const GraphInput& input) {
    return std::ranges::any_of(input.spec.dims, is_total);
  });
  if (total && std::ranges::count(out, "T") == 0) out.emplace_back("T");
  return out;
}

std::int64_t symbol_to_write(const Dim& dim, std::span<const std::string> symbols) {
  if (is_total(dim)) return std::ranges::find(symbols, "T") - symbols.begin();
  const auto terms = dim.terms();
  const bool single = !dim.is_anonymous() && dim.constant() == 0 && terms.size() == 1 &&
                      terms[0].second == 1 && terms[0].first < symbols.size();
  return single ? static_cast<std::int64_t>(terms[0].first) : -1;
}

}  // namespace cyb
