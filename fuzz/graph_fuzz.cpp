// Fuzz target: a graph part. The first byte chooses the form (binary with its checksum made right,
// so that the content is reached; hex; TOML). A valid graph must survive both forms.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "base/hash.hpp"
#include "model/graph.hpp"

namespace {

std::optional<cyb::TensorSpec> weight(std::string_view name) {
  if (name == "w") return cyb::TensorSpec::of(cyb::DType::kF32, {8, 4});
  if (name == "q") return cyb::TensorSpec::of(cyb::DType::kQ8, {8, 32});
  if (name == "model.embed.weight") return cyb::TensorSpec::of(cyb::DType::kF16, {10, 4});
  if (name == "model.norm.weight") return cyb::TensorSpec::of(cyb::DType::kF32, {4});
  return std::nullopt;
}

cyb::Result<cyb::Graph> load(std::uint8_t form, std::span<const std::uint8_t> data) {
  const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
  if (form % 3 == 1) {
    CYB_ASSIGN(const std::vector<std::byte> bytes, cyb::graph_from_hex(text));
    return cyb::decode_graph(bytes);
  }
  if (form % 3 == 2) return cyb::parse_graph_toml(text);
  const auto raw = std::as_bytes(data);
  std::vector<std::byte> bytes(raw.begin(), raw.end());
  const std::uint32_t crc = cyb::crc32c(bytes);
  const auto trailer = std::as_bytes(std::span(&crc, 1));
  bytes.insert(bytes.end(), trailer.begin(), trailer.end());
  return cyb::decode_graph(bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto graph = load(data[0], std::span(data, size).subspan(1));
  if (!graph || !cyb::validate_graph(*graph, weight)) return 0;
  const std::vector<std::byte> bytes = cyb::encode_graph(*graph);
  const auto decoded = cyb::decode_graph(bytes);
  const std::string text = cyb::write_graph_toml(*graph);  // text: NaN keeps no payload there
  const auto parsed = cyb::parse_graph_toml(text);
  if (!decoded || cyb::encode_graph(*decoded) != bytes) std::abort();
  if (!parsed || cyb::write_graph_toml(*parsed) != text) std::abort();
  return 0;
}
