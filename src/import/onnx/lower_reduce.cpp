// Reductions and cumulative sums.
#include <algorithm>
#include <array>

#include "import/onnx/call.hpp"

namespace cyb::onnx {
namespace {

// In the order of Reduce's kinds.
constexpr std::array kReductions = {
    std::string_view("ReduceSum"),       std::string_view("ReduceMean"),
    std::string_view("ReduceMax"),       std::string_view("ReduceMin"),
    std::string_view("ReduceProd"),      std::string_view("ReduceL1"),
    std::string_view("ReduceL2"),        std::string_view("ReduceLogSum"),
    std::string_view("ReduceLogSumExp"), std::string_view("ReduceSumSquare")};

void lower_reduce(Call& c) {
  const auto kind = std::ranges::find(kReductions, c.op()) - kReductions.begin();
  const Val axes = c.list_input(1, "axes");
  c.out(0, c.emit("Reduce",
                  {{"kind", std::int64_t{kind}},
                   {"keep", c.i("keepdims", 1)},
                   {"noop", c.i("noop_with_empty_axes", 0)}},
                  {c.in(0), axes}));
}

void lower_arg(Call& c) {
  c.out(0, c.emit("ArgReduce",
                  {{"kind", std::int64_t{c.op() == "ArgMin"}},
                   {"axis", static_cast<std::int64_t>(c.axis(c.i("axis", 0), c.rank(c.in(0))))},
                   {"keep", c.i("keepdims", 1)},
                   {"last", c.i("select_last_index", 0)}},
                  {c.in(0)}));
}

void lower_cumulative(Call& c) {
  c.out(0, c.emit("Cumulative",
                  {{"kind", std::int64_t{c.op() == "CumProd"}},
                   {"exclusive", c.i("exclusive", 0)},
                   {"reverse", c.i("reverse", 0)}},
                  {c.in(0), c.in(1)}));
}

/// Over all spatial dimensions, which stay as 1.
void lower_global_pool(Call& c) {
  const Val x = c.in(0);
  std::int64_t kind = c.op() == "GlobalAveragePool" ? 1 : 2;
  if (c.op() == "GlobalLpPool") {
    const std::int64_t p = c.i("p", 2);
    if (p != 1 && p != 2) c.refuse("p that is neither 1 nor 2");
    kind = p == 1 ? 5 : 6;
  }
  std::vector<std::int64_t> axes;
  for (std::size_t k = 2; k < c.rank(x); ++k) axes.push_back(static_cast<std::int64_t>(k));
  c.out(0, c.emit("Reduce", {{"kind", kind}, {"keep", std::int64_t{1}}, {"noop", std::int64_t{1}}},
                  {x, c.int_list(axes)}));
}

}  // namespace

std::span<const OpRow> rows_reduce() noexcept {
  static constexpr std::array kRows = {OpRow{"ArgMax", 1, lower_arg},
                                       OpRow{"ArgMin", 1, lower_arg},
                                       OpRow{"CumProd", 26, lower_cumulative},
                                       OpRow{"CumSum", 11, lower_cumulative},
                                       OpRow{"GlobalAveragePool", 1, lower_global_pool},
                                       OpRow{"GlobalLpPool", 2, lower_global_pool},
                                       OpRow{"GlobalMaxPool", 1, lower_global_pool},
                                       OpRow{"ReduceL1", 1, lower_reduce},
                                       OpRow{"ReduceL2", 1, lower_reduce},
                                       OpRow{"ReduceLogSum", 1, lower_reduce},
                                       OpRow{"ReduceLogSumExp", 1, lower_reduce},
                                       OpRow{"ReduceMax", 1, lower_reduce},
                                       OpRow{"ReduceMean", 1, lower_reduce},
                                       OpRow{"ReduceMin", 1, lower_reduce},
                                       OpRow{"ReduceProd", 1, lower_reduce},
                                       OpRow{"ReduceSum", 1, lower_reduce},
                                       OpRow{"ReduceSumSquare", 1, lower_reduce}};
  return kRows;
}

}  // namespace cyb::onnx
