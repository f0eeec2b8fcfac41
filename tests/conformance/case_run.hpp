// One case of a table: its bytes, and what the reference gives for them.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>

#include "backends/reference/eager_sink.hpp"
#include "base/half.hpp"
#include "conformance/case.hpp"
#include "conformance/fill.hpp"

namespace cyb::test {

inline std::string path_of(const OpCases& table, const Case& c) {
  return std::string(op_info(table.tag).name) + "/" + c.name;
}

/// A case with its bytes.
struct Made {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorView> views;
  std::vector<TensorSpec> specs;

  Made(const Case& c, const std::string& path) {
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      const In& in = c.inputs[i];
      const bool absent = in.role == Role::kAbsent;
      bytes.push_back(absent ? std::vector<std::byte>{}
                             : make_bytes(in, path + "/" + std::to_string(i)));
      bytes.back().reserve(1);  // data() of an empty tensor is not null
      views.push_back(absent ? TensorView{} : TensorView{in.dtype, in.shape, bytes.back().data()});
      specs.push_back(absent ? TensorSpec::none() : TensorSpec::of(in.dtype, in.shape));
    }
  }
};

struct Output {
  TensorView view;
  std::vector<std::byte> bytes;  // NaNs canonical
  std::vector<float> values;     // of float outputs
};

inline Output take(const TensorView& view) {
  Output out{view, {}, {}};
  const auto n = static_cast<std::size_t>(view.shape.count());
  out.bytes.assign(view.data, view.data + tensor_bytes(view.dtype, view.shape).value());
  for (std::size_t i = 0; i < n; ++i) {
    if (view.dtype == DType::kF32) {
      auto v = view.as<float>()[i];
      if (std::isnan(v)) v = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(out.bytes.data() + i * 4, &v, 4);
      out.values.push_back(v);
    } else if (view.dtype == DType::kF16) {
      out.values.push_back(f16_to_f32(view.as<std::uint16_t>()[i]));
      const std::uint16_t nan = 0x7E00;
      if (std::isnan(out.values[i])) std::memcpy(out.bytes.data() + i * 2, &nan, 2);
    } else if (view.dtype == DType::kF64) {
      auto v = view.as<double>()[i];
      if (std::isnan(v)) v = std::numeric_limits<double>::quiet_NaN();
      std::memcpy(out.bytes.data() + i * 8, &v, 8);
    } else if (view.dtype == DType::kBf16 && std::isnan(bf16_to_f32(view.as<std::uint16_t>()[i]))) {
      const std::uint16_t nan = 0x7FC0;
      std::memcpy(out.bytes.data() + i * 2, &nan, 2);
    }
  }
  return out;
}

inline Result<std::vector<Output>> run_reference(const Case& c, const Made& made) {
  reference::EagerSink sink(nullptr, {}, {});
  std::vector<ValueId> inputs;
  for (const TensorView& view : made.views) inputs.push_back(sink.add(view));
  CYB_ASSIGN(const std::vector<ValueId> ids, sink.emit(c.op, inputs));
  std::vector<Output> outputs;
  for (const ValueId id : ids) outputs.push_back(take(sink.view(id)));
  return outputs;
}

}  // namespace cyb::test
