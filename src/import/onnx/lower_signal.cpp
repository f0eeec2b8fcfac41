// Signals, losses and n-grams.
#include <algorithm>
#include <array>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

void lower_dft(Call& c) {
  Val axis = c.in(2);
  if (c.opset() < 20) {
    const std::int64_t number = c.i("axis", 1);
    axis = c.reshape(c.int_list(std::span(&number, 1)), {});
  }
  c.out(0, c.emit("Dft", {{"inverse", c.i("inverse", 0)}, {"onesided", c.i("onesided", 0)}},
                  {c.in(0), c.in(1), axis}));
}

/// [batch, length] is a real signal, as [batch, length, 1] is.
void lower_stft(Call& c) {
  const Val signal = c.rank(c.in(0)) == 2 ? c.reshape(c.in(0), {0, -1, 1}) : c.in(0);
  c.out(0, c.emit("Stft", {{"onesided", c.i("onesided", 1)}}, {signal, c.in(1), c.in(2), c.in(3)}));
}

void lower_window(Call& c) {
  constexpr std::array kKinds = {std::string_view("HannWindow"), std::string_view("HammingWindow"),
                                 std::string_view("BlackmanWindow")};
  const auto kind = std::ranges::find(kKinds, c.op()) - kKinds.begin();
  const DType dtype = c.type("output_datatype", DType::kF32);
  c.out(0, c.emit("Window",
                  {{"kind", std::int64_t{kind}},
                   {"periodic", c.i("periodic", 1)},
                   {"dtype", static_cast<std::int64_t>(dtype)}},
                  {c.in(0)}));
}

void lower_mel(Call& c) {
  const DType dtype = c.type("output_datatype", DType::kF32);
  c.out(0, c.emit("MelWeightMatrix", {{"dtype", static_cast<std::int64_t>(dtype)}},
                  {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)}));
}

Val loss(Call& c, Val log_probabilities, Val target, Val weight) {
  constexpr std::array kReductions = {std::string_view("none"), std::string_view("sum"),
                                      std::string_view("mean")};
  const std::string name = c.s("reduction", "mean");
  const auto at = std::ranges::find(kReductions, name);
  if (at == kReductions.end()) c.refuse("the reduction " + name);
  const std::int64_t has_ignore = c.has_attr("ignore_index") ? 1 : 0;
  return c.emit("NllLoss",
                {{"reduction", std::int64_t{at - kReductions.begin()}},
                 {"has_ignore", has_ignore},
                 {"ignore", c.i("ignore_index", 0)}},
                {log_probabilities, target, weight});
}

void lower_nll(Call& c) {
  c.out(0, loss(c, c.in(0), c.in(1), c.in(2)));
}

void lower_cross_entropy(Call& c) {
  const Val log_probabilities = c.emit("LogSoftmax", {{"dim", std::int64_t{1}}}, {c.in(0)});
  c.out(0, loss(c, log_probabilities, c.in(1), c.in(2)));
  c.out(1, log_probabilities);
}

void lower_tf_idf(Call& c) {
  constexpr std::array kModes = {std::string_view("TF"), std::string_view("IDF"),
                                 std::string_view("TFIDF")};
  const std::string mode = c.s("mode", "");
  const auto at = std::ranges::find(kModes, mode);
  if (at == kModes.end()) c.refuse("the mode " + mode);
  if (c.has_attr("pool_strings")) c.refuse("a pool of strings");
  const std::vector<float> weights = c.floats("weights");
  const auto raw = std::as_bytes(std::span(weights));
  c.out(0, c.emit("TfIdf",
                  {{"mode", std::int64_t{at - kModes.begin()}},
                   {"min_gram", c.i("min_gram_length", 0)},
                   {"max_gram", c.i("max_gram_length", 0)},
                   {"max_skip", c.i("max_skip_count", 0)},
                   {"ngram_counts", c.ints("ngram_counts")},
                   {"ngram_indexes", c.ints("ngram_indexes")},
                   {"pool", c.ints("pool_int64s")},
                   {"weights", std::vector<std::byte>(raw.begin(), raw.end())}},
                  {c.in(0)}));
}

}  // namespace

std::span<const OpRow> rows_signal() noexcept {
  static constexpr std::array kRows = {OpRow{"BlackmanWindow", 17, lower_window},
                                       OpRow{"DFT", 17, lower_dft},
                                       OpRow{"HammingWindow", 17, lower_window},
                                       OpRow{"HannWindow", 17, lower_window},
                                       OpRow{"MelWeightMatrix", 17, lower_mel},
                                       OpRow{"NegativeLogLikelihoodLoss", 12, lower_nll},
                                       OpRow{"STFT", 17, lower_stft},
                                       OpRow{"SoftmaxCrossEntropyLoss", 12, lower_cross_entropy},
                                       OpRow{"TfIdfVectorizer", 9, lower_tf_idf}};
  return kRows;
}

}  // namespace cyb::onnx
