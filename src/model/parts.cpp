// The splitter. The frontmatter says which parts follow in which order; delimiter lines must agree,
// and the weights are the rest of the file, to the byte.
#include "model/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "model/format_error.hpp"
#include "model/toml_cursor.hpp"

namespace cyb {
namespace {

constexpr std::string_view kMark = "~~~";
constexpr std::size_t kProbeBytes = 4096;

struct PartFormats {
  std::string_view part;
  std::array<std::string_view, 3> formats;
};
constexpr std::array kPartFormats = {
    PartFormats{"card", {"md"}},
    PartFormats{"config", {"toml"}},
    PartFormats{"program", {"tri", "rs", "nox"}},
    PartFormats{"graph", {"hex", "toml"}},
    PartFormats{"tensors", {"toml"}},
    PartFormats{"vocab", {"toml"}},
    PartFormats{"chat", {"toml"}},
    PartFormats{"eval", {"toml"}},
    PartFormats{"pad", {"pad"}},
    PartFormats{"weights", {"tensors"}},
};

Error frontmatter_error(std::string_view key, std::string_view what) {
  return format_error("F31", fmt::format("frontmatter: {}: {}", key, what));
}

/// Offset of the next line at or after `from` (the start of a line) that starts with "~~~". Looks
/// for the tilde: a vocabulary has hundreds of thousands of lines, but few of those.
std::size_t find_mark(std::string_view text, std::size_t from) noexcept {
  for (std::size_t at = text.find(kMark[0], from); at != std::string_view::npos;
       at = text.find(kMark[0], at + 1)) {
    const bool line_start = at == from || text[at - 1] == '\n';
    if (line_start && text.substr(at).starts_with(kMark)) return at;
  }
  return std::string_view::npos;
}

Result<std::string_view> frontmatter_text(std::string_view text) {
  // A binary file is seen by its first page: no search through gigabytes.
  const std::string_view probe = text.substr(0, kProbeBytes);
  const bool binary = probe.find('\0') != std::string_view::npos;
  const std::string_view searched = binary ? probe : text;
  const std::size_t mark = find_mark(searched, 0);
  if (mark == std::string_view::npos) {
    return fail(format_error(
        "F01",
        fmt::format("not a .model file: no \"~~~\" line in the first {} bytes", searched.size())));
  }
  return text.substr(0, mark);
}

Result<void> check_types(const ConfigTable& frontmatter) {
  const ConfigValue* types = frontmatter.at("cyb.types");
  const ConfigArray* list = types == nullptr ? nullptr : types->array();
  std::string names;
  bool found = false;
  for (const ConfigValue& type : list == nullptr ? ConfigArray{} : *list) {
    const std::string* name = type.string();
    if (!names.empty()) names += ", ";
    names += name == nullptr ? std::string(type.type_name()) : '"' + printable(*name, 32) + '"';
    found |= name != nullptr && *name == "model";
  }
  if (found) return {};
  return fail(format_error(
      "F03", fmt::format("frontmatter: types [{}] does not contain \"model\"", printable(names))));
}

Result<void> check_version(const ConfigTable& frontmatter, bool allow_missing) {
  const ConfigValue* version = frontmatter.at("cyb.format_version");
  if (version == nullptr) {
    if (allow_missing) return {};
    return fail(format_error("F04",
                             "format_version is missing: encoding names are ambiguous; re-import, "
                             "or pass --legacy-encodings=ieee|fixed"));
  }
  const std::int64_t* number = version->integer();
  if (number != nullptr && *number == kFormatVersion) return {};
  const std::string shown =
      number != nullptr ? fmt::format("{}", *number) : fmt::format("({})", version->type_name());
  return fail(format_error("F04", fmt::format("format_version {} is not supported (reader: {})",
                                              shown, kFormatVersion)));
}

Result<void> check_name(const ConfigTable& frontmatter) {
  const ConfigValue* name = frontmatter.at("cyb.name");
  if (name == nullptr) return fail(frontmatter_error("cyb.name", "missing"));
  if (name->string() == nullptr)
    return fail(frontmatter_error("cyb.name", "wrong type, want string"));
  if (!is_model_name(*name->string())) {
    return fail(frontmatter_error("cyb.name", "out of range: 1 to 128 of A-Z a-z 0-9 . _ -"));
  }
  return {};
}

Result<void> check_frontmatter(const ConfigTable& frontmatter, const SplitFileOptions& options) {
  CYB_TRY(check_types(frontmatter));
  CYB_TRY(check_version(frontmatter, options.allow_missing_version));
  CYB_TRY(check_name(frontmatter));
  if (frontmatter.find("shards") != nullptr) {
    return fail(format_error("F50", "sharded .model files are not supported in format 3"));
  }
  return {};
}

struct Listing {
  std::vector<FilePart> parts;
  std::optional<std::int64_t> weights_size;
};

Result<void> check_entry(const FilePart& part, const ConfigTable& entry, std::size_t index) {
  if (!is_part_name(part.name)) {
    return fail(frontmatter_error(
        fmt::format("files[{}].name", index),
        fmt::format("out of range: \"{}\" is not a part name", printable(part.name, 32))));
  }
  if (part.name != "weights" && entry.find("size") != nullptr) {
    return fail(format_error("F08", fmt::format("part \"{}\": unknown binary part", part.name)));
  }
  const auto row = std::ranges::find(kPartFormats, std::string_view(part.name), &PartFormats::part);
  if (row == kPartFormats.end()) return {};
  if (!part.format.empty() && std::ranges::count(row->formats, part.format) != 0) return {};
  return fail(frontmatter_error(fmt::format("files[{}].format", index),
                                fmt::format("out of range: \"{}\" is not a format of {}",
                                            printable(part.format, 32), part.name)));
}

std::string text_of(const ConfigTable& table, std::string_view key) {
  const ConfigValue* value = table.find(key);
  return value == nullptr || value->string() == nullptr ? std::string() : *value->string();
}

Result<Listing> read_listing(const ConfigTable& frontmatter) {
  Listing out;
  std::set<std::string, std::less<>> seen;
  const ConfigValue* files = frontmatter.find("files");
  if (files != nullptr && files->array() == nullptr) {
    return fail(frontmatter_error("files", "wrong type, want array of tables"));
  }
  for (const ConfigValue& item : files == nullptr ? ConfigArray{} : *files->array()) {
    const std::size_t index = out.parts.size();
    const ConfigTable* entry = item.table();
    if (entry == nullptr) {
      return fail(frontmatter_error(fmt::format("files[{}]", index), "wrong type, want table"));
    }
    FilePart part{text_of(*entry, "name"), text_of(*entry, "format"), {}};
    CYB_TRY(check_entry(part, *entry, index));
    if (!seen.insert(part.name).second) return fail(duplicate_error("part", part.name));
    if (part.name == "weights") {
      const ConfigValue* size = entry->find("size");
      if (size != nullptr && size->integer() != nullptr) out.weights_size = *size->integer();
    }
    out.parts.push_back(std::move(part));
  }
  for (const std::string_view required : {"config", "tensors", "weights"}) {
    if (!seen.contains(required)) return fail(missing_part_error(required));
  }
  return out;
}

/// The weights are the last part, pad the last text part.
Result<void> check_order(const std::vector<FilePart>& parts) {
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const std::string& next = parts[i + 1].name;
    if (parts[i].name == "weights") {
      return fail(format_error(
          "F08", fmt::format("part \"weights\": binary part before text part \"{}\"", next)));
    }
    if (parts[i].name == "pad" && next != "weights") {
      return fail(format_error(
          "F07", fmt::format("unexpected part \"{}\": [[files]] expects \"weights\"", next)));
    }
  }
  return {};
}

/// Walks the delimiter lines from `at`; returns the offset of the first weight byte.
Result<std::uint64_t> read_bodies(std::string_view text, std::size_t at,
                                  std::vector<FilePart>& parts) {
  std::set<std::string_view> seen;
  for (FilePart& part : parts) {
    // `at` is a delimiter line or npos.
    if (at == std::string_view::npos) return fail(missing_part_error(part.name));
    const std::size_t end = text.find('\n', at);
    const std::string_view name = text.substr(at + kMark.size(), end - at - kMark.size());
    if (end != std::string_view::npos && seen.contains(name))
      return fail(duplicate_error("part", name));
    if (end == std::string_view::npos || name != part.name) {
      return fail(
          format_error("F07", fmt::format("unexpected part \"{}\": [[files]] expects \"{}\"",
                                          printable(name, 32), part.name)));
    }
    seen.insert(name);
    if (name == "weights") return end + 1;
    at = find_mark(text, end + 1);
    part.body = text.substr(end + 1, at == std::string_view::npos ? at : at - end - 1);
  }
  return fail(missing_part_error("weights"));  // not reached: read_listing requires it
}

Result<void> take_weights(std::span<const std::byte> bytes, std::optional<std::int64_t> stated,
                          SplitFile& out) {
  if (!stated) return fail(format_error("F13", "weights: size is missing"));
  if (*stated < 0) return fail(format_error("F13", fmt::format("weights: size is {}", *stated)));
  const std::uint64_t have = bytes.size() - out.weights_offset;
  const auto size = static_cast<std::uint64_t>(*stated);
  if (size > have) {
    return fail(format_error(
        "F11", fmt::format("truncated: weights need {} bytes, file has {}", size, have)));
  }
  if (size < have) {
    return fail(format_error("F12", fmt::format("{} bytes after the end of weights", have - size)));
  }
  out.weights = bytes.subspan(static_cast<std::size_t>(out.weights_offset));
  return {};
}

}  // namespace

