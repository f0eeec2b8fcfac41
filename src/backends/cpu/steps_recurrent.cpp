// LstmFull, Lstm and Gru in f32 with stored weights. A thread takes whole lines (one direction of
// one sequence): the products with x for some steps at once, those with h step by step.
#include "backends/cpu/steps_recurrent.hpp"

#include "backends/cpu/steps_elements.hpp"

namespace cyb::cpu {
namespace {

constexpr std::size_t kTimes = 32;  // steps whose products with x are made at once

/// [direction][block of 16 rows][k][16] of w [d, rows, k].
struct RowPanels {
  std::shared_ptr<const Buffer> memory;
  std::size_t k = 0, n_blocks = 0;

  const float* direction(std::size_t dir) const noexcept {
    return reinterpret_cast<const float*>(memory->data()) + dir * n_blocks * k * kDirectOutputs;
  }
};

Result<RowPanels> panels_of(const Operand& w) {
  const auto groups = static_cast<std::size_t>(w.shape[0]),
             rows = static_cast<std::size_t>(w.shape[1]), k = static_cast<std::size_t>(w.shape[2]);
  const CpuWeight& weight = *cpu_weight(w);
  CYB_ASSIGN(auto memory, weight.derived({CpuWeight::Derived::kDirect, groups, rows, k}, [&] {
    return direct_panels(weight.vector(), {{}, 1, groups, k, rows});
  }));
  return RowPanels{std::move(memory), k, (rows + kDirectOutputs - 1) / kDirectOutputs};
}

enum class Cell : std::uint8_t { kLstm, kGru, kGruLinearFirst };

class RecurrentStep final : public PlainStep {
 public:
  struct Parts {
    RecurrentShape shape;
    Cell cell;
    RowPanels w, r;
    Operand bias, h0, c0;
  };

  RecurrentStep(const Step& step, Parts parts, Build& build)
      : p_(std::move(parts)), x_(step.inputs[0]), outputs_(step.outputs) {
    Carver count(nullptr);
    carve(count);
    build.want_thread(count.bytes());
  }

  void run(const Run& run, unsigned thread) const noexcept override {
    Carver carver(run.thread_scratch[thread]);
    const Room room = carve(carver);
    for (Share s(p_.shape.lines(), thread, run.n_threads); s.begin < s.end; ++s.begin)
      line(run, s.begin, room);
  }

 private:
  struct Room {
    float *from_x, *from_h;  // [kTimes][P], [P]: products of all gates, P = whole blocks
    float* bias;             // [2 gates h], zeros where there is none
    float *h, *c, *spare;    // [h], whole blocks
  };

  std::size_t gates() const noexcept { return p_.cell == Cell::kLstm ? 4 : 3; }
  std::size_t padded() const noexcept { return p_.w.n_blocks * kDirectOutputs; }

  Room carve(Carver& carver) const noexcept {
    const std::size_t n = p_.shape.hidden;
    return {carver.take<float>(kTimes * padded()),
            carver.take<float>(padded()),
            carver.take<float>(2 * gates() * n),
            carver.take<float>(n),
            carver.take<float>(n),
            carver.take<float>(n)};
  }

  /// Weights of a direction from block `first` on.
  struct Blocks {
    const RowPanels& w;
    std::size_t dir, first = 0;
  };
  struct Rows {
    const float* x;
    std::size_t step, n;  // floats from one row to the next; rows
  };

  /// y [n][P] = rows times weights.
  void product(const Run& run, const Blocks& blocks, const Rows& rows, float* y) const noexcept {
    const RowPanels& w = blocks.w;
    const std::size_t block = w.k * kDirectOutputs;
    run.k->tile({.a = rows.x,
                 .packed = false,
                 .a_panel = kTileRows * rows.step,
                 .a_row = rows.step,
                 .b = w.direction(blocks.dir) + blocks.first * block,
                 .b_block = block,
                 .rows = rows.n,
                 .n_blocks = w.n_blocks - blocks.first,
                 .k = w.k,
                 .c = y,
                 .c_row = padded(),
                 .row_bias = nullptr});
  }

