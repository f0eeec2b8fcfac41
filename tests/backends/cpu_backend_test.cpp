// The cpu backend as a whole: against an f64 forward in exact mode, and bit equality over threads,
// chunks, batches and ISAs.
#include "backends/cpu/cpu_backend.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numbers>

#include "backends/cpu/kernels/table.hpp"
#include "cpu_plan.hpp"

namespace cyb {
namespace {

using namespace testing_plan;

using Matrix = std::vector<std::vector<double>>;

std::vector<double> linear(const Tensors& t, const std::string& name, const std::vector<double>& x,
                           const std::string& bias = "") {
  const std::vector<float>& w = t.values(name);
  const std::size_t k = x.size();
  std::vector<double> y(w.size() / k);
  for (std::size_t r = 0; r < y.size(); ++r) {
    for (std::size_t i = 0; i < k; ++i) y[r] += static_cast<double>(w[r * k + i]) * x[i];
    if (!bias.empty()) y[r] += t.values(bias)[r];
  }
  return y;
}

std::vector<double> norm(const std::vector<float>& gain, const double* x, std::size_t n,
                         double eps) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i] * x[i];
  std::vector<double> y(n);
  for (std::size_t i = 0; i < n; ++i)
    y[i] = x[i] / std::sqrt(sum / static_cast<double>(n) + eps) * gain[i];
  return y;
}

void rotate(const Sizes& z, double position, double* x) {
  for (std::uint32_t j = 0; j < z.rope_dim / 2; ++j) {
    const double over = z.rope_style == 2 ? z.head_dim : z.rope_dim;
    const double angle = position * std::pow(10000.0, -2.0 * j / over);
    const std::size_t a = z.rope_style == 1 ? 2 * j : j;
    const std::size_t b = z.rope_style == 1   ? 2 * j + 1
                          : z.rope_style == 2 ? j + z.head_dim / 2
                                              : j + z.rope_dim / 2;
    const double xa = x[a], xb = x[b];
    x[a] = xa * std::cos(angle) - xb * std::sin(angle);
    x[b] = xa * std::sin(angle) + xb * std::cos(angle);
  }
}

void head_vectors(const Sizes& z, const Tensors& t, const std::string& gain, double position,
                  std::uint32_t n, std::vector<double>& x) {
  for (std::uint32_t h = 0; h < n; ++h) {
    double* v = x.data() + std::size_t{h} * z.head_dim;
    if (z.head_norms) {
      const auto y = norm(t.values(gain), v, z.head_dim, 1e-6);
      std::copy(y.begin(), y.end(), v);
    }
    rotate(z, position, v);
  }
}

std::vector<double> attend(const Sizes& z, std::uint32_t layer, const std::vector<double>& q,
                           const Matrix& k, const Matrix& v, std::size_t at) {
  const std::size_t d = z.head_dim, group = z.heads / z.kv_heads;
  std::vector<double> y(z.heads * d);
  const std::size_t from =
      layer % 2 == 1 && z.window > 0 && at + 1 > z.window ? at + 1 - z.window : 0;
  for (std::size_t h = 0; h < z.heads; ++h) {
    std::vector<double> s;
    for (std::size_t j = from; j <= at; ++j) {
      double dot = 0;
      for (std::size_t i = 0; i < d; ++i) dot += q[h * d + i] * k[j][h / group * d + i];
      dot /= std::sqrt(static_cast<double>(d));
      s.push_back(z.softcap > 0 ? z.softcap * std::tanh(dot / z.softcap) : dot);
    }
    const double most = *std::max_element(s.begin(), s.end());
    double sum = 0;
    for (double& x : s) sum += x = std::exp(x - most);
    for (std::size_t j = from; j <= at; ++j) {
      for (std::size_t i = 0; i < d; ++i)
        y[h * d + i] += s[j - from] / sum * v[j][h / group * d + i];
    }
  }
  return y;
}

