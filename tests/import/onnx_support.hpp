// ONNX bytes made by hand: for files that no library would write.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace cyb::test {

/// A protobuf message under construction.
class Proto {
 public:
  Proto& number(std::uint32_t field, std::uint64_t value) {
    varint(std::uint64_t{field} << 3);
    varint(value);
    return *this;
  }
  Proto& bytes(std::uint32_t field, std::string_view value) {
    varint(std::uint64_t{field} << 3 | 2);
    varint(value.size());
    out_.append(value);
    return *this;
  }
  Proto& message(std::uint32_t field, const Proto& value) { return bytes(field, value.out_); }
  Proto& raw(std::string_view value) {
    out_.append(value);
    return *this;
  }
  const std::string& text() const { return out_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }
  std::string out_;
};

/// An f32 value of these dimensions; -1 is a symbol called "n".
inline Proto onnx_value(std::string_view name, std::initializer_list<std::int64_t> dims) {
  Proto shape;
  for (const std::int64_t d : dims) {
    if (d < 0) {
      shape.message(1, Proto().bytes(2, "n"));
    } else {
      shape.message(1, Proto().number(1, static_cast<std::uint64_t>(d)));
    }
  }
  const Proto tensor = Proto().number(1, 1).message(2, shape);
  return Proto().bytes(1, name).message(2, Proto().message(1, tensor));
}

inline Proto onnx_node(std::string_view op, std::initializer_list<std::string_view> inputs,
                       std::string_view output, std::string_view domain = {}) {
  Proto out;
  for (const std::string_view name : inputs) out.bytes(1, name);
  out.bytes(2, output).bytes(4, op);
  return domain.empty() ? out : out.bytes(7, domain);
}

/// A model of opset 17 with this graph.
inline std::string onnx_model(const Proto& graph) {
  return Proto()
      .number(1, 8)
      .message(7, graph)
      .message(8, Proto().bytes(1, "").number(2, 17))
      .text();
}

/// f32 [n] in the external file `location`, with more entries as given.
inline Proto onnx_external(std::string_view name, std::int64_t n, std::string_view location,
                           const std::vector<std::pair<std::string, std::string>>& more = {}) {
  Proto out;
  out.number(1, static_cast<std::uint64_t>(n)).number(2, 1).bytes(8, name);
  out.message(13, Proto().bytes(1, "location").bytes(2, location));
  for (const auto& [key, value] : more) out.message(13, Proto().bytes(1, key).bytes(2, value));
  return out.number(14, 1);
}

}  // namespace cyb::test
