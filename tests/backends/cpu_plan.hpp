// A small decoder as a hand-made plan on a backend, and the same forward as plain f64 loops: what
// the cpu backend is held against.
#pragma once

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/backend.hpp"
#include "ops/blocks.hpp"
#include "tensor/dtype.hpp"

namespace cyb::testing_plan {

struct Sizes {
  std::uint32_t vocab = 96, width = 64, heads = 4, kv_heads = 2, head_dim = 32, hidden = 96,
                layers = 2;
  std::uint32_t window = 0;  // of odd layers
  float softcap = 0;
  bool head_norms = true, biases = true;
  std::uint8_t rope_style = 0;
  std::uint32_t rope_dim = 32;
  DType matrix = DType::kF32;
  Activation activation = Activation::kSilu;
};

/// Tensors by name: the bytes a backend loads and their f32 values.
class Tensors {
 public:
  explicit Tensors(const Sizes& sizes, unsigned seed = 1) : rng_(seed) {
    const Sizes& z = sizes;
    matrix("embed", z.vocab, z.width, z.matrix);
    matrix("head", z.vocab, z.width, z.matrix);
    vector("norm", z.width);
    for (std::uint32_t l = 0; l < z.layers; ++l) {
      const std::string p = std::to_string(l) + ".";
      vector(p + "n1", z.width);
      vector(p + "n2", z.width);
      vector(p + "qn", z.head_dim);
      vector(p + "kn", z.head_dim);
      matrix(p + "q", z.heads * z.head_dim, z.width, z.matrix);
      matrix(p + "k", z.kv_heads * z.head_dim, z.width, z.matrix);
      matrix(p + "v", z.kv_heads * z.head_dim, z.width, z.matrix);
      vector(p + "qb", z.heads * z.head_dim);
      vector(p + "kb", z.kv_heads * z.head_dim);
      vector(p + "vb", z.kv_heads * z.head_dim);
      matrix(p + "o", z.width, z.heads * z.head_dim, z.matrix);
      matrix(p + "gate", z.hidden, z.width, z.matrix);
      matrix(p + "up", z.hidden, z.width, z.matrix);
      matrix(p + "down", z.width, z.hidden, z.matrix);
    }
  }

  WeightSource source(const std::string& name) const {
    const Tensor& t = tensors_.at(name);
    return {name, t.dtype, t.shape, t.bytes};
  }
  const std::vector<float>& values(const std::string& name) const {
    return tensors_.at(name).values;
  }

 private:
  struct Tensor {
    DType dtype;
    Shape shape;
    std::vector<std::byte> bytes;
    std::vector<float> values;
  };

  void add(const std::string& name, DType dtype, const Shape& shape, std::vector<std::byte> bytes) {
    Tensor t{dtype, shape, std::move(bytes), {}};
    t.values.resize(static_cast<std::size_t>(shape.count()));
    format_info(dtype).decode(t.bytes.data(), t.values.data(), t.values.size());
    tensors_.emplace(name, std::move(t));
  }
  void vector(const std::string& name, std::int64_t n) {
    std::uniform_real_distribution<float> near_one(0.5f, 1.5f);
    std::vector<float> v(static_cast<std::size_t>(n));
    for (float& x : v) x = near_one(rng_);
    const auto* p = reinterpret_cast<const std::byte*>(v.data());
    add(name, DType::kF32, Shape{n}, {p, p + v.size() * sizeof(float)});
  }
  void matrix(const std::string& name, std::int64_t rows, std::int64_t columns, DType dtype) {
    const Shape shape{rows, columns};
    const auto n = static_cast<std::size_t>(*tensor_bytes(dtype, shape));
    std::vector<std::byte> bytes(n);
    const float size = 1.0f / std::sqrt(static_cast<float>(columns));
    if (dtype == DType::kF32) {
      std::normal_distribution<float> normal(0.0f, size);
      auto* v = reinterpret_cast<float*>(bytes.data());
      for (std::size_t i = 0; i < n / 4; ++i) v[i] = normal(rng_);
    } else {
      for (std::byte& b : bytes) b = static_cast<std::byte>(rng_() & 255u);
      // q8 and q4: the first two bytes of a block are its scale.
      const std::size_t block = format_info(dtype).block_bytes;
      for (std::size_t at = 0; at < n; at += block) {
        const std::uint16_t half = static_cast<std::uint16_t>(
            dtype == DType::kQ8 ? 0x0E00 + rng_() % 64 : 0x2000 + rng_() % 64);
        std::memcpy(bytes.data() + at, &half, 2);
      }
    }
    add(name, dtype, shape, std::move(bytes));
  }

