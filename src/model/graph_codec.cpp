// Binary form of a graph (docs/ir.md, "Binary layout"). Decoding walks the lengths first, then the
// checksum, then the content: a cut, a flipped bit and an unknown op each give their own error.
#include <fmt/format.h>

#include <cstring>

#include "base/hash.hpp"
#include "base/limits.hpp"
#include "base/reader.hpp"
#include "model/format_error.hpp"
#include "model/graph_names.hpp"

namespace cyb {
namespace {

// Magic, u16 version = 1, u16 flags = 0.
constexpr std::string_view kStart("CYIR\x01\x00\x00\x00", 8);
constexpr std::uint8_t kNoHint = 255;
constexpr std::int64_t kAnonymousDim = -1;
constexpr std::size_t kTrailerBytes = 4;
constexpr std::size_t kMinNodeBytes = 20;

class Encoder {
 public:
  std::vector<std::byte> out;

  template <class T>
  void put(T value) {
    const auto raw = std::as_bytes(std::span(&value, 1));
    out.insert(out.end(), raw.begin(), raw.end());
  }
  void raw(std::span<const std::byte> bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }
  void text(std::string_view value) {
    put(static_cast<std::uint32_t>(value.size()));
    raw(std::as_bytes(std::span(value)));
  }
  template <class T>
  void list(const AttrValue& value) {
    const auto& items = std::get<std::vector<std::int64_t>>(value);
    put(static_cast<std::uint32_t>(items.size()));
    for (const std::int64_t item : items) put(static_cast<T>(item));
  }

  void attr(AttrKind kind, const AttrValue& value) {
    const auto* integer = std::get_if<std::int64_t>(&value);
    switch (kind) {
      case AttrKind::kU8:
        return put(static_cast<std::uint8_t>(*integer));
      case AttrKind::kU32:
        return put(static_cast<std::uint32_t>(*integer));
      case AttrKind::kI32:
        return put(static_cast<std::int32_t>(*integer));
      case AttrKind::kU64:
      case AttrKind::kI64:
        return put(*integer);
      case AttrKind::kF32:
        return put(std::get<float>(value));
      case AttrKind::kU32List:
        return list<std::uint32_t>(value);
      case AttrKind::kI32List:
        return list<std::int32_t>(value);
      case AttrKind::kI64List:
        return list<std::int64_t>(value);
      case AttrKind::kBytes:
      case AttrKind::kGraph: {
        const auto& bytes = std::get<std::vector<std::byte>>(value);
        put(static_cast<std::uint32_t>(bytes.size()));
        return raw(bytes);
      }
    }
  }

  void node(const GraphNode& node) {
    put(node.id);
    put(static_cast<std::uint16_t>(node.op.tag));
    put(node.hint);
    put(std::uint8_t{0});
    Encoder payload;
    const OpInfo& info = op_info(node.op.tag);
    for (std::size_t k = 0; k < info.attrs.size(); ++k) {
      payload.attr(info.attrs[k].kind, node.op.attrs.values[k]);
    }
    put(static_cast<std::uint32_t>(payload.out.size()));
    raw(payload.out);
    put(static_cast<std::uint32_t>(node.inputs.size()));
    for (const std::string& name : node.inputs) text(name);
    put(static_cast<std::uint32_t>(node.outputs.size()));
    for (const std::string& name : node.outputs) text(name);
  }
};

std::int64_t encode_dim(const Dim& dim, std::span<const std::string> symbols) {
  if (dim.is_constant()) return dim.constant();
  const std::int64_t symbol = symbol_to_write(dim, symbols);
  return symbol < 0 ? kAnonymousDim : -(symbol + 2);
}

struct Counts {
  std::uint32_t symbols = 0, inputs = 0, outputs = 0, nodes = 0;
};

/// One reader over the body (all but the trailer); every failure is G02 with its place.
class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> body) : reader_(body) {}

