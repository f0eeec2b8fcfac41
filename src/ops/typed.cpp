// Single elements of any dtype.
#include "ops/typed.hpp"

#include <limits>

namespace cyb::ref {
namespace {

template <class T>
T load(const TensorView& view, std::size_t i) noexcept {
  T value;
  std::memcpy(&value, view.data + i * sizeof(T), sizeof(T));
  return value;
}

}  // namespace

std::int64_t integer_at(const TensorView& view, std::size_t i) noexcept {
  if (view.dtype == DType::kBool) return load<std::uint8_t>(view, i) != 0 ? 1 : 0;
  return visit_int(view.dtype, [&]<class T>(Type<T>) -> std::int64_t {
    const T value = load<T>(view, i);
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
      return static_cast<std::int64_t>(std::min(value, kMax));
    } else {
      return static_cast<std::int64_t>(value);
    }
  });
}

double number_at(const TensorView& view, std::size_t i) noexcept {
  switch (view.dtype) {
    case DType::kF64:
      return load<double>(view, i);
    case DType::kF32:
      return static_cast<double>(load<float>(view, i));
    case DType::kF16:
      return static_cast<double>(f16_to_f32(load<std::uint16_t>(view, i)));
    case DType::kBf16:
      return static_cast<double>(bf16_to_f32(load<std::uint16_t>(view, i)));
    case DType::kUint64:
      return static_cast<double>(load<std::uint64_t>(view, i));
    default:
      return static_cast<double>(integer_at(view, i));
  }
}

std::vector<std::int64_t> integers(const TensorView& view) {
  std::vector<std::int64_t> out;
  if (!view.present()) return out;
  const auto n = static_cast<std::size_t>(view.shape.count());
  for (std::size_t i = 0; i < n; ++i) out.push_back(integer_at(view, i));
  return out;
}

}  // namespace cyb::ref
