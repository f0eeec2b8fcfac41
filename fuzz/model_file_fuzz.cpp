// Fuzz target: a `.model` file. Parsing, everything lazy, and verification must end in a value or
// an error, and the canonical text of an accepted config must read back to itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "model/model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto model = cyb::Model::parse(bytes, {.legacy_encodings = cyb::LegacyEncodings::kIeee});
  if (!model) {
    static_cast<void>(model.error().text());
    return 0;
  }
  static_cast<void>((*model)->vocab());
  static_cast<void>((*model)->graph());
  static_cast<void>((*model)->verify());
  for (const cyb::TensorEntry& entry : (*model)->tensors()) {
    if ((*model)->tensor_bytes(entry).size() != entry.size_bytes) std::abort();
    if ((*model)->find_tensor(entry.name) != &entry) std::abort();
  }
  const std::string text = cyb::write_toml((*model)->config());
  const auto again = cyb::parse_toml(text, "config");
  if (!again || cyb::write_toml(*again) != text) std::abort();
  return 0;
}
