// The store of models by content. A change: lock, read the index, move the file into place, write
// the index. A crash between the last two leaves a file without a row, which the next change
// adopts.
#include "model/store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <tuple>

#include "base/file.hpp"
#include "base/log.hpp"
#include "model/store_index.hpp"
#include "model/store_lock.hpp"
#include "model/store_rebuild.hpp"

namespace cyb {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMinPrefix = 6;

bool is_file(const std::string& path) noexcept {
  std::error_code code;
  return fs::is_regular_file(path, code);
}

StoredModel stored(const std::string& root, const StoreIndex::ModelRow& row, std::string name) {
  return {std::move(name), row.file_id, row.model_id, store_model_path(root, row.file_id),
          row.file_bytes,  {}};
}

/// The first name of a model, "" if it has none.
std::string name_of(const StoreIndex& index, const Digest& file_id) {
  const auto it = std::ranges::find(index.names, file_id, &StoreIndex::NameRow::file_id);
  return it == index.names.end() ? std::string() : it->name;
}

std::optional<StoredModel> present(const std::string& root, const StoreIndex& index,
                                   const Digest& file_id, const std::string* name = nullptr) {
  const StoreIndex::ModelRow* row = index.find_model(file_id);
  if (row == nullptr || !is_file(store_model_path(root, file_id))) return std::nullopt;
  StoredModel model = stored(root, *row, name != nullptr ? *name : name_of(index, file_id));
  model.problem = stored_copy_problem(model.path, *row);
  return model;
}

/// A copy that looks as it was stored, or the error that says what to do.
Result<StoredModel> sound_copy(const std::string& root, const StoreIndex& index,
                               const StoreIndex::ModelRow& row, std::string name) {
  StoredModel model = stored(root, row, std::move(name));
  const std::string problem = stored_copy_problem(model.path, row);
  if (problem.empty()) return model;
  const auto source =
      std::ranges::find(index.sources, row.file_id, &StoreIndex::SourceRow::file_id);
  const std::string from =
      source == index.sources.end() ? "its source again" : fmt::format("\"{}\"", source->key.path);
  return fail(
      Error(ErrorKind::kFormat, "StoreCopy",
            fmt::format(
                "the store's copy of {} cannot be used: {}; to mend it, import {}{}",
                model.name.empty() ? digest_text(row.model_id) : fmt::format("\"{}\"", model.name),
                problem, from, is_file(model.path) ? "; to forget it, delete the file" : ""))
          .in(model.path));
}

/// The source's own copy if it is as it was stored; logged if it is not.
std::optional<StoredModel> sound_source(const std::string& root, const StoreIndex& index,
                                        const StoreIndex::SourceRow& source) {
  const StoreIndex::ModelRow* row = index.find_model(source.file_id);
  if (row == nullptr) return std::nullopt;
  auto model = sound_copy(root, index, *row, name_of(index, source.file_id));
  if (model) return *std::move(model);
  log_warning("store: " + model.error().text());
  return std::nullopt;
}

Result<void> sync_folder(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return {};  // not readable: the rename itself is done
  const int status = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  if (status != 0 && error != EINVAL) return fail(io_errno(path, "sync the folder", error));
  return {};
}

Result<void> move_into_place(const std::string& from, const std::string& to) {
  const std::string folder = fs::path(to).parent_path().string();
  CYB_TRY(make_folders(folder));
  if (std::rename(from.c_str(), to.c_str()) != 0)
    return fail(io_errno(from, "rename into the store", errno));
  return sync_folder(folder);
}

bool is_hex(std::string_view text) noexcept {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

Store::Store(std::string root)
    : root_(root.empty() ? data_folder() : std::move(root)),
      staging_(std::make_shared<StoreStaging>()) {}

Result<std::string> Store::staging_path() const {
  return staging_->fresh_path(root_);
}

Result<StoredModel> Store::add(const std::string& staged_path, const std::string& name,
                               const SourceKey* source, const WrittenModel* written) {
  if (!is_store_name(name)) {
    return fail(invalid_input(fmt::format(
        "model name \"{}\": want 1 to 128 of A-Z a-z 0-9 . _ -, not starting with . or -", name)));
  }
  StoreIndex::ModelRow row;
  if (written != nullptr) {
    row = {written->file_id, written->model_id, written->file_bytes};
  } else {
    CYB_ASSIGN(row, describe_stored(staged_path, nullptr));
  }
  CYB_ASSIGN(const FileLock lock, lock_store(root_));
  sweep_leftovers(root_);
  CYB_ASSIGN(StoreIndex index, load_store_index_locked(root_));
  CYB_TRY(move_into_place(staged_path, store_model_path(root_, row.file_id)));
  index.put_model(row);
  index.put_name(name, row.file_id);
  if (source != nullptr) index.put_source(*source, row.file_id);
  put_store_in_order(root_, index);
  CYB_TRY(write_store_index(store_index_path(root_), index));
  return stored(root_, row, name);
}

Result<std::optional<StoredModel>> Store::find(const std::string& name_or_id) const {
  CYB_ASSIGN(const StoreIndex index, load_store_index(root_));
  const auto named = std::ranges::find(index.names, name_or_id, &StoreIndex::NameRow::name);
  if (named != index.names.end()) {
    const StoreIndex::ModelRow* row = index.find_model(named->file_id);
    if (row == nullptr) return std::nullopt;
    return sound_copy(root_, index, *row, named->name);
  }

  std::string_view digits = name_or_id;
  if (digits.starts_with("blake3:")) digits.remove_prefix(7);
  if (digits.size() < kMinPrefix || digits.size() > 64 || !is_hex(digits)) return std::nullopt;
  std::vector<StoredModel> found;
  for (const StoreIndex::ModelRow& row : index.models) {
    if (!hex(row.file_id).starts_with(digits) && !hex(row.model_id).starts_with(digits)) continue;
    if (auto model = present(root_, index, row.file_id)) found.push_back(*std::move(model));
  }
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) {
    const StoredModel& only = found.front();
    return sound_copy(root_, index, *index.find_model(only.file_id), only.name);
  }
  std::string candidates;
  for (const StoredModel& model : found) {
    candidates +=
        fmt::format("{}{} ({})", candidates.empty() ? "" : ", ", digest_text(model.file_id),
                    model.name.empty() ? "no name" : model.name);
  }
  return fail(invalid_input(fmt::format("\"{}\" is ambiguous: {}", name_or_id, candidates)));
}

Result<std::optional<StoredModel>> Store::find_source(const SourceKey& source) const {
  CYB_ASSIGN(const StoreIndex index, load_store_index(root_));
  for (const StoreIndex::SourceRow& row : index.sources) {
    const bool same = row.key.path == source.path && row.key.size_bytes == source.size_bytes &&
                      row.key.mtime_ns == source.mtime_ns && row.key.ctime_ns == source.ctime_ns &&
                      row.key.revision == source.revision;
    if (!same) continue;
    if (auto model = sound_source(root_, index, row)) return model;
  }
  if (!source.content) return std::nullopt;
  for (const StoreIndex::SourceRow& row : index.sources) {
    if (row.key.content != source.content || row.key.revision != source.revision) continue;
    auto model = sound_source(root_, index, row);
    if (!model) continue;
    // The path, size or time changed but not the bytes: renew the entry. Without write access the
    // answer is still right, so a failure here is not one of the question.
    const auto renew = [&]() -> Result<void> {
      CYB_ASSIGN(const FileLock lock, lock_store(root_));
      CYB_ASSIGN(StoreIndex fresh, load_store_index_locked(root_));
      fresh.put_source(source, row.file_id);
      return write_store_index(store_index_path(root_), fresh);
    };
    if (const auto renewed = renew(); !renewed) log_info("store: " + renewed.error().text());
    return model;
  }
  return std::nullopt;
}

Result<std::vector<StoredModel>> Store::list() const {
  CYB_ASSIGN(const StoreIndex index, load_store_index(root_));
  std::vector<StoredModel> out;
  for (const StoreIndex::NameRow& name : index.names) {
    if (auto model = present(root_, index, name.file_id, &name.name))
      out.push_back(*std::move(model));
  }
  for (const StoreIndex::ModelRow& row : index.models) {
    if (!name_of(index, row.file_id).empty()) continue;
    if (auto model = present(root_, index, row.file_id)) out.push_back(*std::move(model));
  }
  std::ranges::sort(out, [](const StoredModel& a, const StoredModel& b) {
    return std::tie(a.name, a.file_id) < std::tie(b.name, b.file_id);
  });
  return out;
}

}  // namespace cyb
