// The index is a cache of what the model files say, plus names and sources; only the latter two
// cannot be found again, so every row that still parses is kept.
#include "model/store_rebuild.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/file.hpp"
#include "base/log.hpp"
#include "model/format_error.hpp"
#include "model/model.hpp"
#include "model/store_lock.hpp"

namespace cyb {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxKeptAside = 1000;

bool is_file(const std::string& path) noexcept {
  std::error_code code;
  return fs::is_regular_file(path, code);
}

/// Calls `each(path, file_id)` for every file that has a place in the store.
template <class F>
void each_stored_file(const std::string& root, F each) {
  std::error_code code;
  for (const auto& folder : fs::directory_iterator(store_models_folder(root), code)) {
    if (folder.path().filename().string().size() != 2) continue;
    std::error_code inner;
    for (const auto& file : fs::directory_iterator(folder.path(), inner)) {
      if (const auto id = file_id_of_path(file.path().string())) each(file.path().string(), *id);
    }
  }
}

bool has_models(const std::string& root) {
  bool any = false;
  each_stored_file(root, [&](const std::string&, const Digest&) { any = true; });
  return any;
}

void drop_lost_rows(const std::string& root, StoreIndex& index) {
  std::erase_if(index.models,
                [&](const auto& row) { return !is_file(store_model_path(root, row.file_id)); });
  const auto orphan = [&](const auto& row) { return index.find_model(row.file_id) == nullptr; };
  std::erase_if(index.names, orphan);
  std::erase_if(index.sources, orphan);
}

/// The damaged file under another name as well; the index that replaces it comes by rename. ""
/// where that could not be done.
std::string keep_aside(const std::string& path) {
  for (int i = 1; i <= kMaxKeptAside; ++i) {
    std::string aside = i == 1 ? path + ".bad" : fmt::format("{}.bad.{}", path, i);
    if (::link(path.c_str(), aside.c_str()) == 0) return aside;
    if (errno == EEXIST) continue;
    std::error_code code;
    return fs::copy_file(path, aside, code) ? aside : std::string();
  }
  return {};
}

/// Models from the files alone; names and sources of `kept` where they still belong to one.
StoreIndex rebuilt(const std::string& root, StoreIndex kept) {
  kept.models.clear();
  each_stored_file(root, [&](const std::string& path, const Digest& id) {
    const auto row = describe_stored(path, &id);
    if (!row) {
      log_warning(fmt::format("store: {} is not a model any more: {}", path, row.error().text()));
      return;
    }
    kept.put_model(*row);
    const bool named = std::ranges::count(kept.names, id, &StoreIndex::NameRow::file_id) != 0;
    const auto model = Model::open(path);
    if (named || !model || !is_store_name((*model)->name())) return;
    const auto taken = std::ranges::count(kept.names, (*model)->name(), &StoreIndex::NameRow::name);
    if (taken == 0) kept.put_name((*model)->name(), id);
  });
  drop_lost_rows(root, kept);
  return kept;
}

/// `why`: the damage, or "" for an index that is not there. `writable`: the lock is held.
Result<StoreIndex> rebuild(const std::string& root, const std::string& why, bool writable) {
  const std::string path = store_index_path(root);
  StoreIndex index = rebuilt(root, why.empty() ? StoreIndex{} : salvage_store_index(path));
  std::string aside = "not written: the store cannot be changed from here";
  if (writable) {
    std::string kept = why.empty() ? "" : keep_aside(path);
    if (!why.empty() && kept.empty())
      return fail(io_error(path, "keep aside", "no second name for the damaged index"));
    CYB_TRY(write_store_index(path, index));
    aside = kept.empty() ? "" : fmt::format("the damaged one is kept as {}", kept);
  }
  log_warning(fmt::format(
      "store: the index was {} and was rebuilt from the models in {} ({} models, {} names, {} "
      "sources){}{}",
      why.empty() ? "missing" : fmt::format("damaged ({})", why), store_models_folder(root),
      index.models.size(), index.names.size(), index.sources.size(), aside.empty() ? "" : "; ",
      aside));
  return index;
}

/// nullopt: it must be rebuilt, for the reason left in `why`.
Result<std::optional<StoreIndex>> read_sound(const std::string& root, std::string& why) {
  const std::string path = store_index_path(root);
  std::error_code code;
  if (!fs::exists(path, code)) {
    if (has_models(root)) return std::optional<StoreIndex>();
    return std::optional(StoreIndex{});
  }
  auto index = read_store_index(path);
  if (index) return std::optional(*std::move(index));
  if (index.error().kind() != ErrorKind::kFormat || index.error().code() == kStoreVersionCode)
    return fail(std::move(index).error());
  why = index.error().message();
  return std::optional<StoreIndex>();
}

}  // namespace