  void line(const Run& run, std::size_t line, const Room& room) const noexcept {
    const RecurrentShape& s = p_.shape;
    const std::size_t n = s.hidden, dir = line / s.batch, state = s.state_at(line);
    load_state(run, p_.bias, dir * 2 * gates() * n, 2 * gates() * n, room.bias);
    load_state(run, p_.h0, state, n, room.h);
    load_state(run, p_.c0, state, n, room.c);
    for (std::size_t done = 0; done < s.length; done += kTimes) {
      const std::size_t steps = std::min(kTimes, s.length - done);
      const std::size_t first = std::min(s.time(line, done), s.time(line, done + steps - 1));
      product(run, {p_.w, dir}, {run.f32(x_) + s.x_at(line, first), s.x_step(), steps},
              room.from_x);
      for (std::size_t k = done; k < done + steps; ++k) {
        const std::size_t t = s.time(line, k);
        float* from_x = room.from_x + (t - first) * padded();
        if (p_.cell == Cell::kLstm) {
          lstm(run, dir, from_x, room);
        } else {
          gru(run, dir, from_x, room);
        }
        std::copy_n(room.h, n, run.out(outputs_[0]) + s.y_at(line, t));
      }
    }
    std::copy_n(room.h, n, run.out(outputs_[1]) + state);
    if (p_.cell == Cell::kLstm) std::copy_n(room.c, n, run.out(outputs_[2]) + state);
  }

  void lstm(const Run& run, std::size_t dir, float* from_x, const Room& room) const noexcept {
    const std::size_t n = p_.shape.hidden;
    product(run, {p_.r, dir}, {room.h, n, 1}, room.from_h);
    run.k->add(from_x, room.bias, 4 * n, from_x);
    run.k->add(room.from_h, room.bias + 4 * n, 4 * n, room.from_h);
    run.k->add(from_x, room.from_h, 4 * n, from_x);
    lstm_cell(*run.k, n, from_x, room.h, room.c);
  }

  /// Gates z, r, h~: h = (1 - z) h~ + z h.
  void gru(const Run& run, std::size_t dir, float* from_x, const Room& room) const noexcept {
    const KernelTable& k = *run.k;
    const std::size_t n = p_.shape.hidden;
    float *z = from_x, *r = from_x + n, *candidate = from_x + 2 * n, *from_h = room.from_h;
    product(run, {p_.r, dir}, {room.h, n, 1}, from_h);
    k.add(from_x, room.bias, 3 * n, from_x);
    k.add(from_h, room.bias + 3 * n, 3 * n, from_h);
    k.add(z, from_h, 2 * n, z);
    k.map[static_cast<std::size_t>(RowOp::kSigmoid)](z, 2 * n, z);
    if (p_.cell == Cell::kGruLinearFirst) {
      k.mul(r, from_h + 2 * n, n, r);
    } else {
      // The last gate's rows begin inside a block.
      const std::size_t first = 2 * n / kDirectOutputs, rest = 2 * n % kDirectOutputs;
      k.mul(r, room.h, n, room.spare);
      product(run, {p_.r, dir, first}, {room.spare, n, 1}, from_h);
      k.add(from_h + rest, room.bias + 5 * n, n, r);
    }
    k.add(candidate, r, n, candidate);
    k.map[static_cast<std::size_t>(RowOp::kTanh)](candidate, n, candidate);
    for (std::size_t i = 0; i < n; ++i) room.h[i] = (1.0f - z[i]) * candidate[i] + z[i] * room.h[i];
  }

  Parts p_;
  Operand x_;
  std::vector<Operand> outputs_;
};

bool is_stored(const Operand& w) {
  return w.kind == Operand::Kind::kWeight && cpu_weight(w)->vector() != nullptr;
}

}  // namespace

Result<StepPtr> make_recurrent_step(const Step& step, Build& build) {
  const Operand &x = step.inputs[0], &w = step.inputs[1], &r = step.inputs[2];
  const Attrs& a = step.op.attrs;
  if (!is_stored(w) || !is_stored(r) || step.outputs[0].shape.count() == 0 || w.shape[2] == 0)
    return StepPtr();
  const bool plain = step.op.tag == OpTag::kLstm;
  RecurrentStep::Parts parts;
  RecurrentShape& s = parts.shape;
  s.batch_first = !plain && a.i(5) != 0;
  s.reverse_first = !plain && a.i(1) == 1;
  s.length = static_cast<std::size_t>(x.shape[s.batch_first ? 1 : 0]);
  s.batch = static_cast<std::size_t>(x.shape[s.batch_first ? 0 : 1]);
  s.width = static_cast<std::size_t>(x.shape[2]);
  s.hidden = static_cast<std::size_t>(r.shape[2]);
  s.directions = static_cast<std::size_t>(w.shape[0]);
  const bool gru = step.op.tag == OpTag::kGru;
  parts.cell = !gru ? Cell::kLstm : a.i(6) != 0 ? Cell::kGruLinearFirst : Cell::kGru;
  parts.bias = operand_or_none(step, 3);
  parts.h0 = operand_or_none(step, plain ? 4 : 5);
  if (!gru) parts.c0 = operand_or_none(step, plain ? 5 : 6);
  CYB_ASSIGN(parts.w, panels_of(w));
  CYB_ASSIGN(parts.r, panels_of(r));
  return std::make_unique<RecurrentStep>(step, std::move(parts), build);
}

}  // namespace cyb::cpu
