// External data: only regular files inside the model's folder, reached by plain names, and only
// ranges that the shape of the tensor explains.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/checked.hpp"
#include "base/json_text.hpp"
#include "import/names.hpp"
#include "import/onnx/tensor.hpp"
#include "import/onnx/wire.hpp"

namespace cyb::onnx {
namespace {

Error external_error(const TensorProto& tensor, std::string_view what) {
  return onnx_error(fmt::format("tensor {}: external data: {}", json_quote(tensor.name), what));
}

const StringPair* find_pair(const TensorProto& tensor, std::string_view key) {
  const auto at = std::ranges::find(tensor.external_data, key, &StringPair::key);
  return at == tensor.external_data.end() ? nullptr : &*at;
}

/// A decimal number; `fallback` where the key is absent.
Result<std::uint64_t> number(const TensorProto& tensor, std::string_view key,
                             std::uint64_t fallback) {
  const StringPair* pair = find_pair(tensor, key);
  if (pair == nullptr) return fallback;
  std::uint64_t value = 0;
  const char* end = pair->value.data() + pair->value.size();
  const auto [at, code] = std::from_chars(pair->value.data(), end, value);
  if (code != std::errc{} || at != end)
    return fail(external_error(tensor, fmt::format("{} {}", key, json_quote(pair->value))));
  return value;
}

Result<void> check_keys(const TensorProto& tensor) {
  for (std::size_t i = 0; i < tensor.external_data.size(); ++i) {
    const std::string_view key = tensor.external_data[i].key;
    const bool known = key == "location" || key == "offset" || key == "length" ||
                       key == "checksum" || key == "basepath";
    if (!known) return fail(external_error(tensor, fmt::format("unknown key {}", json_quote(key))));
    if (find_pair(tensor, key) != &tensor.external_data[i])
      return fail(external_error(tensor, fmt::format("key {} twice", json_quote(key))));
  }
  return {};
}

}  // namespace

Result<std::string> external_location(const TensorProto& tensor) {
  CYB_TRY(check_keys(tensor));
  const StringPair* location = find_pair(tensor, "location");
  if (location == nullptr) return fail(external_error(tensor, "no location"));
  std::string text(location->value);
  const auto refused = [&](std::string_view why) {
    return fail(external_error(tensor, fmt::format("location {}: {}", json_quote(text), why)));
  };
  if (text.empty() || text.size() > 4096) return refused("not 1 to 4096 bytes");
  if (text.find_first_of("\\:") != std::string::npos) return refused("a backslash or colon");
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }))
    return refused("a control character");
  if (text.front() == '/') return refused("absolute");
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t slash = std::min(text.find('/', begin), text.size());
    const std::string_view name = std::string_view(text).substr(begin, slash - begin);
    if (name.empty() || name == "." || name == "..") return refused("not a path of plain names");
    begin = slash + 1;
  }
  return text;
}

Result<std::span<const std::byte>> ExternalFiles::read(const TensorProto& tensor,
                                                       std::uint64_t size_bytes, std::uint64_t unit,
                                                       std::shared_ptr<const void>& owner) {
  CYB_ASSIGN(const std::string location, external_location(tensor));
  if (folder_.empty()) return fail(external_error(tensor, "the model has no folder"));
  CYB_ASSIGN(const std::uint64_t offset, number(tensor, "offset", 0));
  CYB_ASSIGN(const std::uint64_t length, number(tensor, "length", size_bytes));
  if (length != size_bytes) {
    return fail(external_error(
        tensor, fmt::format("length {}, the shape needs {} bytes", length, size_bytes)));
  }
  if (offset % unit != 0)
    return fail(
        external_error(tensor, fmt::format("offset {} is no multiple of {}", offset, unit)));
  File& file = files_[location];
  if (file.mapped == nullptr) {
    auto mapped = MappedFile::open_beneath(folder_, location);
    if (!mapped) return fail(std::move(mapped).error());
    file.mapped = *std::move(mapped);
  }
  const std::span<const std::byte> all = file.mapped->bytes();
  if (!range_fits(offset, length, all.size())) {
    return fail(
        external_error(tensor, fmt::format("bytes {} + {} are outside {}, which has {}", offset,
                                           length, json_quote(location), all.size())));
  }
  const auto after = file.ranges.upper_bound(offset);
  const bool hits_next = after != file.ranges.end() && after->first < offset + length;
  const bool hits_previous =
      after != file.ranges.begin() && std::prev(after)->second > offset &&
      (std::prev(after)->first != offset || std::prev(after)->second != offset + length);
  if (length != 0 && (hits_next || hits_previous))
    return fail(external_error(tensor, "its bytes overlap those of another tensor"));
  if (length != 0) file.ranges.emplace(offset, offset + length);
  owner = file.mapped;
  return all.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
}

std::vector<std::string> ExternalFiles::paths() const {
  std::vector<std::string> out;
  for (const auto& [location, file] : files_) out.push_back(folder_ + "/" + location);
  return out;
}

}  // namespace cyb::onnx
