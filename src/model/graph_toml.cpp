// TOML form of a graph, for people and tests. It says exactly what the binary form says. Bodies of
// If and Loop are a list of graphs after the main one; a payload field has the number of its body.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <deque>
#include <limits>

#include "base/limits.hpp"
#include "model/config.hpp"
#include "model/format_error.hpp"
#include "model/graph_names.hpp"
#include "model/toml_cursor.hpp"

namespace cyb {
namespace {

constexpr std::string_view kPart = "graph";
constexpr std::uint8_t kNoHint = 255;

// --- writing ---

/// Shortest text that reads back (as f64, then f32) to the same bits.
std::string float_text(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer{};
  char* const end = buffer.data() + buffer.size();
  std::string text(buffer.data(), std::to_chars(buffer.data(), end, value).ptr);
  double back = 0;
  std::from_chars(text.data(), text.data() + text.size(), back);
  if (static_cast<float>(back) != value) {
    text.assign(buffer.data(), std::to_chars(buffer.data(), end, static_cast<double>(value)).ptr);
  }
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

std::string bytes_text(const std::vector<std::byte>& bytes) {
  std::string out = "\"";
  for (const std::byte b : bytes) out += fmt::format("{:02x}", static_cast<unsigned>(b));
  return out + '"';
}

std::string attr_text(const AttrValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* real = std::get_if<float>(&value)) return float_text(*real);
  if (const auto* bytes = std::get_if<std::vector<std::byte>>(&value)) return bytes_text(*bytes);
  return fmt::format("[{}]", fmt::join(std::get<std::vector<std::int64_t>>(value), ", "));
}

std::string names_text(std::span<const std::string> names) {
  std::string out = "[";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i != 0) out += ", ";
    append_toml_string(out, names[i], false);
  }
  return out + "]";
}

std::string quoted(std::string_view text) {
  std::string out;
  append_toml_string(out, text, false);
  return out;
}

std::string dim_text(const Dim& dim, std::span<const std::string> symbols) {
  if (dim.is_constant()) return fmt::format("{}", dim.constant());
  const std::int64_t symbol = symbol_to_write(dim, symbols);
  return quoted(symbol < 0 ? std::string_view("?") : symbols[static_cast<std::size_t>(symbol)]);
}

/// Writes a graph and, after it, the bodies it holds, in the order of their numbers.
class Writer {
 public:
  std::string write(const Graph& graph) {
    out_ = "version = 1\n";
    table(graph, "");
    while (!bodies_.empty()) {
      const Graph body = std::move(bodies_.front());
      bodies_.pop_front();
      out_ += "\n[[graphs]]\n";
      table(body, "graphs.");
    }
    return std::move(out_);
  }

 private:
  void table(const Graph& graph, std::string_view at) {
    const std::vector<std::string> symbols = symbols_to_write(graph);
    out_ +=
        fmt::format("symbols = {}\noutputs = {}\n", names_text(symbols), names_text(graph.outputs));
    for (const GraphInput& input : graph.inputs) {
      out_ += fmt::format("\n[[{}inputs]]\nname = {}\ndtype = \"{}\"\nshape = [", at,
                          quoted(input.name), dtype_name(input.spec.dtype));
      for (std::size_t i = 0; i < input.spec.rank(); ++i) {
        if (i != 0) out_ += ", ";
        out_ += dim_text(input.spec.dims[i], symbols);
      }
      out_ += "]\n";
    }
    for (const GraphNode& node : graph.nodes) {
      const OpInfo& info = op_info(node.op.tag);
      out_ += fmt::format("\n[[{}nodes]]\nid = {}\nop = \"{}\"\n", at, node.id, info.name);
      if (node.hint != kNoHint) out_ += fmt::format("hint = {}\n", node.hint);
      out_ += fmt::format("in = {}\nout = {}\nattrs = {{", names_text(node.inputs),
                          names_text(node.outputs));
      for (std::size_t k = 0; k < info.attrs.size(); ++k) {
        const AttrValue& value = node.op.attrs.values[k];
        out_ +=
            fmt::format("{}{} = {}", k == 0 ? "" : ", ", info.attrs[k].name,
                        info.attrs[k].kind == AttrKind::kGraph ? body(value) : attr_text(value));
      }
      out_ += "}\n";
    }
  }

  /// The body's number; bytes that are no graph as this program writes it stay bytes.
  std::string body(const AttrValue& value) {
    auto graph = decode_graph(std::get<std::vector<std::byte>>(value));
    if (!graph || encode_graph(*graph) != std::get<std::vector<std::byte>>(value))
      return attr_text(value);
    bodies_.push_back(*std::move(graph));
    return std::to_string(n_bodies_++);
  }

  std::string out_;
  std::deque<Graph> bodies_;
  std::size_t n_bodies_ = 0;
};

// --- reading ---

/// Bodies by number, encoded. Each is used once, by a graph before it: they are read from the last
/// to the first, so there is no cycle and no growth.
using Bodies = std::vector<std::optional<std::vector<std::byte>>>;

