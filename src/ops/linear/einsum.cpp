// Einsum (tag 409): NumPy's notation, with ellipsis, repeated labels and implicit output. Products
// are summed in the reference order over the contracted labels (in order of first appearance).
#include <algorithm>
#include <string>
#include <string_view>

#include "ops/op_impl.hpp"
#include "ops/rules.hpp"
#include "ops/typed.hpp"

namespace cyb {
namespace {

using rules::Specs;

constexpr std::array kAttrs = {AttrSpec{"equation", AttrKind::kBytes}};
constexpr std::size_t kMaxLabels = 8;  // of the result and of the sum, each

/// Labels as characters; the dimensions of an ellipsis are '0'.. '7', '7' the last.
struct Equation {
  std::vector<std::string> inputs;
  std::string output;
  std::string summed;
};

bool is_label(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// One term with its ellipsis (if any) replaced by `ellipsis_rank` labels.
bool expand(std::string_view term, std::size_t ellipsis_rank, std::string& out) {
  const std::size_t dots = term.find("...");
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      for (std::size_t k = 0; k < ellipsis_rank; ++k)
        out += static_cast<char>('0' + 8 - ellipsis_rank + k);
      i += 2;
    } else if (is_label(term[i])) {
      out += term[i];
    } else {
      return false;
    }
  }
  return true;
}

void sum_the_rest(Equation& e) {
  for (const std::string& labels : e.inputs) {
    for (const char c : labels) {
      if (!e.output.contains(c) && !e.summed.contains(c)) e.summed += c;
    }
  }
}

std::string implicit_output(const std::vector<std::string>& inputs) {
  std::string all, out;
  for (const std::string& labels : inputs) all += labels;
  std::string sorted = all;
  std::ranges::sort(sorted);
  for (const char c : sorted) {
    const bool ellipsis = !is_label(c);
    if (!out.contains(c) && (ellipsis || std::ranges::count(all, c) == 1)) out += c;
  }
  return out;  // digits sort first
}

std::optional<Equation> parse(const std::vector<std::byte>& bytes,
                              std::span<const std::size_t> ranks) {
  std::string text;
  for (const std::byte b : bytes) {
    if (static_cast<char>(b) != ' ') text += static_cast<char>(b);
  }
  const std::size_t arrow = text.find("->");
  std::string_view left = std::string_view(text).substr(0, arrow);
  Equation e;
  std::size_t widest = 0;
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    const std::size_t comma = left.find(',');
    if ((comma == std::string_view::npos) != (k + 1 == ranks.size())) return std::nullopt;
    const std::string_view term = left.substr(0, comma);
    left = comma == std::string_view::npos ? std::string_view{} : left.substr(comma + 1);
    const bool dots = term.contains("...");
    const std::size_t named = term.size() - (dots ? 3 : 0);
    if (named > ranks[k] || (!dots && named != ranks[k])) return std::nullopt;
    widest = std::max(widest, ranks[k] - named);
    e.inputs.emplace_back();
    if (!expand(term, ranks[k] - named, e.inputs.back())) return std::nullopt;
  }
  if (arrow == std::string::npos) {
    e.output = implicit_output(e.inputs);
  } else if (!expand(std::string_view(text).substr(arrow + 2), widest, e.output)) {
    return std::nullopt;
  }
  sum_the_rest(e);
  for (const char c : e.output) {
    const bool known =
        std::ranges::any_of(e.inputs, [c](const std::string& in) { return in.contains(c); });
    if (!known || std::ranges::count(e.output, c) != 1) return std::nullopt;
  }
  if (e.output.size() > kMaxLabels || e.summed.size() > kMaxLabels) return std::nullopt;
  return e;
}