double activation(Activation a, double x) {
  if (a == Activation::kSilu) return x / (1 + std::exp(-x));
  if (a == Activation::kGeluErf) return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
  return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

/// Logits of every position of one sequence.
Matrix forward(const Sizes& z, const Tensors& t, const std::vector<std::int32_t>& ids) {
  Matrix x;
  for (const std::int32_t id : ids) {
    const float* row = t.values("embed").data() + static_cast<std::size_t>(id) * z.width;
    x.emplace_back(row, row + z.width);
  }
  for (std::uint32_t l = 0; l < z.layers; ++l) {
    const std::string p = std::to_string(l) + ".";
    const auto bias = [&](const char* name) { return z.biases ? p + name : std::string(); };
    Matrix q, k, v;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto n = norm(t.values(p + "n1"), x[i].data(), z.width, 1e-5);
      q.push_back(linear(t, p + "q", n, bias("qb")));
      k.push_back(linear(t, p + "k", n, bias("kb")));
      v.push_back(linear(t, p + "v", n, bias("vb")));
      head_vectors(z, t, p + "qn", static_cast<double>(i), z.heads, q[i]);
      head_vectors(z, t, p + "kn", static_cast<double>(i), z.kv_heads, k[i]);
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto o = linear(t, p + "o", attend(z, l, q[i], k, v, i));
      for (std::size_t e = 0; e < z.width; ++e) x[i][e] += o[e];
      const auto n = norm(t.values(p + "n2"), x[i].data(), z.width, 1e-5);
      auto gate = linear(t, p + "gate", n);
      const auto up = linear(t, p + "up", n);
      for (std::size_t f = 0; f < gate.size(); ++f)
        gate[f] = activation(z.activation, gate[f]) * up[f];
      const auto down = linear(t, p + "down", gate);
      for (std::size_t e = 0; e < z.width; ++e) x[i][e] += down[e];
    }
  }
  Matrix logits;
  for (const auto& row : x)
    logits.push_back(linear(t, "head", norm(t.values("norm"), row.data(), z.width, 1e-5)));
  return logits;
}

std::shared_ptr<Backend> backend(unsigned threads, bool exact, std::string isa = "") {
  return create_cpu_backend(
             {.n_threads = threads, .exact = exact, .isa = std::move(isa), .allow_fallback = false})
      .value();
}

std::vector<std::int32_t> some_ids(std::size_t n, std::uint32_t vocab, unsigned seed = 5) {
  std::mt19937 rng(seed);
  std::vector<std::int32_t> ids(n);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(rng() % vocab);
  return ids;
}

double error(const std::vector<float>& got, const Matrix& want) {
  double most = 1, worst = 0;
  std::size_t i = 0;
  for (const auto& row : want) {
    for (const double w : row) {
      if (!std::isfinite(got[i])) return 1e30;
      most = std::max(most, std::fabs(w));
      worst = std::max(worst, std::fabs(got[i++] - w));
    }
  }
  return got.size() == i ? worst / most : 1e30;
}

std::vector<Sizes> variants() {
  std::vector<Sizes> out(7);
  out[1].window = 40;
  out[1].softcap = 5;
  out[2].head_norms = out[2].biases = false;
  out[2].rope_style = 1;
  out[2].rope_dim = 16;
  out[2].activation = Activation::kGeluTanh;
  out[3].rope_style = 2;
  out[3].rope_dim = 8;
  out[3].heads = 6;
  out[3].kv_heads = 1;
  out[3].activation = Activation::kGeluErf;
  out[4].head_dim = 20;  // not a multiple of the vector
  out[4].rope_dim = 20;
  out[4].width = 52;
  out[4].hidden = 70;
  out[4].vocab = 101;
  out[4].window = 7;
  out[5].matrix = DType::kQ8;
  out[6].matrix = DType::kQ4;
  out[6].kv_heads = 4;
  return out;
}

TEST(CpuBackend, ExactForwardEqualsF64) {
  for (const Sizes& z : variants()) {
    const Tensors t(z);
    const auto ids = some_ids(150, z.vocab);
    const Matrix want = forward(z, t, ids);
    Decoder decoder(backend(2, true), t, z, 160);
    EXPECT_LE(error(decoder.run({{0, ids}}), want), 1e-5) << "variant " << &z - variants().data();
  }
}

TEST(CpuBackend, DefaultForwardStaysNearF64) {
  for (Sizes z : variants()) {
    if (!is_block(z.matrix)) continue;
    const Tensors t(z);
    const auto ids = some_ids(70, z.vocab);
    Decoder decoder(backend(2, false), t, z, 80);
    const double e = error(decoder.run({{0, ids}}), forward(z, t, ids));
    EXPECT_LE(e, 5e-2);
    EXPECT_GT(e, 1e-6) << "activations were not rounded: another mode ran";
  }
}

/// All rows of `ids` in chunks of n on a fresh decoder.
std::vector<float> chunked(std::shared_ptr<Backend> b, const Tensors& t, const Sizes& z,
                           const std::vector<std::int32_t>& ids, std::size_t n) {
  Decoder decoder(std::move(b), t, z, 512);
  std::vector<float> out;
  for (std::size_t i = 0; i < ids.size(); i += n) {
    const std::vector<std::int32_t> piece(
        ids.begin() + static_cast<std::ptrdiff_t>(i),
        ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), i + n)));
    const auto logits = decoder.run({{0, piece}});
    out.insert(out.end(), logits.begin(), logits.end());
  }
  return out;
}

