// The backend contract: memory, weights, KV stores and compiled plans. A backend is thread-safe; an
// Executable serves one run at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "backends/plan.hpp"
#include "base/result.hpp"
#include "tensor/tensor_view.hpp"

namespace cyb {

/// kExact: f32 or f16 activations, meets class M. kQ8Act / kQ16Act: activations rounded to int8 /
/// int16 blocks before dot products with block weights.
enum class NumericMode : std::uint8_t { kExact, kQ8Act, kQ16Act };

struct BackendOptions {
  unsigned n_threads = 0;  // 0: one per physical core
  bool exact = false;      // f32 activations and KV
  std::string isa;  // "": best of the machine; else "avx2", "avx3", ... (CYB_ISA); unknown or
                    // absent on this machine: an error
  bool allow_fallback = true;  // steps without a kernel of this backend may run on the reference
};

/// How a weight is read; a weight may be used in both ways (tied embeddings). kVector: as f32.
/// kMatmul: as the matrix of a product. kGather: as it is stored, element by element.
enum class WeightUse : std::uint8_t { kVector = 1, kMatmul = 2, kGather = 4, kMatmulAndGather = 6 };

/// A tensor of a model file. `bytes` stays valid as long as the Weight made from it (a mapping held
/// by the model).
struct WeightSource {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;  // [out, in] for matmul; rows of whole blocks
  std::span<const std::byte> bytes;
};

/// A weight as a backend holds it: in place, copied, or repacked.
class Weight {
 public:
  virtual ~Weight() = default;
  const std::string& name() const noexcept { return name_; }
  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  /// Bytes beside the source mapping that this weight occupies (0: used in place).
  virtual std::uint64_t own_bytes() const noexcept = 0;

 protected:
  explicit Weight(const WeightSource& s) : name_(s.name), dtype_(s.dtype), shape_(s.shape) {}

 private:
  std::string name_;
  DType dtype_;
  Shape shape_;
};

struct KvLayerShape {
  std::uint32_t n_kv_heads = 0;  // G
  std::uint32_t head_dim = 0;    // D
  std::uint32_t window = 0;      // keys that a query sees, its own included; 0: all before it
};

struct KvLayout {
  std::vector<KvLayerShape> layers;
  DType dtype = DType::kF16;  // f32, f16, q8, q4 (blocks of 32 channels of one position)
  std::uint32_t page_tokens =
      16;  // positions per page; a page holds K and V of all layers for them
};

/// KV pages of all layers. What is inside a page is the backend's own layout; K is stored after
/// rope.
class KvStore {
 public:
  virtual ~KvStore() = default;
  virtual const KvLayout& layout() const noexcept = 0;
  virtual std::uint32_t n_pages() const noexcept = 0;
  virtual std::uint64_t page_bytes() const noexcept = 0;
  /// The part of page_bytes() that holds the layers with a window, where a store can give it back
  /// alone; 0: it cannot, and keeps all of every page.
  virtual std::uint64_t windowed_bytes() const noexcept { return 0; }
  /// No query will see this page's keys in layers with a window again: their memory goes back to
  /// the system until they are written anew. Until then they read as zeros.
  virtual void forget_windowed(std::uint32_t /*page*/) noexcept {}
  /// Copies one page (copy on write of shared prefixes).
  virtual Result<void> copy_page(std::uint32_t from, std::uint32_t to) = 0;
  /// A page's bytes [page_bytes()] to and from the host, for a file that the same backend reads
  /// again. Errors: NotBuilt where the backend keeps them to itself.
  virtual Result<void> read_page(std::uint32_t /*page*/, std::span<std::byte> /*to*/) const {
    return fail(not_built("saving the KV pages of this backend"));
  }
  virtual Result<void> write_page(std::uint32_t /*page*/, std::span<const std::byte> /*from*/) {
    return fail(not_built("restoring the KV pages of this backend"));
  }
};

/// The largest run that an executable will see.
struct RunLimits {
  std::uint32_t kv_pages = 0;         // of the store
  std::uint32_t sequence_tokens = 0;  // positions of the longest sequence
};

/// Kernels of a plan, chosen once. submit() starts a run and copies what it needs of `params`;
/// sync() waits and reports errors.
class Executable {
 public:
  virtual ~Executable() = default;
  /// No allocation after the first run of a size. Checks N <= max_tokens, R <= max_outputs, ids in
  /// range.
  virtual Result<void> submit(const StepParams& params) = 0;
  /// Until sync() returned, no result is visible to the host. `stop` is looked at between steps;
  /// then Cancelled.
  virtual Result<void> sync(std::stop_token stop = {}) = 0;
  /// Host view of plan.outputs[i] after sync(), f32 [rows, ...], valid until the next submit().
  virtual Result<std::span<const float>> output(std::size_t i);
  /// The same for any dtype, with its shape.
  virtual Result<TensorView> output_tensor(std::size_t i) = 0;
  /// Steps that run on the reference because the backend has no kernel.
  virtual std::uint32_t n_fallback_steps() const noexcept = 0;
  /// True for a step that n_fallback_steps() counts.
  virtual bool is_fallback(std::size_t /*step*/) const noexcept { return false; }
  /// Allocates what runs up to these limits need beside the plan, so that none of them allocates.
  /// Errors: OutOfMemory.
  virtual Result<void> reserve(const RunLimits& /*limits*/) { return {}; }
  /// Memory of its own, weights apart.
  virtual std::uint64_t own_bytes() const noexcept { return 0; }
  /// What own_bytes() comes to in runs up to these limits (after reserve()).
  virtual std::uint64_t most_bytes(const RunLimits& /*limits*/) const { return own_bytes(); }
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const noexcept = 0;
  /// "cpu (AVX2, 2 threads)" for people.
  virtual std::string description() const = 0;
  virtual NumericMode numeric_mode() const noexcept = 0;
  virtual DType default_kv_dtype() const noexcept = 0;
  /// Own kernel for this op on these operands (fallback not counted). Pure: same answer for same
  /// arguments.
  virtual bool supports(const Op& op, std::span<const TensorSpec> inputs) const = 0;