Result<std::vector<TensorSpec>> infer_einsum(const Attrs& attrs, Specs in) {
  CYB_TRY(rules::want_number(in, 0));
  CYB_TRY(rules::want_same_dtype(in));
  std::vector<std::size_t> ranks;
  for (const TensorSpec& spec : in) ranks.push_back(spec.rank());
  const auto equation = parse(attrs.bytes(0), ranks);
  if (!equation) return fail(rules::bad_payload("equation"));
  std::array<std::optional<Dim>, 128> dims;
  for (std::size_t k = 0; k < in.size(); ++k) {
    for (std::size_t i = 0; i < in[k].rank(); ++i) {
      const auto c = static_cast<unsigned char>(equation->inputs[k][i]);
      const Dim& dim = in[k].dims[i];
      const bool takes = !dims[c] || *dims[c] == Dim(1);
      const auto merged = takes           ? std::optional(dim)
                          : dim == Dim(1) ? dims[c]
                                          : rules::merge(*dims[c], dim);
      if (!merged)
        return fail(rules::bad_shape(dims_text(in[k].dims), "dimensions that fit the equation"));
      dims[c] = merged;
    }
  }
  std::vector<Dim> out;
  for (const char c : equation->output) out.push_back(*dims[static_cast<unsigned char>(c)]);
  return rules::one(in[0].dtype, std::move(out));
}

/// Element strides of one operand along given labels; a dimension of 1 broadcasts.
ref::Strides label_strides(const std::string& labels, const Shape& shape,
                           const std::string& along) {
  ref::Strides out{};
  const ref::Strides own = ref::strides_of(shape);
  for (std::size_t k = 0; k < along.size(); ++k) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == along[k] && shape[i] != 1) out[k] += own[i];
    }
  }
  return out;
}

Shape label_shape(const Equation& e, const RefCall& call, const std::string& along) {
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  dims.fill(1);
  for (std::size_t k = 0; k < along.size(); ++k) {
    for (std::size_t in = 0; in < e.inputs.size(); ++in) {
      const std::size_t at = e.inputs[in].find(along[k]);
      if (at != std::string::npos && call.inputs[in].shape[at] != 1)
        dims[k] = call.inputs[in].shape[at];
    }
  }
  return Shape(std::span(dims.data(), along.size()));
}

template <class C>
Result<void> evaluate(const RefCall& call, const Equation& e) {
  std::vector<ref::Elements<C>> in;
  std::vector<ref::Strides> out_strides, sum_strides;
  for (std::size_t k = 0; k < call.inputs.size(); ++k) {
    in.emplace_back(call.inputs[k]);
    out_strides.push_back(label_strides(e.inputs[k], call.inputs[k].shape, e.output));
    sum_strides.push_back(label_strides(e.inputs[k], call.inputs[k].shape, e.summed));
  }
  const Shape summed = label_shape(e, call, e.summed);
  ref::Outputs<C> y(call.outputs[0]);
  ref::for_each_index(call.outputs[0].shape, [&](std::size_t i, const ref::Index& o) {
    ref::Sum<C> sum;
    ref::for_each_index(summed, [&](std::size_t, const ref::Index& s) {
      C product{1};
      for (std::size_t k = 0; k < in.size(); ++k) {
        const C v = in[k][ref::dot(o, out_strides[k], e.output.size()) +
                          ref::dot(s, sum_strides[k], e.summed.size())];
        product = k == 0 ? v : ref::multiply(product, v);
      }
      sum.add(product);
    });
    y[i] = sum.value();
  });
  y.finish();
  return {};
}

Result<void> reference_einsum(const RefCall& call) {
  std::vector<std::size_t> ranks;
  for (const TensorView& view : call.inputs) ranks.push_back(view.shape.rank());
  const auto equation = parse(call.attrs.bytes(0), ranks);
  if (!equation) return fail(rules::bad_payload("equation"));
  return ref::visit_number(call.inputs[0].dtype,
                           [&]<class C>(ref::Type<C>) { return evaluate<C>(call, *equation); });
}

}  // namespace

OpImpl impl_Einsum() {
  return {.attrs = kAttrs, .infer = infer_einsum, .reference = reference_einsum};
}

}  // namespace cyb
