// The question is put to the backend as a product of one f32 row with the matrix.
#include "runtime/held_model.hpp"

#include <fmt/format.h>

#include <array>
#include <map>

#include "model/scale.hpp"
#include "ops/op.hpp"

namespace cyb {
namespace {

bool multiplies(const Backend& backend, const TensorEntry& entry) {
  Op op{};
  op.tag = OpTag::kMatmul;
  const std::array inputs = {TensorSpec::of(DType::kF32, Shape{1, entry.shape[1]}),
                             TensorSpec::of(entry.dtype, entry.shape)};
  return backend.supports(op, inputs);
}

/// Encodings that are weights only; the others are left to the ops that read them.
bool is_weight_encoding(DType dtype) noexcept {
  return is_block(dtype) || dtype == DType::kFp8e4m3 || dtype == DType::kFp8e5m2;
}

}  // namespace

HeldModel held_model(std::shared_ptr<const Model> model, const Backend& backend, bool measure) {
  const Model& stored = *model;
  struct Count {
    std::uint64_t n = 0, bytes = 0;
  };
  std::map<std::string_view, Count> held;
  const auto wanted = [&](const TensorEntry& entry) {
    if (!is_weight_encoding(entry.dtype) || entry.size_bytes == 0) return false;
    const bool scaled =
        has_scale_sibling(entry.dtype) && stored.find_tensor(entry.name + ".scale") != nullptr;
    if (!scaled && (entry.shape.rank() != 2 || multiplies(backend, entry))) return false;
    Count& count = held[dtype_name(entry.dtype)];
    ++count.n;
    count.bytes += tensor_bytes(DType::kF32, entry.shape).value_or(0);
    return true;
  };
  HeldModel out;
  out.model = measure ? Model::with_measured(std::move(model), wanted)
                      : Model::with_decoded(std::move(model), wanted);
  for (const auto& [name, count] : held) {
    out.note +=
        fmt::format("{}{} {} tensors are held as f32 in {} MiB", out.note.empty() ? "" : "; ",
                    count.n, name, (count.bytes + (1 << 20) - 1) >> 20);
  }
  if (!out.note.empty()) out.note += fmt::format(": {} has no products with them", backend.name());
  return out;
}

}  // namespace cyb
