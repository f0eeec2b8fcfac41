// Reading and writing of the index. Rows that cannot be understood are refused, not dropped: the
// next write would lose them; store_rebuild.cpp keeps the file aside before it salvages the rest.
#include "model/store_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.hpp"
#include "model/config.hpp"
#include "model/format_error.hpp"
#include "model/parts.hpp"

namespace cyb {
namespace {

constexpr std::int64_t kIndexVersion = 1;
constexpr std::uint64_t kMaxIndexBytes = std::uint64_t{64} << 20;

Error damaged(std::string_view what) {
  return format_error("", fmt::format("store index: {}", what));
}

Result<Digest> digest_of(const ConfigTable& row, std::string_view key) {
  const ConfigValue* value = row.find(key);
  const auto digest = value == nullptr || value->string() == nullptr
                          ? std::nullopt
                          : parse_digest(*value->string());
  if (!digest) return fail(damaged(fmt::format("{} is not an id", key)));
  return *digest;
}

Result<std::int64_t> integer_of(const ConfigTable& row, std::string_view key) {
  const ConfigValue* value = row.find(key);
  if (value == nullptr || value->integer() == nullptr)
    return fail(damaged(fmt::format("{} is no integer", key)));
  return *value->integer();
}

Result<std::string> string_of(const ConfigTable& row, std::string_view key) {
  const ConfigValue* value = row.find(key);
  if (value == nullptr || value->string() == nullptr)
    return fail(damaged(fmt::format("{} is no string", key)));
  return *value->string();
}

/// Calls `each` for every table of the array `key`.
template <class F>
Result<void> rows(const ConfigTable& root, std::string_view key, F each) {
  const ConfigValue* list = root.find(key);
  if (list == nullptr) return {};
  if (list->array() == nullptr) return fail(damaged(fmt::format("{} is no array", key)));
  for (const ConfigValue& item : *list->array()) {
    if (item.table() == nullptr) return fail(damaged(fmt::format("{} holds no table", key)));
    CYB_TRY(each(*item.table()));
  }
  return {};
}

std::int64_t count_rows(const StoreIndex& index) noexcept {
  return static_cast<std::int64_t>(index.models.size() + index.names.size() + index.sources.size());
}

Result<void> check_version(const ConfigTable& root) {
  CYB_ASSIGN(const std::int64_t version, integer_of(root, "version"));
  if (version < 1) return fail(damaged(fmt::format("version {} never was", version)));
  if (version == kIndexVersion) return {};
  return fail(Error(ErrorKind::kFormat, std::string(kStoreVersionCode),
                    fmt::format("the store's index has version {}, this program reads {}: use the "
                                "newer program, or move this file away to have it made anew (the "
                                "models stay)",
                                version, kIndexVersion)));
}

/// A file that was cut between two rows still parses: the number of rows tells. Older files have
/// none.
Result<void> check_rows(const ConfigTable& root, const StoreIndex& index) {
  if (root.find("rows") == nullptr) return {};
  CYB_ASSIGN(const std::int64_t stated, integer_of(root, "rows"));
  if (stated == count_rows(index)) return {};
  return fail(damaged(fmt::format("{} rows of {}", count_rows(index), stated)));
}

Result<StoreIndex> from_rows(const ConfigTable& root) {
  StoreIndex out;
  CYB_TRY(rows(root, "models", [&](const ConfigTable& row) -> Result<void> {
    StoreIndex::ModelRow model;
    CYB_ASSIGN(model.file_id, digest_of(row, "file_id"));
    CYB_ASSIGN(model.model_id, digest_of(row, "model_id"));
    CYB_ASSIGN(const std::int64_t bytes, integer_of(row, "bytes"));
    model.file_bytes = static_cast<std::uint64_t>(bytes);
    out.models.push_back(model);
    return {};
  }));
  CYB_TRY(rows(root, "names", [&](const ConfigTable& row) -> Result<void> {
    StoreIndex::NameRow name;
    CYB_ASSIGN(name.name, string_of(row, "name"));
    CYB_ASSIGN(name.file_id, digest_of(row, "file_id"));
    if (!is_store_name(name.name)) return fail(damaged("a name is malformed"));
    out.names.push_back(std::move(name));
    return {};
  }));
  CYB_TRY(rows(root, "sources", [&](const ConfigTable& row) -> Result<void> {
    StoreIndex::SourceRow source;
    CYB_ASSIGN(source.key.path, string_of(row, "path"));
    CYB_ASSIGN(const std::int64_t bytes, integer_of(row, "bytes"));
    source.key.size_bytes = static_cast<std::uint64_t>(bytes);
    CYB_ASSIGN(source.key.mtime_ns, integer_of(row, "mtime_ns"));
    if (row.find("content") != nullptr) {
      CYB_ASSIGN(source.key.content, digest_of(row, "content"));
    }
    if (row.find("ctime_ns") != nullptr) {
      CYB_ASSIGN(source.key.ctime_ns, integer_of(row, "ctime_ns"));
    }
    if (row.find("revision") != nullptr) {
      CYB_ASSIGN(source.key.revision, integer_of(row, "revision"));
    }
    CYB_ASSIGN(source.file_id, digest_of(row, "file_id"));
    out.sources.push_back(std::move(source));
    return {};
  }));
  return out;
}

/// Where the next row of an array of tables begins after `at`, or the end.
std::size_t next_row(std::string_view text, std::size_t at) noexcept {
  const std::size_t found = text.find("\n[[", at);
  return found == std::string_view::npos ? text.size() : found + 1;
}

}  // namespace

const StoreIndex::ModelRow* StoreIndex::find_model(const Digest& file_id) const noexcept {
  const auto it = std::ranges::find(models, file_id, &ModelRow::file_id);
  return it == models.end() ? nullptr : &*it;
}

void StoreIndex::put_model(const ModelRow& row) {
  std::erase_if(models, [&](const ModelRow& old) { return old.file_id == row.file_id; });
  models.push_back(row);
}

void StoreIndex::put_name(const std::string& name, const Digest& file_id) {
  std::erase_if(names, [&](const NameRow& old) { return old.name == name; });
  names.push_back({name, file_id});
}

void StoreIndex::put_source(const SourceKey& key, const Digest& file_id) {
  std::erase_if(sources, [&](const SourceRow& old) { return old.key.path == key.path; });
  sources.push_back({key, file_id});
}

bool is_store_name(std::string_view name) noexcept {
  return is_model_name(name) && name.front() != '.' && name.front() != '-';
}

Result<StoreIndex> read_store_index(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return StoreIndex{};
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return fail(
        io_error(path, "read the store's index",
                 "it is no file: move it away to have the index made anew (the models stay)"));
  }
  if (std::filesystem::file_size(path, ignored) > kMaxIndexBytes && !ignored)
    return fail(damaged("larger than any index").in(path));
  CYB_ASSIGN(const std::string text, read_text_file(path, kMaxIndexBytes));
  const auto parse = [&]() -> Result<StoreIndex> {
    CYB_ASSIGN(const ConfigTable root, parse_toml(text, "store index"));
    CYB_TRY(check_version(root));
    CYB_ASSIGN(StoreIndex out, from_rows(root));
    CYB_TRY(check_rows(root, out));
    return out;
  };
  auto index = parse();
  if (!index) return fail(std::move(index).error().in(path));
  return index;
}