  Result<Counts> header() {
    const auto start = reader_.take_text(kStart.size());
    if (!start || *start != kStart) return fail(graph_error("G01", "not a CYIR v1 graph"));
    Counts counts;
    CYB_ASSIGN(counts.symbols, number<std::uint32_t>());
    CYB_ASSIGN(counts.inputs, number<std::uint32_t>());
    CYB_ASSIGN(counts.outputs, number<std::uint32_t>());
    CYB_ASSIGN(counts.nodes, number<std::uint32_t>());
    const bool fits = reader_.can_hold(counts.symbols, 4) && reader_.can_hold(counts.inputs, 9) &&
                      reader_.can_hold(counts.outputs, 4) &&
                      reader_.can_hold(counts.nodes, kMinNodeBytes);
    if (!fits) return fail(truncated());
    if (counts.nodes > kMaxGraphNodes) {
      return fail(graph_error(
          "G02", fmt::format("{} nodes, the limit is {}", counts.nodes, kMaxGraphNodes)));
    }
    return counts;
  }

  /// Walks lengths only.
  Result<void> skim(const Counts& counts, UnknownOps& unknown) {
    CYB_TRY(skip_names(counts.symbols));
    for (std::uint32_t i = 0; i < counts.inputs; ++i) {
      CYB_TRY(skip_names(1));
      CYB_TRY(number<std::uint8_t>());
      CYB_ASSIGN(const std::uint32_t rank, number<std::uint32_t>());
      CYB_TRY(skip(std::uint64_t{rank} * 8));
    }
    CYB_TRY(skip_names(counts.outputs));
    for (std::uint32_t i = 0; i < counts.nodes; ++i) {
      CYB_ASSIGN(const std::uint32_t id, number<std::uint32_t>());
      CYB_ASSIGN(const std::uint16_t tag, number<std::uint16_t>());
      if (find_stored_op(tag) == nullptr) unknown.add(id, std::to_string(tag));
      CYB_TRY(skip(2));
      CYB_ASSIGN(const std::uint32_t payload, number<std::uint32_t>());
      CYB_TRY(skip(payload));
      for (int list = 0; list < 2; ++list) {
        CYB_ASSIGN(const std::uint32_t names, number<std::uint32_t>());
        CYB_TRY(skip_names(names));
      }
    }
    if (reader_.remaining() != 0) {
      return fail(
          graph_error("G02", fmt::format("{} bytes after the last node", reader_.remaining())));
    }
    return {};
  }

  template <class T>
  Result<T> number() {
    auto value = reader_.read<T>();
    if (!value) return fail(truncated());
    return *value;
  }
  Result<std::span<const std::byte>> take(std::uint64_t size) {
    auto bytes = reader_.take(size);
    if (!bytes) return fail(truncated());
    return *bytes;
  }
  Result<std::string> text() {
    CYB_ASSIGN(const std::uint32_t size, number<std::uint32_t>());
    CYB_ASSIGN(const std::span<const std::byte> bytes, take(size));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  Result<std::vector<std::string>> texts() {
    CYB_ASSIGN(const std::uint32_t count, number<std::uint32_t>());
    return texts(count);
  }
  Result<std::vector<std::string>> texts(std::uint32_t count) {
    if (!reader_.can_hold(count, 4)) return fail(truncated());
    std::vector<std::string> out;
    for (std::uint32_t i = 0; i < count; ++i) {
      CYB_ASSIGN(std::string name, text());
      out.push_back(std::move(name));
    }
    return out;
  }
  bool can_hold(std::uint64_t count, std::uint64_t size) const {
    return reader_.can_hold(count, size);
  }
  std::uint64_t remaining() const { return reader_.remaining(); }

 private:
  Error truncated() const {
    return graph_error(
        "G02", fmt::format("truncated at byte {}", reader_.position() + reader_.remaining()));
  }
  Result<void> skip(std::uint64_t size) {
    CYB_TRY(take(size));
    return {};
  }
  Result<void> skip_names(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      CYB_ASSIGN(const std::uint32_t size, number<std::uint32_t>());
      CYB_TRY(skip(size));
    }
    return {};
  }

  BoundedReader reader_;
};