class Reader {
 public:
  explicit Reader(Bodies& bodies) : bodies_(bodies) {}

  Result<Graph> graph(const ConfigTable& root) {
    CYB_ASSIGN(std::vector<std::string> names, strings(root, "symbols"));
    file_symbols_ = names;
    CYB_ASSIGN(symbols_, read_symbols(std::move(names)));
    CYB_ASSIGN(out_.outputs, strings(root, "outputs"));
    CYB_TRY(each_table(root, "inputs", [this](const ConfigTable& t) { return input(t); }));
    CYB_TRY(each_table(root, "nodes", [this](const ConfigTable& t) { return node(t); }));
    if (!unknown_.empty()) return fail(unknown_.error());
    out_.symbols = std::move(symbols_.names);
    return std::move(out_);
  }

 private:
  static Error syntax(std::string_view what) {
    return format_error("F02", fmt::format("graph: {}", what));
  }

  static Result<std::vector<std::string>> strings(const ConfigTable& table, std::string_view key) {
    auto list = table.strings_or_empty(key);
    if (!list) return fail(syntax(fmt::format("{}: want an array of strings", key)));
    return list;
  }

  template <class F>
  static Result<void> each_table(const ConfigTable& root, std::string_view key, F each) {
    const ConfigValue* list = root.find(key);
    if (list == nullptr) return {};
    if (list->array() == nullptr)
      return fail(syntax(fmt::format("{}: want an array of tables", key)));
    for (const ConfigValue& item : *list->array()) {
      if (item.table() == nullptr)
        return fail(syntax(fmt::format("{}: want an array of tables", key)));
      CYB_TRY(each(*item.table()));
    }
    return {};
  }

  static Result<std::string> text(const ConfigTable& table, std::string_view key,
                                  std::string_view where) {
    const ConfigValue* value = table.find(key);
    if (value == nullptr || value->string() == nullptr) {
      return fail(syntax(fmt::format("{}: want a string {}", where, key)));
    }
    return *value->string();
  }

  Result<Dim> dim(const ConfigValue& value, std::string_view input) const {
    const std::int64_t* constant = value.integer();
    if (constant != nullptr && *constant >= 0) return Dim(*constant);
    const std::string* name = value.string();
    if (name != nullptr && *name == "?") return Dim::anonymous();
    for (std::size_t i = 0; name != nullptr && i < file_symbols_.size(); ++i) {
      if (file_symbols_[i] == *name) return symbols_.dims[i];
    }
    const std::string shown = name != nullptr       ? printable(*name)
                              : constant != nullptr ? fmt::format("{}", *constant)
                                                    : std::string(value.type_name());
    return fail(graph_error(
        "G10", fmt::format("input \"{}\": dimension {} names no symbol", printable(input), shown)));
  }

  Result<void> input(const ConfigTable& table) {
    GraphInput in;
    const std::string where = fmt::format("inputs[{}]", out_.inputs.size());
    CYB_ASSIGN(in.name, text(table, "name", where));
    CYB_ASSIGN(const std::string dtype_text, text(table, "dtype", where));
    const auto dtype = find_dtype(dtype_text);
    if (!dtype) {
      return fail(graph_error("G09", fmt::format("input \"{}\": unknown dtype {}",
                                                 printable(in.name), printable(dtype_text, 32))));
    }
    in.spec.dtype = *dtype;
    const ConfigValue* shape = table.find("shape");
    if (shape == nullptr || shape->array() == nullptr) {
      return fail(syntax(fmt::format("{}: want an array shape", where)));
    }
    if (shape->array()->size() > kMaxGraphRank) {
      return fail(graph_error("G10", fmt::format("input \"{}\": rank {} > 8", printable(in.name),
                                                 shape->array()->size())));
    }
    for (const ConfigValue& value : *shape->array()) {
      CYB_ASSIGN(Dim parsed, dim(value, in.name));
      in.spec.dims.push_back(std::move(parsed));
    }
    out_.inputs.push_back(std::move(in));
    return {};
  }

  static Result<std::int64_t> integer(const ConfigTable& table, std::string_view key,
                                      std::int64_t fallback, std::int64_t max,
                                      std::string_view where) {
    const ConfigValue* value = table.find(key);
    if (value == nullptr) return fallback;
    const std::int64_t* number = value->integer();
    if (number == nullptr || *number < 0 || *number > max) {
      return fail(syntax(fmt::format("{}: want an integer {} in 0..{}", where, key, max)));
    }
    return *number;
  }

