// Drawing a picture: SVG 1.1 without scripts, fonts or links, and Graphviz text.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "model/graph_boxes.hpp"
#include "model/graph_layout.hpp"

namespace cyb {
namespace {

constexpr double kCharWidth = 7.3, kLineHeight = 17, kPadding = 8, kTitle = 30;

/// Columns of UTF-8 text, one a code point.
std::size_t columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

/// Colour by what an op does: products stand out, layout recedes.
std::string_view css_class(std::string_view op) {
  const auto any = [&](std::initializer_list<std::string_view> names) {
    return std::ranges::any_of(names, [&](std::string_view n) { return op.contains(n); });
  };
  if (any({"Conv", "Matmul", "Gemm", "Lstm", "Gru", "Rnn", "Embed", "Einsum"})) return "p";
  if (any({"Sdpa", "Attention", "Softmax", "KvCache", "Rope", "Scan"})) return "a";
  if (any({"Norm"})) return "n";
  if (any({"Reshape", "Transpose", "Permute", "Concat", "Slice", "Split", "Gather", "Expand",
           "Shape", "Squeeze", "Pad", "Cast", "Flatten", "Identity", "Tile", "Range", "Constant"}))
    return "l";
  return "e";
}

constexpr std::string_view kStyle =
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#222}"
    ".d{fill:#666}.t{font-size:15px;font-weight:bold}"
    "rect{stroke:#99a;fill:#fff;rx:4}.i{fill:#e8f0fe;stroke:#4a76c9}.o{fill:#e6f4ea;stroke:#3c8f5a}"
    ".p{fill:#b3441e;font-weight:bold}.a{fill:#6a3fb5;font-weight:bold}.n{fill:#1f7a5c}"
    ".l{fill:#777}.e{fill:#222}"
    "path{fill:none;stroke:#8899aa;stroke-width:1.2}";

LayoutBox measured(const PictureBox& box) {
  std::size_t widest = 4;
  for (const PictureLine& line : box.lines)
    widest = std::max(widest, columns(line.op) + 1 + columns(line.detail));
  return {static_cast<double>(widest) * kCharWidth + 2 * kPadding,
          static_cast<double>(box.lines.size()) * kLineHeight + 2 * kPadding, 0, 0};
}

void draw_edge(std::string& out, const LayoutEdge& edge) {
  const auto& p = edge.points;
  out += fmt::format("<path d=\"M{:.1f} {:.1f}", p[0].first, p[0].second);
  for (std::size_t k = 1; k < p.size(); ++k) {
    const bool straight = p[k].first == p[k - 1].first;
    if (straight) {
      out += fmt::format("V{:.1f}", p[k].second);
      continue;
    }
    const double middle = (p[k].second + p[k - 1].second) / 2;
    out += fmt::format("C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", p[k - 1].first, middle,
                       p[k].first, middle, p[k].first, p[k].second);
  }
  out += "\" marker-end=\"url(#m)\"/>\n";
}

void draw_box(std::string& out, const PictureBox& box, const LayoutBox& at) {
  const std::string_view kind = box.kind == BoxKind::kInput    ? " class=\"i\""
                                : box.kind == BoxKind::kOutput ? " class=\"o\""
                                                               : "";
  out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"{}/>\n",
                     at.x, at.y, at.width, at.height, kind);
  double y = at.y + kPadding + kLineHeight - 5;
  for (const PictureLine& line : box.lines) {
    const std::string_view css = box.kind == BoxKind::kNodes ? css_class(line.op) : "e";
    out += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\"><tspan class=\"{}\">{}</tspan> <tspan "
        "class=\"d\">{}</tspan>"
        "</text>\n",
        at.x + kPadding, y, css, escaped(line.op), escaped(line.detail));
    y += kLineHeight;
  }
}

std::string dot_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

}  // namespace

std::string write_graph_svg(const Picture& picture, std::string_view title) {
  std::vector<LayoutBox> boxes;
  std::vector<LayoutEdge> edges;
  for (const PictureBox& box : picture.boxes) boxes.push_back(measured(box));
  for (const PictureEdge& edge : picture.edges) edges.push_back({edge.from, edge.to});
  const LayoutSize size = layout_layers(boxes, edges);
  const double width = std::max(size.width, static_cast<double>(columns(title)) * 9.5 + 40);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 {:.0f} {:.0f} {:.0f}\" "
      "width=\"{:.0f}\" "
      "height=\"{:.0f}\">\n<title>{}</title>\n<style>{}</style>\n"
      "<defs><marker id=\"m\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
      "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" "
      "style=\"fill:#8899aa;stroke:none\"/>"
      "</marker></defs>\n",
      -kTitle, width, size.height + kTitle, width, size.height + kTitle, escaped(title), kStyle);
  out += fmt::format("<text class=\"t\" x=\"20\" y=\"-8\">{}</text>\n", escaped(title));
  for (const LayoutEdge& edge : edges) draw_edge(out, edge);
  for (std::size_t i = 0; i < boxes.size(); ++i) draw_box(out, picture.boxes[i], boxes[i]);
  return out + "</svg>\n";
}

std::string write_graph_dot(const Picture& picture, std::string_view title) {
  std::string out =
      fmt::format("digraph model {{\n  label={};\n  node [shape=box, fontname=monospace];\n",
                  dot_quoted(title));
  for (std::size_t i = 0; i < picture.boxes.size(); ++i) {
    std::string label;
    for (const PictureLine& line : picture.boxes[i].lines) {
      const std::string text = dot_quoted(line.op + " " + line.detail);
      label += text.substr(1, text.size() - 2) + "\\l";
    }
    out += fmt::format("  n{} [label=\"{}\"{}];\n", i, label,
                       picture.boxes[i].kind == BoxKind::kNodes ? "" : ", style=rounded");
  }
  for (const PictureEdge& edge : picture.edges)
    out += fmt::format("  n{} -> n{} [label={}];\n", edge.from, edge.to, dot_quoted(edge.text));
  return out + "}\n";
}

}  // namespace cyb