template <class T>
Result<std::vector<std::int64_t>> number_list(Decoder& in) {
  CYB_ASSIGN(const std::uint32_t count, in.number<std::uint32_t>());
  std::vector<std::int64_t> out;
  if (!in.can_hold(count, sizeof(T))) return fail(graph_error("G04", "list"));
  out.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    CYB_ASSIGN(const T value, in.number<T>());
    out.push_back(static_cast<std::int64_t>(value));
  }
  return out;
}

template <class T>
Result<AttrValue> integer_attr(Decoder& in) {
  CYB_ASSIGN(const T value, in.number<T>());
  return AttrValue(static_cast<std::int64_t>(value));
}

template <class T>
Result<AttrValue> list_attr(Decoder& in) {
  CYB_ASSIGN(std::vector<std::int64_t> values, number_list<T>(in));
  return AttrValue(std::move(values));
}

Result<AttrValue> read_attr(Decoder& in, AttrKind kind) {
  switch (kind) {
    case AttrKind::kU8:
      return integer_attr<std::uint8_t>(in);
    case AttrKind::kU32:
      return integer_attr<std::uint32_t>(in);
    case AttrKind::kI32:
      return integer_attr<std::int32_t>(in);
    case AttrKind::kU64:
    case AttrKind::kI64:
      return integer_attr<std::int64_t>(in);
    case AttrKind::kU32List:
      return list_attr<std::uint32_t>(in);
    case AttrKind::kI32List:
      return list_attr<std::int32_t>(in);
    case AttrKind::kI64List:
      return list_attr<std::int64_t>(in);
    case AttrKind::kF32: {
      CYB_ASSIGN(const float value, in.number<float>());
      return AttrValue(value);
    }
    case AttrKind::kBytes:
    case AttrKind::kGraph: {
      CYB_ASSIGN(const std::uint32_t size, in.number<std::uint32_t>());
      CYB_ASSIGN(const std::span<const std::byte> bytes, in.take(size));
      return AttrValue(std::vector<std::byte>(bytes.begin(), bytes.end()));
    }
  }
  return fail(internal_error("attribute kind"));
}

Result<Op> read_op(std::uint32_t id, const OpInfo& info, std::span<const std::byte> payload) {
  Decoder in(payload);
  Op op{info.tag, {}};
  for (const AttrSpec& spec : info.attrs) {
    auto value = read_attr(in, spec.kind);
    if (!value)
      return fail(node_error("G04", id, info.name, fmt::format("bad payload: {}", spec.name)));
    op.attrs.values.push_back(*std::move(value));
  }
  if (in.remaining() != 0) return fail(node_error("G04", id, info.name, "bad payload: length"));
  return op;
}

Result<GraphInput> read_input(Decoder& in, const FileSymbols& symbols) {
  GraphInput out;
  CYB_ASSIGN(out.name, in.text());
  CYB_ASSIGN(const std::uint8_t tag, in.number<std::uint8_t>());
  CYB_ASSIGN(const std::uint32_t rank, in.number<std::uint32_t>());
  const std::string shown = printable(out.name);
  const auto dtype = dtype_from_tag(tag);
  if (!dtype)
    return fail(graph_error("G09", fmt::format("input \"{}\": unknown dtype tag {}", shown, tag)));
  if (rank > kMaxGraphRank)
    return fail(graph_error("G10", fmt::format("input \"{}\": rank {} > 8", shown, rank)));
  out.spec.dtype = *dtype;
  for (std::uint32_t i = 0; i < rank; ++i) {
    CYB_ASSIGN(const std::int64_t dim, in.number<std::int64_t>());
    // -2 is the first symbol, -3 the next. Unsigned: a file may hold any 64 bits.
    const std::uint64_t symbol = std::uint64_t{0} - 2 - static_cast<std::uint64_t>(dim);
    if (dim >= 0) {
      out.spec.dims.emplace_back(dim);
    } else if (dim == kAnonymousDim) {
      out.spec.dims.push_back(Dim::anonymous());
    } else if (symbol < symbols.dims.size()) {
      out.spec.dims.push_back(symbols.dims[static_cast<std::size_t>(symbol)]);
    } else {
      return fail(graph_error(
          "G10", fmt::format("input \"{}\": dimension {} names no symbol", shown, dim)));
    }
  }
  return out;
}