  std::mt19937 rng_;
  std::map<std::string, Tensor> tensors_;
};

/// The plan of the decoder; owns the weights it loads.
class PlanMaker {
 public:
  PlanMaker(Backend& backend, const Tensors& tensors, const Sizes& sizes, std::uint32_t max_tokens,
            std::uint32_t max_outputs)
      : backend_(backend), tensors_(tensors), z_(sizes) {
    plan_.max_tokens = max_tokens;
    plan_.max_outputs = max_outputs;
    Operand x = arena(z_.width, RowKind::kTokens);
    step(OpTag::kTokenEmbed, {}, {ids(), weight("embed", WeightUse::kGather)}, {x}, "embedding");
    for (std::uint32_t l = 0; l < z_.layers; ++l) x = layer(l, x);
    const Operand rows{.kind = Operand::Kind::kOutputRows,
                       .rows = RowKind::kOutputs,
                       .dtype = DType::kI32,
                       .shape = Shape{max_outputs}};
    const Operand last = arena(z_.width, RowKind::kOutputs);
    step(OpTag::kGather, Attrs{{std::int64_t{0}}}, {x, rows}, {last}, "rows");
    const Operand logits = arena(z_.vocab, RowKind::kOutputs);
    step(OpTag::kBlockNormLinear, BlockNormLinearAttrs{1e-5f, 1}.to_attrs(),
         {last, weight("norm", WeightUse::kVector), matrix("head")}, {logits}, "head");
    plan_.outputs = {logits};
    plan_.arena_bytes = offset_;
  }
  const Plan& plan() const { return plan_; }

 private:
  Operand layer(std::uint32_t l, const Operand& x) {
    const std::string p = std::to_string(l) + ".";
    const auto vec = [&](const char* name) { return weight(p + name, WeightUse::kVector); };
    const std::int64_t q_width = z_.heads * z_.head_dim, kv_width = z_.kv_heads * z_.head_dim;
    const Operand q = arena(q_width, RowKind::kTokens), k = arena(kv_width, RowKind::kTokens),
                  v = arena(kv_width, RowKind::kTokens);
    std::vector<Operand> in = {x, vec("n1"), matrix(p + "q"), matrix(p + "k"), matrix(p + "v")};
    if (z_.biases) in.insert(in.end(), {vec("qb"), vec("kb"), vec("vb")});
    step(OpTag::kBlockNormLinear, BlockNormLinearAttrs{1e-5f, 3}.to_attrs(), in, {q, k, v},
         p + "qkv");
    BlockAttentionAttrs a{};
    a.layer = l;
    a.n_heads = z_.heads;
    a.n_kv_heads = z_.kv_heads;
    a.head_dim = z_.head_dim;
    a.scale = 1.0f / std::sqrt(static_cast<float>(z_.head_dim));
    a.softcap = z_.softcap;
    a.window = l % 2 == 1 ? z_.window : 0;
    a.rope_dim = z_.rope_dim;
    a.rope_base = 10000.0f;
    a.rope_style = z_.rope_style;
    a.norm_eps = 1e-6f;
    const Operand mixed = arena(q_width, RowKind::kTokens);
    std::vector<Operand> attention = {q, k, v};
    if (z_.head_norms) attention.insert(attention.end(), {vec("qn"), vec("kn")});
    step(OpTag::kBlockAttention, a.to_attrs(), attention, {mixed}, p + "attention");
    const Operand y = arena(z_.width, RowKind::kTokens);
    step(OpTag::kBlockLinearAdd, BlockLinearAddAttrs{}.to_attrs(), {mixed, x, matrix(p + "o")}, {y},
         p + "o");
    const Operand h = arena(z_.hidden, RowKind::kTokens);
    step(OpTag::kBlockGatedMlp, BlockGatedMlpAttrs{1e-5f, z_.activation}.to_attrs(),
         {y, vec("n2"), matrix(p + "gate"), matrix(p + "up")}, {h}, p + "mlp");
    const Operand out = arena(z_.width, RowKind::kTokens);
    step(OpTag::kBlockLinearAdd, BlockLinearAddAttrs{}.to_attrs(), {h, y, matrix(p + "down")},
         {out}, p + "down");
    return out;
  }