std::string store_model_path(const std::string& root, const Digest& file_id) {
  const std::string digits = hex(file_id);
  return fmt::format("{}/{}/{}.model", store_models_folder(root), digits.substr(0, 2),
                     digits.substr(2));
}

std::optional<Digest> file_id_of_path(const std::string& path) {
  const fs::path place(path);
  const std::string folder = place.parent_path().filename().string();
  if (place.extension() != ".model" || folder.size() != 2) return std::nullopt;
  return parse_digest(folder + place.stem().string());
}

Result<StoreIndex::ModelRow> describe_stored(const std::string& path, const Digest* known_file_id) {
  CYB_ASSIGN(const std::shared_ptr<const Model> model, Model::open(path));
  StoreIndex::ModelRow row;
  CYB_ASSIGN(row.model_id, model->model_id());
  row.file_bytes = model->file_bytes();
  if (known_file_id != nullptr) {
    row.file_id = *known_file_id;
  } else {
    CYB_ASSIGN(row.file_id, model->file_id());
  }
  return row;
}

void put_store_in_order(const std::string& root, StoreIndex& index) {
  each_stored_file(root, [&](const std::string& path, const Digest& id) {
    if (index.find_model(id) != nullptr) return;
    const auto row = describe_stored(path, &id);
    if (row) index.put_model(*row);
  });
  drop_lost_rows(root, index);
}

Result<StoreIndex> load_store_index_locked(const std::string& root) {
  std::string why;
  CYB_ASSIGN(std::optional<StoreIndex> index, read_sound(root, why));
  return index ? Result<StoreIndex>(*std::move(index)) : rebuild(root, why, true);
}

Result<StoreIndex> load_store_index(const std::string& root) {
  std::string why;
  CYB_ASSIGN(std::optional<StoreIndex> index, read_sound(root, why));
  if (index) return *std::move(index);
  const auto lock = lock_store(root);
  // Without write access the answer is still right.
  if (!lock && lock.error().kind() == ErrorKind::kIo) return rebuild(root, why, false);
  if (!lock) return fail(lock.error());
  return load_store_index_locked(root);  // another process may have been faster
}

std::string stored_copy_problem(const std::string& path, const StoreIndex::ModelRow& row) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::strerror(errno);
  struct stat info{};
  std::array<char, 4096> page{};
  const bool regular = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  const ssize_t n = regular ? ::pread(fd, page.data(), page.size(), 0) : 0;
  ::close(fd);
  if (!regular) return "not a regular file";
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size != row.file_bytes) return fmt::format("{} bytes, {} were stored", size, row.file_bytes);
  std::string_view head(page.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  head = head.substr(0, head.find("\n~~~"));  // the frontmatter
  const bool states_id = head.find("[cyb.id]\nmodel = ") != std::string_view::npos;
  const bool sound = head.find('\0') == std::string_view::npos &&
                     head.find("[cyb]") != std::string_view::npos &&
                     (!states_id || head.find(hex(row.model_id)) != std::string_view::npos);
  return sound ? "" : "its first bytes are not those that were stored";
}

}  // namespace cyb