Result<GraphNode> read_node(Decoder& in) {
  GraphNode out;
  CYB_ASSIGN(out.id, in.number<std::uint32_t>());
  CYB_ASSIGN(const std::uint16_t tag, in.number<std::uint16_t>());
  CYB_ASSIGN(out.hint, in.number<std::uint8_t>());
  CYB_ASSIGN(const std::uint8_t zero, in.number<std::uint8_t>());
  CYB_ASSIGN(const std::uint32_t size, in.number<std::uint32_t>());
  CYB_ASSIGN(const std::span<const std::byte> payload, in.take(size));
  const OpInfo& info = *find_stored_op(tag);  // skim reported unknown ones
  if (out.hint > 3 && out.hint != kNoHint)
    return fail(node_error("G04", out.id, info.name, "bad payload: hint"));
  if (zero != 0) return fail(node_error("G04", out.id, info.name, "bad payload: zero"));
  CYB_ASSIGN(out.op, read_op(out.id, info, payload));
  CYB_ASSIGN(out.inputs, in.texts());
  CYB_ASSIGN(out.outputs, in.texts());
  return out;
}

}  // namespace

std::vector<std::byte> encode_graph(const Graph& graph) {
  const std::vector<std::string> symbols = symbols_to_write(graph);
  Encoder out;
  out.raw(std::as_bytes(std::span(kStart)));
  out.put(static_cast<std::uint32_t>(symbols.size()));
  out.put(static_cast<std::uint32_t>(graph.inputs.size()));
  out.put(static_cast<std::uint32_t>(graph.outputs.size()));
  out.put(static_cast<std::uint32_t>(graph.nodes.size()));
  for (const std::string& symbol : symbols) out.text(symbol);
  for (const GraphInput& input : graph.inputs) {
    out.text(input.name);
    out.put(static_cast<std::uint8_t>(input.spec.dtype));
    out.put(static_cast<std::uint32_t>(input.spec.rank()));
    for (const Dim& dim : input.spec.dims) out.put(encode_dim(dim, symbols));
  }
  for (const std::string& name : graph.outputs) out.text(name);
  for (const GraphNode& node : graph.nodes) out.node(node);
  out.put(crc32c(out.out));
  return std::move(out.out);
}

Result<Graph> decode_graph(std::span<const std::byte> bytes) {
  const std::size_t body_size =
      bytes.size() < kTrailerBytes ? bytes.size() : bytes.size() - kTrailerBytes;
  const std::span<const std::byte> body = bytes.first(body_size);
  UnknownOps unknown;
  Decoder skimmer(body);
  CYB_ASSIGN(const Counts counts, skimmer.header());
  CYB_TRY(skimmer.skim(counts, unknown));
  std::uint32_t stated = 0;
  std::memcpy(&stated, bytes.data() + body_size, kTrailerBytes);
  if (crc32c(body) != stated) return fail(graph_error("G02", "checksum mismatch"));
  if (!unknown.empty()) return fail(unknown.error());

  Decoder in(body);
  CYB_TRY(in.header());
  Graph out;
  CYB_ASSIGN(std::vector<std::string> names, in.texts(counts.symbols));
  CYB_ASSIGN(FileSymbols symbols, read_symbols(std::move(names)));
  for (std::uint32_t i = 0; i < counts.inputs; ++i) {
    CYB_ASSIGN(GraphInput input, read_input(in, symbols));
    out.inputs.push_back(std::move(input));
  }
  CYB_ASSIGN(out.outputs, in.texts(counts.outputs));
  for (std::uint32_t i = 0; i < counts.nodes; ++i) {
    CYB_ASSIGN(GraphNode node, read_node(in));
    out.nodes.push_back(std::move(node));
  }
  out.symbols = std::move(symbols.names);
  return out;
}

}  // namespace cyb
