// The backend object and its creation.
#include "backends/cpu/cpu_backend.hpp"

#include <fmt/format.h>

#include <array>

#include "backends/cpu/cpu_executable.hpp"
#include "backends/cpu/fused.hpp"

namespace cyb {
namespace cpu {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(const KernelTable& kernels, const BackendOptions& options)
      : kernels_(kernels), options_(options), pool_(options.n_threads) {}

  std::string_view name() const noexcept override { return "cpu"; }
  std::string description() const override {
    return fmt::format("cpu ({}, {} thread{})", kernels_.isa, pool_.size(),
                       pool_.size() == 1 ? "" : "s");
  }
  NumericMode numeric_mode() const noexcept override {
    return options_.exact ? NumericMode::kExact : NumericMode::kQ8Act;
  }
  DType default_kv_dtype() const noexcept override {
    return options_.exact ? DType::kF32 : DType::kF16;
  }
  bool supports(const Op& op, std::span<const TensorSpec> inputs) const override {
    return has_kernel(op, inputs);
  }
  bool fuses(const Step& step) const override { return can_fuse(step); }

  std::string layout_id() const override { return kPanelLayoutId; }
  std::uint64_t packed_bytes(const WeightSource& source, WeightUse use) const override {
    return CpuWeight::packed_size(source, use).value_or(0);
  }
  Result<void> pack(const WeightSource& source, WeightUse,
                    std::span<std::byte> out) const override {
    return CpuWeight::pack(source, out, pool_);
  }
  Result<std::unique_ptr<Weight>> load_weight(const WeightSource& source, WeightUse use,
                                              std::span<const std::byte> packed) override {
    return CpuWeight::load(source, use, packed, pool_);
  }
  Result<std::unique_ptr<KvStore>> alloc_kv(const KvLayout& layout,
                                            std::uint32_t n_pages) override {
    return CpuKvStore::create(layout, n_pages);
  }
  Result<std::unique_ptr<Executable>> compile(Plan plan) override {
    return CpuExecutable::compile(std::move(plan),
                                  {&kernels_, &pool_, options_.exact, options_.allow_fallback});
  }

 private:
  const KernelTable& kernels_;
  BackendOptions options_;
  mutable ThreadPool pool_;
};

Error unknown_isa(std::string_view isa) {
  std::array<const char*, 8> names{};
  const std::size_t n = available_isas(names.data(), names.size());
  std::string list;
  for (std::size_t i = 0; i < n; ++i) list += (i == 0 ? "" : ", ") + std::string(names[i]);
  return Error(
      ErrorKind::kBackendInit,
      fmt::format("cpu: cannot start: no \"{}\" kernels on this machine; it has {}", isa, list));
}

}  // namespace
}  // namespace cpu

Result<std::shared_ptr<Backend>> create_cpu_backend(const BackendOptions& options) {
  const cpu::KernelTable* kernels = cpu::find_kernels(options.isa);
  if (kernels == nullptr) return fail(cpu::unknown_isa(options.isa));
  return std::make_shared<cpu::CpuBackend>(*kernels, options);
}

}  // namespace cyb
