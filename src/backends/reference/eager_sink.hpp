// EagerSink: runs ops the moment they are emitted, on host-readable tensors. Fused steps run as
// their decomposition into it, so they have the bits of the plain ops by construction.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "backends/reference/kv_store.hpp"
#include "ops/op.hpp"

namespace cyb::reference {

/// The one sequence that KvCache works on.
struct SequenceState {
  KvAccess* kv = nullptr;
  std::span<const std::uint32_t> pages;
  std::uint32_t past_tokens = 0;  // P
  std::uint32_t n_rows = 0;       // S
};

/// KvCache on [1, G, S, D] inputs and [1, G, T, D] outputs. Errors: ShapeMismatch.
Result<void> run_kv_cache(const RefCall& call, const SequenceState& sequence);

class EagerSink final : public OpSink {
 public:
  EagerSink(ThreadPool* pool, SequenceState sequence, TensorView positions);

  /// A value that the caller keeps alive; kNoValue for an absent view.
  ValueId add(const TensorView& view);
  const TensorView& view(ValueId value) const { return values_[value].view; }
  /// Nothing is computed: own_bytes() tells what it would have taken.
  void measure() noexcept { measures_ = true; }
  /// Bytes of the values that it has made.
  std::uint64_t own_bytes() const noexcept { return own_bytes_; }

  Result<std::vector<ValueId>> emit(const Op& op, std::span<const ValueId> inputs) override;
  Result<ValueId> constant(std::span<const float> values, const Shape& shape) override;
  Result<ValueId> positions() override;
  const TensorSpec& spec(ValueId value) const override { return values_[value].spec; }

 private:
  struct Value {
    TensorSpec spec;
    TensorView view;
    std::unique_ptr<std::byte[]> own;
  };
  Result<MutableTensorView> allocate(const TensorSpec& spec, Value& value);

  ThreadPool* pool_;
  SequenceState sequence_;
  TensorView positions_;
  bool measures_ = false;
  std::uint64_t own_bytes_ = 0;
  std::deque<Value> values_;  // spec() stays valid while values are added
};

}  // namespace cyb::reference
