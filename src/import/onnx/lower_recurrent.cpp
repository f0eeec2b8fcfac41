// RNN, GRU and LSTM.
#include <algorithm>
#include <array>
#include <optional>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

struct Activation {
  std::string_view name;
  // Defaults of the parameters that the function takes.
  std::optional<float> alpha, beta;
};

// In the order of the op's numbers.
constexpr std::array kActivations = {Activation{"relu", std::nullopt, std::nullopt},
                                     Activation{"tanh", std::nullopt, std::nullopt},
                                     Activation{"sigmoid", std::nullopt, std::nullopt},
                                     Activation{"affine", 1.0F, 0.0F},
                                     Activation{"leakyrelu", 0.01F, std::nullopt},
                                     Activation{"thresholdedrelu", 1.0F, std::nullopt},
                                     Activation{"scaledtanh", 1.0F, 1.0F},
                                     Activation{"hardsigmoid", 0.2F, 0.5F},
                                     Activation{"elu", 1.0F, std::nullopt},
                                     Activation{"softsign", std::nullopt, std::nullopt},
                                     Activation{"softplus", std::nullopt, std::nullopt}};

std::string lower_case(std::string text) {
  for (char& ch : text) ch = ch >= 'A' && ch <= 'Z' ? static_cast<char>(ch - 'A' + 'a') : ch;
  return text;
}

/// The next given value, else the default; 0 where the function takes none.
float next(std::span<const float> given, std::size_t& at, std::optional<float> fallback) {
  if (!fallback) return 0;
  return at < given.size() ? given[at++] : *fallback;
}

void add_activations(Call& c, std::vector<NamedAttr>& attrs) {
  const std::vector<float> alphas = c.floats("activation_alpha");
  const std::vector<float> betas = c.floats("activation_beta");
  std::vector<std::int64_t> numbers;
  std::vector<std::byte> parameters;
  std::size_t a = 0, b = 0;
  for (const std::string& name : c.strings("activations")) {
    const auto at = std::ranges::find(kActivations, lower_case(name), &Activation::name);
    if (at == kActivations.end()) return c.refuse("the activation " + name);
    numbers.push_back(at - kActivations.begin());
    const std::array pair = {next(alphas, a, at->alpha), next(betas, b, at->beta)};
    const auto raw = std::as_bytes(std::span(pair));
    parameters.insert(parameters.end(), raw.begin(), raw.end());
  }
  attrs.push_back({"activations", std::move(numbers)});
  attrs.push_back({"alpha_beta", std::move(parameters)});
}

std::vector<NamedAttr> layer_attrs(Call& c) {
  constexpr std::array kDirections = {std::string_view("forward"), std::string_view("reverse"),
                                      std::string_view("bidirectional")};
  const std::string direction = c.s("direction", "forward");
  const auto at = std::ranges::find(kDirections, direction);
  if (at == kDirections.end()) c.refuse("the direction " + direction);
  c.ignore({"output_sequence"});
  const std::size_t width = c.op() == "DynamicQuantizeLSTM" ? 1 : 2;  // R is [d, h, 4h] there
  const std::int64_t hidden = c.i("hidden_size", c.size(c.in(2), width, "the hidden size"));
  std::vector<NamedAttr> attrs = {{"hidden", hidden},
                                  {"direction", std::int64_t{at - kDirections.begin()}},
                                  {"clip", static_cast<float>(c.f("clip", 0))},
                                  {"batch_first", c.i("layout", 0)}};
  add_activations(c, attrs);
  return attrs;
}

void lower_layer(Call& c) {
  std::vector<NamedAttr> attrs = layer_attrs(c);
  std::vector<Val> inputs;
  for (std::size_t k = 0; k < c.n_in(); ++k) inputs.push_back(c.in(k));
  std::string_view op = "Rnn";
  if (c.op() == "GRU") {
    op = "Gru";
    attrs.push_back({"linear_before_reset", c.i("linear_before_reset", 0)});
  } else if (c.op() == "LSTM") {
    op = "LstmFull";
    attrs.push_back({"input_forget", c.i("input_forget", 0)});
  }
  const auto out = c.emit_all(op, std::move(attrs), std::move(inputs));
  for (std::size_t k = 0; k < out.size(); ++k) c.out(k, out[k]);
}

}  // namespace

/// X, W, R, b?, lengths?, h0?, c0?, P?, W scale, W zero, R scale, R zero (com.microsoft).
void lower_dynamic_lstm(Call& c) {
  if (c.has(4)) c.refuse("sequence_lens");
  if (c.has(7)) c.refuse("peepholes");
  if (c.i("input_forget", 0) != 0) c.refuse("input_forget");
  if (c.f("clip", 0) != 0) c.refuse("clip");
  if (c.has_attr("activations")) c.refuse("activations");
  const std::vector<NamedAttr> attrs = layer_attrs(c);
  const auto out = c.emit_all(
      "DynamicLstm", {attrs[0], attrs[1]},
      {c.in(0), c.in(1), c.in(2), c.in(8), c.in(9), c.in(10), c.in(11), c.in(3), c.in(5), c.in(6)});
  for (std::size_t k = 0; k < out.size(); ++k) c.out(k, out[k]);
}

std::span<const OpRow> rows_recurrent() noexcept {
  static constexpr std::array kRows = {OpRow{"GRU", 7, lower_layer}, OpRow{"LSTM", 7, lower_layer},
                                       OpRow{"RNN", 7, lower_layer}};
  return kRows;
}

}  // namespace cyb::onnx