  /// True where a step with these fused ops runs as one. The bits are those of the ops one by one
  /// on the reference; elsewhere the difference is within class F. Pure.
  virtual bool fuses(const Step& /*step*/) const { return false; }

  /// Names the packed layout ("cpu-panel16-1-avx2"); weights packed under another name must not be
  /// loaded.
  virtual std::string layout_id() const = 0;
  /// Bytes that pack() writes for this weight; 0: the weight is used in place and pack() is never
  /// called.
  virtual std::uint64_t packed_bytes(const WeightSource& source, WeightUse use) const = 0;
  /// Repacks into `out` (packed_bytes() long, 64-byte aligned). Deterministic; runs on the
  /// backend's threads.
  virtual Result<void> pack(const WeightSource& source, WeightUse use,
                            std::span<std::byte> out) const = 0;
  /// `packed`: what pack() wrote, kept alive by the caller as long as the weight (e.g. a mapped
  /// cache file); empty: the backend packs and owns, or needs none.
  virtual Result<std::unique_ptr<Weight>> load_weight(const WeightSource& source, WeightUse use,
                                                      std::span<const std::byte> packed) = 0;
  virtual Result<std::unique_ptr<KvStore>> alloc_kv(const KvLayout& layout,
                                                    std::uint32_t n_pages) = 0;
  /// The backend must outlive its executables. Errors: UnsupportedOp, D6 when fallback is off,
  /// OutOfMemory.
  virtual Result<std::unique_ptr<Executable>> compile(Plan plan) = 0;
};

/// Names in backend_list.inc; "auto" takes the best one present. Unknown: D7. Known but not in this
/// build or machine: BackendInit or D7.
Result<std::shared_ptr<Backend>> create_backend(std::string_view name,
                                                const BackendOptions& options);
/// "reference", "cpu", ... as built in.
std::vector<std::string_view> backend_names();

}  // namespace cyb