StoreIndex salvage_store_index(const std::string& path) {
  StoreIndex out;
  const auto read = read_text_file(path, kMaxIndexBytes);
  const std::string_view text = read ? std::string_view(*read) : std::string_view();
  std::size_t at = text.starts_with("[[") ? 0 : next_row(text, 0);
  while (at < text.size()) {
    const std::size_t end = next_row(text, at);
    const auto root = parse_toml(text.substr(at, end - at), "store index");
    auto rows = root ? from_rows(*root) : Result<StoreIndex>(StoreIndex{});
    if (rows) {
      for (const StoreIndex::NameRow& row : rows->names) out.put_name(row.name, row.file_id);
      for (const StoreIndex::SourceRow& row : rows->sources) out.put_source(row.key, row.file_id);
    }
    at = end;
  }
  return out;
}

Result<void> write_store_index(const std::string& path, const StoreIndex& index) {
  ConfigArray models, names, sources;
  for (const StoreIndex::ModelRow& row : index.models) {
    ConfigTable table;
    table.set("file_id", hex(row.file_id));
    table.set("model_id", hex(row.model_id));
    table.set("bytes", static_cast<std::int64_t>(row.file_bytes));
    models.emplace_back(std::move(table));
  }
  for (const StoreIndex::NameRow& row : index.names) {
    ConfigTable table;
    table.set("name", row.name);
    table.set("file_id", hex(row.file_id));
    names.emplace_back(std::move(table));
  }
  for (const StoreIndex::SourceRow& row : index.sources) {
    ConfigTable table;
    table.set("path", row.key.path);
    table.set("bytes", static_cast<std::int64_t>(row.key.size_bytes));
    table.set("mtime_ns", row.key.mtime_ns);
    if (row.key.ctime_ns != 0) table.set("ctime_ns", row.key.ctime_ns);
    if (row.key.content) table.set("content", hex(*row.key.content));
    if (row.key.revision != 0) table.set("revision", row.key.revision);
    table.set("file_id", hex(row.file_id));
    sources.emplace_back(std::move(table));
  }
  ConfigTable root;
  root.set("version", kIndexVersion);
  root.set("rows", count_rows(index));
  root.set("models", std::move(models));
  root.set("names", std::move(names));
  root.set("sources", std::move(sources));
  CYB_ASSIGN(AtomicFile file, AtomicFile::create(path, AtLink::kReplace));
  CYB_TRY(file.write(write_toml(root)));
  return file.commit();
}

}  // namespace cyb
