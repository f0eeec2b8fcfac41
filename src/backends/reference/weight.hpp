// ReferenceWeight: a weight as stored, or decoded to f32 where it is used as a vector.
#pragma once

#include "backends/backend.hpp"
#include "backends/reference/device_memory.hpp"

namespace cyb::reference {

class ReferenceWeight final : public Weight {
 public:
  static Result<std::unique_ptr<ReferenceWeight>> load(DeviceMemory& memory,
                                                       const WeightSource& source, WeightUse use);

  std::uint64_t own_bytes() const noexcept override { return own_bytes_; }
  /// Of dtype f32 for vectors, else as stored. To be followed on the device only.
  TensorView view() const noexcept { return view_; }

 private:
  explicit ReferenceWeight(const WeightSource& source) : Weight(source) {}

  std::unique_ptr<DeviceBlock> block_;  // null: used in place
  std::uint64_t own_bytes_ = 0;
  TensorView view_;
};

}  // namespace cyb::reference
