// Loading and packing of weights; everything about a source is checked here, so that kernels need
// not.
#include "backends/cpu/cpu_weight.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>

#include "base/checked.hpp"
#include "base/thread_pool.hpp"

namespace cyb::cpu {
namespace {

bool wants_panels(WeightUse use) {
  return (static_cast<unsigned>(use) & static_cast<unsigned>(WeightUse::kMatmul)) != 0;
}

Error wrong_bytes(const WeightSource& source) {
  return Error(ErrorKind::kWeightFormat,
               fmt::format("tensor \"{}\" is declared {} but has {} bytes", source.name,
                           dtype_name(source.dtype), source.bytes.size()));
}

Result<void> check_bytes(const WeightSource& source) {
  const auto size = tensor_bytes(source.dtype, source.shape);
  if (!size || *size != source.bytes.size()) return fail(wrong_bytes(source));
  return {};
}

/// Panels are read once per token, front to back: large pages help a little, where the system has
/// them.
void ask_for_large_pages([[maybe_unused]] Buffer& buffer) {
#ifdef MADV_HUGEPAGE
  if (buffer.size() >= (std::size_t{1} << 21))
    (void)::madvise(buffer.data(), buffer.size(), MADV_HUGEPAGE);
#endif
}

struct PackJob {
  PanelFormat format;
  const std::byte* source;
  std::size_t n_out, n_in, panel_size;
  std::byte* out;
  void operator()(unsigned thread, unsigned n_threads) const noexcept {
    const std::size_t n = n_panels(n_out);
    for (std::size_t p = n * thread / n_threads; p < n * (thread + 1) / n_threads; ++p) {
      pack_panel(format, source, n_out, n_in, p, out + p * panel_size);
    }
  }
};

}  // namespace

Result<std::uint64_t> CpuWeight::packed_size(const WeightSource& source, WeightUse use) {
  if (!wants_panels(use)) return std::uint64_t{0};
  const auto format = panel_format(source.dtype);
  if (!format) return fail(unsupported_op("Matmul", "cpu", dtype_name(source.dtype)));
  if (source.shape.rank() != 2 || source.shape[0] <= 0 || source.shape[1] <= 0) {
    return fail(shape_mismatch("Matmul", "a weight [out, in]", source.shape.text()));
  }
  CYB_TRY(check_bytes(source));
  const auto n_in = static_cast<std::size_t>(source.shape[1]);
  const auto bytes = checked_mul(panel_bytes(*format, n_in),
                                 cpu::n_panels(static_cast<std::size_t>(source.shape[0])));
  if (!bytes) return fail(wrong_bytes(source));
  return *bytes;
}

Result<void> CpuWeight::pack(const WeightSource& source, std::span<std::byte> out,
                             ThreadPool& pool) {
  CYB_ASSIGN(const std::uint64_t size, packed_size(source, WeightUse::kMatmul));
  if (size != out.size()) return fail(internal_error("packed weight of another size"));
  const PanelFormat format = *panel_format(source.dtype);
  const auto n_in = static_cast<std::size_t>(source.shape[1]);
  PackJob job{format, source.bytes.data(),       static_cast<std::size_t>(source.shape[0]),
              n_in,   panel_bytes(format, n_in), out.data()};
  pool.run(job);
  return {};
}

Result<void> CpuWeight::make_vector() {
  const FormatInfo& info = format_info(dtype());
  const auto n = static_cast<std::size_t>(shape().count());
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes_.data()) % alignof(float) == 0;
  if (dtype() == DType::kF32 && aligned) {
    vector_ = reinterpret_cast<const float*>(bytes_.data());
    return {};
  }
  if (info.decode == nullptr) return {};
  CYB_ASSIGN(own_, Buffer::allocate(n * sizeof(float), "cpu"));
  info.decode(bytes_.data(), own_.as<float>(), n);
  vector_ = own_.as<float>();
  own_bytes_ = own_.size();
  return {};
}

std::uint64_t CpuWeight::own_bytes() const noexcept {
  const std::lock_guard lock(derived_mutex_);
  std::uint64_t total = own_bytes_;
  for (const auto& [key, made] : derived_) {
    if (const auto held = made.lock()) total += held->size();
  }
  return total;
}

Result<std::shared_ptr<const Buffer>> CpuWeight::derived(
    const Derived& key, const std::function<Result<Buffer>()>& make) const {
  const std::lock_guard lock(derived_mutex_);
  for (const auto& [made_for, made] : derived_) {
    if (auto found = made.lock(); found != nullptr && made_for == key) return found;
  }
  CYB_ASSIGN(Buffer buffer, make());
  auto made = std::make_shared<const Buffer>(std::move(buffer));
  std::erase_if(derived_, [](const auto& entry) { return entry.second.expired(); });
  derived_.emplace_back(key, made);
  return made;
}

Result<std::unique_ptr<Weight>> CpuWeight::load(const WeightSource& source, WeightUse use,
                                                std::span<const std::byte> packed,
                                                ThreadPool& pool) {
  CYB_TRY(check_bytes(source));
  std::unique_ptr<CpuWeight> weight(new CpuWeight(source));
  if (use == WeightUse::kVector) {
    CYB_TRY(weight->make_vector());
    return std::unique_ptr<Weight>(std::move(weight));
  }
  CYB_ASSIGN(const std::uint64_t size, packed_size(source, use));
  if (size == 0) return std::unique_ptr<Weight>(std::move(weight));
  if (packed.empty()) {
    CYB_ASSIGN(weight->own_, Buffer::allocate(size, "cpu"));
    ask_for_large_pages(weight->own_);
    CYB_TRY(pack(source, weight->own_.bytes(), pool));
    packed = weight->own_.bytes();
  } else if (packed.size() != size) {
    return fail(internal_error("packed weight of another size"));
  }
  weight->format_ = *panel_format(source.dtype);
  weight->n_out_ = static_cast<std::size_t>(source.shape[0]);
  weight->n_in_ = static_cast<std::size_t>(source.shape[1]);
  weight->panel_size_ = panel_bytes(weight->format_, weight->n_in_);
  weight->panels_ = reinterpret_cast<const std::uint8_t*>(packed.data());
  weight->own_bytes_ = size;
  return std::unique_ptr<Weight>(std::move(weight));
}

}  // namespace cyb::cpu