const FilePart* SplitFile::find(std::string_view name) const noexcept {
  const auto it = std::ranges::find(parts, name, &FilePart::name);
  return it == parts.end() ? nullptr : &*it;
}

std::string_view SplitFile::body(std::string_view name) const noexcept {
  const FilePart* part = find(name);
  return part == nullptr ? std::string_view() : part->body;
}

bool is_part_name(std::string_view name) noexcept {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && name.size() <= 32 && lower(name[0]) &&
         std::ranges::all_of(name, [&](char c) {
           return lower(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
         });
}

bool is_model_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
}

Result<SplitFile> split_model_file(std::span<const std::byte> bytes,
                                   const SplitFileOptions& options) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string_view text = all.substr(
      0, static_cast<std::size_t>(std::min<std::uint64_t>(all.size(), options.text_limit_bytes)));
  SplitFile out;
  CYB_ASSIGN(const std::string_view head, frontmatter_text(text));
  CYB_ASSIGN(out.frontmatter, parse_toml(head, "frontmatter"));
  CYB_TRY(check_frontmatter(out.frontmatter, options));
  CYB_ASSIGN(Listing listing, read_listing(out.frontmatter));
  CYB_TRY(check_order(listing.parts));
  out.parts = std::move(listing.parts);
  CYB_ASSIGN(out.weights_offset, read_bodies(text, head.size(), out.parts));
  CYB_TRY(take_weights(bytes, listing.weights_size, out));
  return out;
}

}  // namespace cyb