void expect_equal_bits(const std::vector<float>& a, const std::vector<float>& b,
                       const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  std::size_t differing = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differing += std::memcmp(&a[i], &b[i], 4) != 0;
  EXPECT_EQ(differing, 0u) << what << " of " << a.size();
}

void expect_chunks_agree(const Sizes& z, bool exact, std::size_t n_ids,
                         const std::vector<std::size_t>& chunks) {
  const Tensors t(z);
  const auto ids = some_ids(n_ids, z.vocab);
  const auto whole = chunked(backend(1, exact), t, z, ids, 512);
  for (const unsigned threads : {1u, 2u, 3u}) {
    for (const std::size_t n : chunks) {
      expect_equal_bits(chunked(backend(threads, exact), t, z, ids, n), whole,
                        std::to_string(threads) + " threads, chunks of " + std::to_string(n));
    }
  }
}

TEST(CpuBackend, BitsDoNotDependOnThreadsOrChunks) {
  for (const bool exact : {false, true}) {
    for (const Sizes& z : variants()) {
      expect_chunks_agree(z, exact, 300, {37, 130, 512});
      expect_chunks_agree(z, exact, 70, {3, 4, 5, 7, 8});
    }
    expect_chunks_agree(variants()[1], exact, 140, {1, 2});
    expect_chunks_agree(variants()[6], exact, 140, {1});
  }
}

TEST(CpuBackend, BitsDoNotDependOnTheBatch) {
  for (const Sizes& z : variants()) {
    const Tensors t(z);
    std::vector<std::vector<std::int32_t>> prompts;
    for (unsigned s = 0; s < 7; ++s) prompts.push_back(some_ids(3 + 31 * s % 90, z.vocab, s));
    std::vector<std::vector<float>> alone;
    for (const auto& ids : prompts) alone.push_back(chunked(backend(1, false), t, z, ids, 512));
    Decoder decoder(backend(2, false), t, z, 512, 128);
    // Ragged: at each step some sequences feed 1 token, others 5 or the rest.
    std::vector<std::size_t> done(prompts.size(), 0);
    for (bool more = true; more;) {
      std::vector<Decoder::Piece> pieces;
      for (std::uint32_t s = 0; s < prompts.size(); ++s) {
        const std::size_t left = prompts[s].size() - done[s];
        if (left == 0) continue;
        const std::size_t n = std::min(left, s % 3 == 0   ? left
                                             : s % 3 == 1 ? std::size_t{1}
                                                          : std::size_t{5});
        const auto from = prompts[s].begin() + static_cast<std::ptrdiff_t>(done[s]);
        pieces.push_back({s, {from, from + static_cast<std::ptrdiff_t>(n)}});
      }
      more = !pieces.empty();
      if (!more) break;
      const auto logits = decoder.run(pieces);
      std::size_t at = 0;
      for (const auto& p : pieces) {
        const std::size_t n = p.ids.size() * z.vocab;
        ASSERT_EQ(
            std::memcmp(logits.data() + at, alone[p.sequence].data() + done[p.sequence] * z.vocab,
                        n * sizeof(float)),
            0)
            << "sequence " << p.sequence << " at " << done[p.sequence];
        at += n;
        done[p.sequence] += p.ids.size();
      }
    }
  }
}

TEST(CpuBackend, EveryIsaGivesTheSameBits) {
  std::array<const char*, 8> names{};
  const std::size_t n = cpu::available_isas(names.data(), names.size());
  ASSERT_GE(n, 1u);
  for (const bool exact : {false, true}) {
    for (const Sizes& z : variants()) {
      const Tensors t(z);
      const auto ids = some_ids(90, z.vocab);
      const auto want = chunked(backend(1, exact, names[0]), t, z, ids, 512);
      for (std::size_t i = 1; i < n; ++i) {
        expect_equal_bits(chunked(backend(2, exact, names[i]), t, z, ids, 512), want, names[i]);
      }
    }
  }
}

TEST(CpuBackend, SayWhatIsMissing) {
  const auto unknown = create_cpu_backend({.isa = "avx9"});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind(), ErrorKind::kBackendInit);
  EXPECT_NE(unknown.error().text().find("avx2"), std::string::npos) << unknown.error().text();
  const auto named = create_backend("tpu", {});
  ASSERT_FALSE(named);
  EXPECT_EQ(named.error().code(), "D7");
  EXPECT_EQ(named.error().text(), "unknown backend \"tpu\"; choose one of auto, cpu, reference");
}

}  // namespace
}  // namespace cyb
