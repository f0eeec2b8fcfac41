// Split GGUF files: keys split.no (from 0), split.count, split.tensors.count; names end in
// -%05d-of-%05d.gguf.
#include "import/gguf/gguf_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_set>

#include "base/json_text.hpp"
#include "import/gguf/metadata.hpp"

namespace cyb::gguf {
namespace {

constexpr IntegerRange kParts{0, 99999};  // five digits in the name

struct PartName {
  std::string prefix;
  std::int64_t number = 0, count = 0;  // number from 1
};

std::optional<std::int64_t> five_digits(std::string_view text) noexcept {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.size() != 5 || text[0] == '-' || code != std::errc{} || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// "<prefix>-00001-of-00003.gguf" taken apart.
std::optional<PartName> parse_part_name(const std::string& path) {
  constexpr std::size_t kTail = std::string_view("-00001-of-00003.gguf").size();
  if (path.size() <= kTail) return std::nullopt;
  const std::string_view tail = std::string_view(path).substr(path.size() - kTail);
  if (tail[0] != '-' || tail.substr(6, 4) != "-of-" || tail.substr(15) != ".gguf")
    return std::nullopt;
  const auto number = five_digits(tail.substr(1, 5)), count = five_digits(tail.substr(10, 5));
  if (!number || !count || *number < 1 || *count < *number) return std::nullopt;
  return PartName{path.substr(0, path.size() - kTail), *number, *count};
}

std::string part_path(const PartName& name, std::int64_t number) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", name.prefix, number, name.count);
}

Result<Part> open_part(const std::string& path) {
  Part part;
  CYB_ASSIGN(part.file, MappedFile::open(path));
  auto header = GgufFile::parse(part.file->bytes());
  if (!header) return fail(std::move(header).error().in(path));
  part.header = std::move(*header);
  return part;
}

struct SplitKeys {
  std::int64_t number = 0, count = 1, n_tensors = -1;
};

Result<SplitKeys> split_keys(const GgufFile& header) {
  Metadata metadata(header.values);
  SplitKeys out;
  CYB_ASSIGN(out.count, metadata.integer_or("split.count", 1, kParts));
  CYB_ASSIGN(out.number, metadata.integer_or("split.no", 0, kParts));
  CYB_ASSIGN(out.n_tensors, metadata.integer_or("split.tensors.count", -1, {0, INT32_MAX}));
  return out;
}

/// A later part holds tensors only: metadata there would be read by nobody.
Result<void> check_later_part(const Part& part, std::int64_t number, std::int64_t count) {
  CYB_ASSIGN(const SplitKeys keys, split_keys(part.header));
  if (keys.number != number || keys.count != count) {
    return fail(gguf_error(fmt::format(
        "is part {} of {} by its own keys, want part {} of {}: a double or swapped part",
        keys.number + 1, keys.count, number + 1, count)));
  }
  for (const Value& value : part.header.values) {
    if (value.key.starts_with("split.") || value.key.starts_with("general.")) continue;
    return fail(gguf_error(
        fmt::format("key {} stands in a later part of a split GGUF", json_quote(value.key))));
  }
  return {};
}

Result<void> check_names(const GgufSource& source, const SplitKeys& keys) {
  std::unordered_set<std::string_view> seen;
  for (const Part& part : source.parts) {
    for (const TensorInfo& tensor : part.header.tensors) {
      if (seen.insert(tensor.name).second) continue;
      return fail(gguf_error(fmt::format("tensor {} stands in two parts", json_quote(tensor.name)))
                      .in(part.file->path()));
    }
  }
  if (keys.n_tensors >= 0 && static_cast<std::uint64_t>(keys.n_tensors) != seen.size()) {
    return fail(gguf_error(
        fmt::format("split.tensors.count = {}, the parts hold {}", keys.n_tensors, seen.size())));
  }
  return {};
}

Result<void> open_later_parts(const std::string& path, const SplitKeys& keys, GgufSource& source) {
  const auto name = parse_part_name(path);
  if (!name || name->number != 1 || name->count != keys.count) {
    return fail(gguf_error(
        fmt::format("{}: the first of {} parts must be named <prefix>-00001-of-{:05}.gguf", path,
                    keys.count, keys.count)));
  }
  for (std::int64_t i = 1; i < keys.count; ++i) {
    const std::string next = part_path(*name, i + 1);
    auto part = open_part(next);
    if (!part && part.error().kind() == ErrorKind::kIo) {
      return fail(
          std::move(part).error().in(fmt::format("part {} of {} is missing", i + 1, keys.count)));
    }
    if (!part) return fail(std::move(part).error());
    if (auto good = check_later_part(*part, i, keys.count); !good)
      return fail(std::move(good).error().in(next));
    source.parts.push_back(std::move(*part));
  }
  return {};
}

}  // namespace

std::uint64_t GgufSource::n_tensors() const noexcept {
  std::uint64_t n = 0;
  for (const Part& part : parts) n += part.header.tensors.size();
  return n;
}

Result<GgufSource> open_gguf(const std::string& path) {
  GgufSource source;
  CYB_ASSIGN(Part first, open_part(path));
  source.parts.push_back(std::move(first));
  auto keys = split_keys(source.parts[0].header);
  if (!keys) return fail(std::move(keys).error().in(path));
  if (keys->count <= 1) return source;
  if (keys->number != 0) {
    const auto name = parse_part_name(path);
    return fail(gguf_error(fmt::format("{}: part {} of {} of a split GGUF; name the first part{}",
                                       path, keys->number + 1, keys->count,
                                       name ? " " + part_path(*name, 1) : std::string())));
  }
  CYB_TRY(open_later_parts(path, *keys, source));
  if (auto good = check_names(source, *keys); !good) return fail(std::move(good).error().in(path));
  return source;
}

std::string without_part(const std::string& path) {
  const auto name = parse_part_name(path);
  return name ? name->prefix : path;
}

std::vector<std::string> part_paths(const std::string& path) {
  const auto name = parse_part_name(path);
  if (!name || name->number != 1) return {path};
  std::vector<std::string> out;
  for (std::int64_t i = 1; i <= name->count; ++i) out.push_back(part_path(*name, i));
  return out;
}

}  // namespace cyb::gguf