  Result<void> node(const ConfigTable& table) {
    GraphNode out;
    const std::string where = fmt::format("nodes[{}]", out_.nodes.size());
    if (table.find("id") == nullptr)
      return fail(syntax(fmt::format("{}: want an integer id", where)));
    CYB_ASSIGN(const std::int64_t id,
               integer(table, "id", 0, std::numeric_limits<std::uint32_t>::max(), where));
    out.id = static_cast<std::uint32_t>(id);
    CYB_ASSIGN(const std::string name, text(table, "op", where));
    CYB_ASSIGN(const std::int64_t hint, integer(table, "hint", kNoHint, kNoHint, where));
    out.hint = static_cast<std::uint8_t>(hint);
    const OpInfo* info = find_stored_op(name);
    if (info == nullptr) {
      unknown_.add(out.id, printable(name, 32));
      return {};
    }
    if (hint > 3 && hint != kNoHint) {
      return fail(node_error("G04", out.id, info->name, "bad payload: hint"));
    }
    CYB_ASSIGN(out.op, op(out.id, *info, table.find_table("attrs")));
    CYB_ASSIGN(out.inputs, strings(table, "in"));
    CYB_ASSIGN(out.outputs, strings(table, "out"));
    out_.nodes.push_back(std::move(out));
    return {};
  }

  Result<Op> op(std::uint32_t id, const OpInfo& info, const ConfigTable* attrs) {
    static const ConfigTable kNone;
    if (attrs == nullptr) attrs = &kNone;
    Op out{info.tag, {}};
    for (const AttrSpec& spec : info.attrs) {
      const ConfigValue* value = attrs->find(spec.name);
      auto read = value == nullptr ? std::nullopt : attr(spec.kind, *value);
      if (!read)
        return fail(node_error("G04", id, info.name, fmt::format("bad payload: {}", spec.name)));
      out.attrs.values.push_back(*std::move(read));
    }
    if (attrs->items().size() != info.attrs.size()) {
      return fail(node_error("G04", id, info.name, "bad payload: length"));
    }
    // Ranges of the kinds (u8, u32 ...): what the binary form cannot even hold.
    if (const auto fits = check_attr_kinds(out); !fits) {
      return fail(node_error("G04", id, info.name, fits.error().message()));
    }
    return out;
  }

  // NOLINTBEGIN(misc-no-recursion): body() asks attr() for plain bytes only.
  std::optional<AttrValue> body(const ConfigValue& value) {
    if (value.integer() == nullptr) return attr(AttrKind::kBytes, value);
    const auto number = static_cast<std::uint64_t>(*value.integer());
    if (number >= bodies_.size() || !bodies_[number]) return std::nullopt;
    std::vector<std::byte> bytes = *std::move(bodies_[number]);
    bodies_[number].reset();
    return AttrValue(std::move(bytes));
  }

  std::optional<AttrValue> attr(AttrKind kind, const ConfigValue& value) {
    switch (kind) {
      case AttrKind::kGraph:
        return body(value);
      case AttrKind::kF32: {
        const auto number = value.number();
        return number ? std::optional<AttrValue>(static_cast<float>(*number)) : std::nullopt;
      }
      case AttrKind::kBytes: {
        if (value.string() == nullptr) return std::nullopt;
        auto bytes = graph_from_hex(*value.string());
        return bytes ? std::optional<AttrValue>(*std::move(bytes)) : std::nullopt;
      }
      case AttrKind::kU32List:
      case AttrKind::kI32List:
      case AttrKind::kI64List: {
        if (value.array() == nullptr) return std::nullopt;
        std::vector<std::int64_t> list;
        for (const ConfigValue& item : *value.array()) {
          if (item.integer() == nullptr) return std::nullopt;
          list.push_back(*item.integer());
        }
        return AttrValue(std::move(list));
      }
      default: {
        const std::int64_t* number = value.integer();
        return number == nullptr ? std::nullopt : std::optional<AttrValue>(*number);
      }
    }
  }
  // NOLINTEND(misc-no-recursion)

  Bodies& bodies_;
  Graph out_;
  std::vector<std::string> file_symbols_;
  FileSymbols symbols_;
  UnknownOps unknown_;
};

}  // namespace

std::string write_graph_toml(const Graph& graph) {
  return Writer().write(graph);
}

Result<Graph> parse_graph_toml(std::string_view text) {
  CYB_ASSIGN(const ConfigTable root, parse_toml(text, kPart));
  const ConfigValue* version = root.find("version");
  if (version == nullptr || version->integer() == nullptr || *version->integer() != 1) {
    return fail(graph_error("G01", "not a CYIR v1 graph"));
  }
  Bodies bodies;
  const ConfigValue* list = root.find("graphs");
  if (list != nullptr && list->array() == nullptr)
    return fail(format_error("F02", "graph: graphs: want an array of tables"));
  const std::size_t n = list == nullptr ? 0 : list->array()->size();
  bodies.resize(n);
  for (std::size_t i = n; i-- > 0;) {
    const ConfigTable* table = (*list->array())[i].table();
    if (table == nullptr)
      return fail(format_error("F02", "graph: graphs: want an array of tables"));
    CYB_ASSIGN(const Graph body, Reader(bodies).graph(*table));
    bodies[i] = encode_graph(body);
  }
  CYB_ASSIGN(Graph out, Reader(bodies).graph(root));
  for (std::size_t i = 0; i < n; ++i) {
    if (bodies[i]) return fail(graph_error("G04", fmt::format("graphs[{}] is used by no node", i)));
  }
  return out;
}

}  // namespace cyb
