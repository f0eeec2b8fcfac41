// What an import understood, for people and as JSON.
#include <fmt/format.h>

#include <iterator>

#include "base/json_text.hpp"
#include "import/import.hpp"

namespace cyb {
namespace {

constexpr int kLabelWidth = 12;

std::string size_text(std::uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes >= std::uint64_t{1} << 30) return fmt::format("{:.2f} GiB", value / 0x1p30);
  if (bytes >= std::uint64_t{1} << 20) return fmt::format("{:.1f} MiB", value / 0x1p20);
  return fmt::format("{:.1f} KiB", value / 0x1p10);
}

std::string count_text(std::uint64_t count) {
  const double value = static_cast<double>(count);
  if (count >= 1'000'000'000) return fmt::format("{:.2f} B", value / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.1f} M", value / 1e6);
  return fmt::format("{}", count);
}

std::string token_text(const ReportToken& token) {
  return token.text.empty() ? fmt::format("{}", token.id)
                            : fmt::format("{} {}", token.id, json_quote(token.text));
}

std::string joined(const std::vector<ReportToken>& tokens) {
  std::string out;
  for (const ReportToken& token : tokens) out += (out.empty() ? "" : ", ") + token_text(token);
  return out.empty() ? "none" : out;
}

class Lines {
 public:
  void add(std::string_view label, std::string_view text) {
    fmt::format_to(std::back_inserter(out_), "{:<{}}{}\n", label, kLabelWidth, text);
  }
  void list(std::string_view label, const std::vector<std::string>& texts) {
    for (std::size_t i = 0; i < texts.size(); ++i) add(i == 0 ? label : "", texts[i]);
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

std::string template_text(const ReportTemplate& t) {
  if (!t.present) return "none: chat is refused, completion works";
  if (!t.problem.empty()) return fmt::format("{} bytes, not usable: {}", t.length, t.problem);
  return fmt::format("{} bytes", t.length);
}

std::string tokenizer_text(const ImportReport& r) {
  if (r.tokenizer == "none") return "none: a model of ids";
  std::string out = r.tokenizer;
  if (!r.tokenizer_pre.empty()) out += fmt::format(" ({})", r.tokenizer_pre);
  return fmt::format("{}, {} tokens, BOS {}, EOS {}", out, r.n_tokens,
                     r.add_bos ? "added" : "not added", r.add_eos ? "added" : "not added");
}

/// "B x [1, 3, H, W] f32, ..." of inputs or outputs, one line each.
std::vector<std::string> value_lines(const std::vector<ReportValue>& values) {
  std::vector<std::string> out;
  for (const ReportValue& v : values)
    out.push_back(fmt::format("{} {} {}", json_quote(v.name), v.dtype, v.shape));
  return out;
}

std::string ops_text(const ReportGraph& graph) {
  std::string out;
  for (const ReportOp& op : graph.ops)
    out += fmt::format("{}{} x{}", out.empty() ? "" : ", ", op.name, op.count);
  return out;
}

void add_graph(const ReportGraph& graph, Lines& out) {
  out.list("inputs", value_lines(graph.inputs));
  out.list("outputs", value_lines(graph.outputs));
  out.add("operators", ops_text(graph));
  out.add("graph", fmt::format("{} nodes", graph.n_nodes));
}

class JsonObject {
 public:
  void text(std::string_view key, std::string_view value) { raw(key, json_quote(value)); }
  template <class T>
  void number(std::string_view key, T value) {
    raw(key, fmt::format("{}", value));
  }
  void raw(std::string_view key, std::string_view json) {
    out_ += (out_.empty() ? "" : ",") + json_quote(key) + ":";
    out_ += json;
  }
  void texts(std::string_view key, const std::vector<std::string>& values) {
    std::string list;
    for (const std::string& value : values) list += (list.empty() ? "" : ",") + json_quote(value);
    raw(key, "[" + list + "]");
  }
  std::string take() const { return "{" + out_ + "}"; }

 private:
  std::string out_;
};

std::string token_json(const ReportToken& token) {
  JsonObject out;
  out.number("id", token.id);
  out.text("text", token.text);
  return out.take();
}

std::string values_json(const std::vector<ReportValue>& values) {
  std::string out;
  for (const ReportValue& v : values) {
    JsonObject one;
    one.text("name", v.name);
    one.text("dtype", v.dtype);
    one.text("shape", v.shape);
    out += (out.empty() ? "" : ",") + one.take();
  }
  return "[" + out + "]";
}

std::string graph_json(const ReportGraph& graph) {
  JsonObject out, ops;
  for (const ReportOp& op : graph.ops) ops.number(op.name, op.count);
  out.raw("inputs", values_json(graph.inputs));
  out.raw("outputs", values_json(graph.outputs));
  out.raw("operators", ops.take());
  out.number("nodes", graph.n_nodes);
  return out.take();
}

std::string encodings_json(const ImportReport& r) {
  std::string out;
  for (const ReportEncoding& row : r.encodings) {
    JsonObject one;
    one.text("encoding", row.name);
    one.number("tensors", row.count);
    one.number("bytes", row.bytes);
    out += (out.empty() ? "" : ",") + one.take();
  }
  return "[" + out + "]";
}

void add_sizes(const ImportReport& r, JsonObject& out) {
  out.number("parameters", r.parameters);
  out.number("tensors", r.n_tensors);
  out.number("weights_bytes", r.weights_bytes);
  out.raw("encodings", encodings_json(r));
  out.number("layers", r.n_layers);
  out.number("heads", r.n_heads);
  out.number("kv_heads", r.n_kv_heads);
  out.number("head_dim", r.head_dim);
  out.number("hidden_size", r.hidden_size);
  out.number("ffn_size", r.ffn_size);
  out.number("vocab_size", r.vocab_size);
  out.number("context", r.context_tokens);
  out.number("tied", r.tied);
  out.text("rope", r.rope);
  out.text("attention", r.attention);
}

void add_text(const ImportReport& r, JsonObject& out) {
  JsonObject tokenizer;
  tokenizer.text("type", r.tokenizer);
  tokenizer.text("pre", r.tokenizer_pre);
  tokenizer.number("tokens", r.n_tokens);
  tokenizer.number("add_bos", r.add_bos);
  tokenizer.number("add_eos", r.add_eos);
  out.raw("tokenizer", tokenizer.take());
  JsonObject chat;
  chat.number("present", r.chat_template.present);
  chat.number("bytes", r.chat_template.length);
  chat.number("usable", r.chat_template.present && r.chat_template.problem.empty());
  chat.text("problem", r.chat_template.problem);
  out.raw("template", chat.take());
  out.raw("bos", r.bos ? token_json(*r.bos) : "null");
  std::string stops;
  for (const ReportToken& token : r.stops) stops += (stops.empty() ? "" : ",") + token_json(token);
  out.raw("stops", "[" + stops + "]");
  out.text("sampling", r.sampling);
}

void add_model(const ImportReport& r, Lines& out) {
  out.add("layers", fmt::format("{} of width {}, {} heads, {} kv heads of {}, ffn {}", r.n_layers,
                                r.hidden_size, r.n_heads, r.n_kv_heads, r.head_dim, r.ffn_size));
  out.add("vocabulary",
          fmt::format("{} rows, head {}", r.vocab_size, r.tied ? "tied" : "of its own"));
  out.add("context", fmt::format("{} tokens", r.context_tokens));
  out.add("rope", r.rope);
  out.add("attention", r.attention);
  out.add("tokenizer", tokenizer_text(r));
  out.add("bos", r.bos ? token_text(*r.bos) : "none");
  out.add("stops at", joined(r.stops));
  out.add("template", template_text(r.chat_template));
  out.add("sampling", r.sampling);
}

}  // namespace

std::string report_text(const ImportReport& r) {
  Lines out;
  out.add("source", fmt::format("{} ({})", r.source, r.source_format));
  out.add("name", r.name);
  if (!r.graph)
    out.add("model", fmt::format("{}, family {}, {}", r.model_type, r.family, r.architecture));
  out.add("size", fmt::format("{} parameters, {} tensors, {}", count_text(r.parameters),
                              r.n_tensors, size_text(r.weights_bytes)));
  std::string encodings;
  for (const ReportEncoding& row : r.encodings) {
    encodings += fmt::format("{}{} x{} ({})", encodings.empty() ? "" : ", ", row.name, row.count,
                             size_text(row.bytes));
  }
  out.add("encodings", encodings);
  if (r.graph) {
    add_graph(*r.graph, out);
  } else {
    add_model(r, out);
  }
  out.list("skipped", r.skipped);
  out.list("assumed", r.assumptions);
  out.list("warning", r.warnings);
  if (r.written) out.add("model id", digest_text(r.written->model_id));
  return out.take();
}

std::string report_json(const ImportReport& r) {
  JsonObject out;
  out.text("source", r.source);
  out.text("source_format", r.source_format);
  out.text("name", r.name);
  out.text("model_type", r.model_type);
  out.text("family", r.family);
  out.text("architecture", r.architecture);
  add_sizes(r, out);
  add_text(r, out);
  if (r.graph) out.raw("graph", graph_json(*r.graph));
  out.texts("skipped", r.skipped);
  out.texts("assumptions", r.assumptions);
  out.texts("warnings", r.warnings);
  if (r.written) {
    out.text("model_id", digest_text(r.written->model_id));
    out.text("file_id", digest_text(r.written->file_id));
    out.number("file_bytes", r.written->file_bytes);
  }
  return out.take();
}

}  // namespace cyb
