// Backend object of the reference: supports everything in the registry, packs nothing.
#include "backends/reference/reference_backend.hpp"

#include <fmt/format.h>

#include "backends/reference/executable.hpp"
#include "backends/reference/fused.hpp"
#include "backends/reference/kv_store.hpp"
#include "backends/reference/weight.hpp"

namespace cyb {
namespace reference {
namespace {

class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(std::shared_ptr<Device> device) : device_(std::move(device)) {}

  std::string_view name() const noexcept override { return device_->name; }
  std::string description() const override {
    const unsigned n = device_->pool->size();
    return fmt::format("{} (plain f32, {} thread{})", device_->name, n, n == 1 ? "" : "s");
  }
  NumericMode numeric_mode() const noexcept override { return NumericMode::kExact; }
  DType default_kv_dtype() const noexcept override { return DType::kF32; }
  bool supports(const Op& op, std::span<const TensorSpec> inputs) const override {
    return infer(op, inputs).has_value();
  }
  bool fuses(const Step& step) const override { return check_fused_ops(step).has_value(); }

  std::string layout_id() const override { return "as-stored"; }
  std::uint64_t packed_bytes(const WeightSource&, WeightUse) const override { return 0; }
  Result<void> pack(const WeightSource&, WeightUse, std::span<std::byte>) const override {
    return fail(internal_error("the reference packs nothing"));
  }
  Result<std::unique_ptr<Weight>> load_weight(const WeightSource& source, WeightUse use,
                                              std::span<const std::byte>) override {
    return ReferenceWeight::load(*device_->memory, source, use);
  }
  Result<std::unique_ptr<KvStore>> alloc_kv(const KvLayout& layout,
                                            std::uint32_t n_pages) override {
    return ReferenceKvStore::create(device_->memory, layout, n_pages);
  }
  Result<std::unique_ptr<Executable>> compile(Plan plan) override {
    return ReferenceExecutable::compile(device_, std::move(plan));
  }

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace

Result<std::shared_ptr<Backend>> make_backend(std::string_view name, const BackendOptions& options,
                                              std::shared_ptr<DeviceMemory> memory) {
  auto device = std::make_shared<Device>();
  device->name = name;
  device->memory = std::move(memory);
  device->pool = std::make_unique<ThreadPool>(options.n_threads);
  return std::make_shared<ReferenceBackend>(std::move(device));
}

}  // namespace reference

Result<std::shared_ptr<Backend>> create_reference_backend(const BackendOptions& options) {
  return reference::make_backend("reference", options, reference::make_host_memory());
}

}  // namespace cyb