  Operand ids() const {
    return {.kind = Operand::Kind::kIds,
            .rows = RowKind::kTokens,
            .dtype = DType::kI32,
            .shape = Shape{plan_.max_tokens}};
  }
  Operand arena(std::int64_t width, RowKind rows) {
    const std::int64_t n = rows == RowKind::kTokens ? plan_.max_tokens : plan_.max_outputs;
    const Operand out{
        .kind = Operand::Kind::kArena, .rows = rows, .shape = Shape{n, width}, .offset = offset_};
    offset_ += (static_cast<std::uint64_t>(n * width) * 4 + 255) / 256 * 256;
    return out;
  }
  Operand matrix(const std::string& name) { return weight(name, WeightUse::kMatmul); }
  Operand weight(const std::string& name, WeightUse use) {
    const WeightSource source = tensors_.source(name);
    weights_.push_back(backend_.load_weight(source, use, {}).value());
    return {.kind = Operand::Kind::kWeight,
            .dtype = source.dtype,
            .shape = source.shape,
            .weight = weights_.back().get()};
  }
  void step(OpTag tag, Attrs attrs, std::vector<Operand> in, std::vector<Operand> out,
            std::string label) {
    plan_.steps.push_back(
        {Op{tag, std::move(attrs)}, std::move(in), std::move(out), std::move(label)});
  }

  Backend& backend_;
  const Tensors& tensors_;
  Sizes z_;
  Plan plan_;
  std::uint64_t offset_ = 0;
  std::vector<std::unique_ptr<Weight>> weights_;
};

/// One backend with the decoder compiled, a KV store and page tables of sequences.
class Decoder {
 public:
  Decoder(std::shared_ptr<Backend> backend, const Tensors& tensors, const Sizes& sizes,
          std::uint32_t max_tokens = 64, std::uint32_t n_pages = 64)
      : backend_(std::move(backend)),
        maker_(*backend_, tensors, sizes, max_tokens, max_tokens),
        vocab_(sizes.vocab) {
    executable = backend_->compile(maker_.plan()).value();
    KvLayout layout;
    layout.layers.assign(sizes.layers, {sizes.kv_heads, sizes.head_dim});
    layout.dtype = backend_->default_kv_dtype();
    kv = backend_->alloc_kv(layout, n_pages).value();
  }

  struct Piece {
    std::uint32_t sequence;
    std::vector<std::int32_t> ids;
  };
  /// Runs the pieces in one ragged step; logits of every row, in order.
  std::vector<float> run(const std::vector<Piece>& pieces) {
    set(pieces);
    const StepParams params = step_params();
    if (auto ok = executable->submit(params); !ok) throw std::runtime_error(ok.error().text());
    if (auto ok = executable->sync(); !ok) throw std::runtime_error(ok.error().text());
    for (const Piece& p : pieces) past_[p.sequence] += static_cast<std::uint32_t>(p.ids.size());
    const auto out = executable->output(0).value();
    return {out.begin(), out.end()};
  }
  void set(const std::vector<Piece>& pieces) {
    ids_.clear();
    positions_.clear();
    rows_.clear();
    spans_.clear();
    for (const Piece& p : pieces) {
      const std::uint32_t past = past_[p.sequence];
      std::vector<std::uint32_t>& pages = pages_[p.sequence];
      while (pages.size() * 16 < past + p.ids.size()) pages.push_back(next_page());
      spans_.push_back({static_cast<std::uint32_t>(ids_.size()),
                        static_cast<std::uint32_t>(p.ids.size()), past, pages});
      for (const std::int32_t id : p.ids) {
        positions_.push_back(
            static_cast<std::int32_t>(past + positions_.size() - spans_.back().row_begin));
        rows_.push_back(static_cast<std::int32_t>(rows_.size()));
        ids_.push_back(id);
      }
    }
  }
  StepParams step_params() const {
    return {.ids = ids_,
            .positions = positions_,
            .output_rows = rows_,
            .sequences = spans_,
            .kv = kv.get()};
  }

  std::unique_ptr<Executable> executable;
  std::unique_ptr<KvStore> kv;

 private:
  /// Pages in a scattered order, so that nothing may rely on neighbours.
  std::uint32_t next_page() { return (used_++ * 37 + 11) % kv->n_pages(); }

  std::shared_ptr<Backend> backend_;
  PlanMaker maker_;
  std::uint32_t vocab_, used_ = 0;
  std::map<std::uint32_t, std::uint32_t> past_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> pages_;
  std::vector<std::int32_t> ids_, positions_, rows_;
  std::vector<SequenceSpan> spans_;
};

}  // namespace cyb::testing_plan
