// What the binary and the TOML form of a graph share: symbols of a file against those in memory,
// names, errors.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/graph.hpp"

namespace cyb {

/// A GraphError with one of the G codes; `what` is the text after "graph: ".
Error graph_error(std::string_view code, std::string_view what);
/// `node <id> (<op>): <what>`.
Error node_error(std::string_view code, std::uint32_t id, std::string_view op,
                 std::string_view what);
/// `unknown op tag`s of a file, all at once (G03).
class UnknownOps {
 public:
  void add(std::uint32_t id, std::string_view tag);
  bool empty() const noexcept { return count_ == 0; }
  Error error() const;

 private:
  std::size_t count_ = 0;
  std::string text_;
};

/// Row of an op that may stand in a file: blocks (fused, tag above 199) may not. Null otherwise.
const OpInfo* find_stored_op(std::uint16_t tag) noexcept;
const OpInfo* find_stored_op(std::string_view name) noexcept;

/// 1..256 bytes of UTF-8 without NUL.
bool is_graph_name(std::string_view name) noexcept;

/// The symbols of a file as dimensions in memory: B, S, P are 0, 1, 2 there, T is P + S, others
/// follow. Errors: G10 for a bad or repeated name.
struct FileSymbols {
  std::vector<std::string> names;  // of the graph in memory
  std::vector<Dim> dims;           // by the file's symbol number
};
Result<FileSymbols> read_symbols(std::vector<std::string> names);

/// Symbol list to write: the graph's, and "T" where an input has the dimension P + S.
std::vector<std::string> symbols_to_write(const Graph& graph);
/// Index into symbols_to_write of a dimension that is exactly one symbol, or P + S; -1 if it is
/// not.
std::int64_t symbol_to_write(const Dim& dim, std::span<const std::string> symbols);

}  // namespace cyb
