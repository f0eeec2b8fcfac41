// Loading weights: in place on the host, else copied or decoded into device memory.
#include "backends/reference/weight.hpp"

#include <fmt/format.h>

#include <cstring>

namespace cyb::reference {
namespace {

bool aligned_for(DType dtype, const std::byte* data) {
  return dtype != DType::kF32 || reinterpret_cast<std::uintptr_t>(data) % alignof(float) == 0;
}

}  // namespace

Result<std::unique_ptr<ReferenceWeight>> ReferenceWeight::load(DeviceMemory& memory,
                                                               const WeightSource& source,
                                                               WeightUse use) {
  const auto need = tensor_bytes(source.dtype, source.shape);
  if (!need || *need != source.bytes.size()) {
    return fail(Error(ErrorKind::kWeightFormat,
                      fmt::format("tensor \"{}\" is declared {} but has {} bytes", source.name,
                                  dtype_name(source.dtype), source.bytes.size())));
  }
  std::unique_ptr<ReferenceWeight> weight(new ReferenceWeight(source));
  const bool decode = use == WeightUse::kVector && source.dtype != DType::kF32 &&
                      format_info(source.dtype).cls != DTypeClass::kInt;
  const DecodeFn decoder = format_info(source.dtype).decode;
  if (decode && decoder == nullptr) {
    return fail(not_built(fmt::format("decoding of {}", dtype_name(source.dtype))));
  }
  const DType dtype = decode ? DType::kF32 : source.dtype;
  weight->view_ = {dtype, source.shape, source.bytes.data()};
  if (!decode && memory.host_visible() && aligned_for(dtype, source.bytes.data())) return weight;
  weight->own_bytes_ = tensor_bytes(dtype, source.shape).value_or(0);
  CYB_ASSIGN(weight->block_, memory.allocate(weight->own_bytes_, source.name));
  weight->view_.data = weight->block_->data();
  memory.execute([&] {  // upload
    std::byte* to = weight->block_->data();
    if (decode) {
      decoder(source.bytes.data(), reinterpret_cast<float*>(to),
              static_cast<std::size_t>(source.shape.count()));
    } else if (!source.bytes.empty()) {
      std::memcpy(to, source.bytes.data(), source.bytes.size());
    }
  });
  return weight;
}

}  // namespace cyb::reference
