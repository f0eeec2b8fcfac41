// Building, opening and pruning of panel files.
#include "runtime/pack_cache.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "base/file.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "tensor/buffer.hpp"

#include "base/thread_pool.hpp"

namespace cyb {
namespace {

constexpr std::string_view kExtension = ".panels";

std::uint64_t round_up(std::uint64_t value) noexcept {
  return (value + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;
}

std::int64_t nanoseconds(const struct timespec& time) noexcept {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + std::int64_t{time.tv_nsec};
}

/// A weight that must be packed.
struct Item {
  std::string key;
  WeightSource source;
  WeightUse use;
  std::uint64_t size;
};

class PanelFile final : public PackCache {
 public:
  PanelFile(std::shared_ptr<const MappedFile> file, std::vector<PanelEntry> entries)
      : file_(std::move(file)) {
    for (PanelEntry& entry : entries)
      entries_.emplace(entry.key, std::pair(entry.offset, entry.size));
  }
  std::span<const std::byte> find(std::string_view key, std::uint64_t size) const override {
    const auto it = entries_.find(key);
    if (it == entries_.end() || it->second.second != size) return {};
    return file_->bytes().subspan(it->second.first, size);
  }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>, std::less<>> entries_;
};

Result<std::vector<Item>> items_to_pack(const Model& model, const Backend& backend,
                                        std::span<const WeightNeed> needs) {
  std::vector<Item> out;
  for (const WeightNeed& need : needs) {
    const TensorEntry* entry = model.find_tensor(need.name);
    if (entry == nullptr) return fail(missing_tensor(need.name, model.model_type()));
    WeightSource source = WeightTable::source_of(model, *entry);
    const std::uint64_t size = backend.packed_bytes(source, need.use);
    if (size == 0) continue;
    std::string key = WeightTable::pack_key(need.name, need.use);
    if (std::ranges::find(out, key, &Item::key) != out.end()) continue;
    out.push_back({std::move(key), std::move(source), need.use, size});
  }
  return out;
}

class MeasuredPanels final : public PackCache {
 public:
  std::span<const std::byte> find(std::string_view, std::uint64_t size) const override {
    // A smaller space than a mapping would be memory.
    auto space = Buffer::reserve(std::max(size, std::uint64_t{1} << 20), "packed weights");
    if (!space) return {};
    const std::lock_guard lock(mutex_);
    spaces_.push_back(*std::move(space));
    return spaces_.back().bytes().first(static_cast<std::size_t>(size));
  }

 private:
  mutable std::mutex mutex_;
  mutable std::vector<Buffer> spaces_;
};

/// What stat says of the model's own file; nullopt for a model that is none.
std::optional<struct stat> file_of(const Model& model) {
  struct stat info{};
  if (model.path().empty() || ::stat(model.path().c_str(), &info) != 0) return std::nullopt;
  if (static_cast<std::uint64_t>(info.st_size) != model.file_bytes()) return std::nullopt;
  return info;
}

std::optional<PanelOwner> owner_of(const Model& model, const Backend& backend) {
  const auto file = file_of(model);
  if (!file) return std::nullopt;
  const struct stat& info = *file;
  const auto id = model.model_id();
  if (!id) return std::nullopt;
  return PanelOwner{hex(*id),
                    backend.layout_id(),
                    info.st_ino,
                    static_cast<std::uint64_t>(info.st_size),
                    nanoseconds(info.st_mtim),
                    nanoseconds(info.st_ctim)};
}

std::string panel_path(const std::string& folder, const PanelOwner& owner) {
  std::string layout = owner.layout_id;
  for (char& c : layout) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-' && c != '.') c = '_';
  }
  return folder + "/" + owner.model_id + "-" + layout + std::string(kExtension);
}

/// Only a file that nobody else could have written is opened.
bool is_own_file(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/// Panels of files up to this size are hashed at every start (tens of milliseconds); larger ones
/// with --verify.
constexpr std::uint64_t kAlwaysHashedBytes = std::uint64_t{512} << 20;

bool hashes_match(const MappedFile& file, std::span<const PanelEntry> entries) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> good{true};
  auto body = [&](unsigned, unsigned) noexcept {
    for (std::size_t i; (i = next.fetch_add(1)) < entries.size() && good.load();) {
      const PanelEntry& entry = entries[i];
      if (blake3(file.bytes().subspan(entry.offset, entry.size)) != entry.hash) good.store(false);
    }
  };
  ThreadPool(0).run(body);
  return good.load();
}

Result<std::shared_ptr<const PackCache>> open_panels(const std::string& path,
                                                     const PanelOwner& owner,
                                                     std::span<const Item> items, bool verify) {
  if (!is_own_file(path)) return fail(io_error(path, "open", "not a file of this user alone"));
  CYB_ASSIGN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  CYB_ASSIGN(PanelHeader header, decode_panel_header(file->bytes()));
  const auto mismatch = [&](const char* what) {
    return fail(Error(ErrorKind::kFormat, std::string("panels: ") + what).in(path));
  };
  if (header.owner != owner) return mismatch("made from another model file");
  if ((verify || file->bytes().size() <= kAlwaysHashedBytes) &&
      !hashes_match(*file, header.entries)) {
    return mismatch("a panel does not have its hash");
  }
  auto cache = std::make_shared<PanelFile>(std::move(file), std::move(header.entries));
  for (const Item& item : items) {
    if (cache->find(item.key, item.size).empty()) return mismatch("a panel is missing");
  }
  // The time of last use, for prune_panels().
  ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return std::shared_ptr<const PackCache>(std::move(cache));
}

struct PanelTarget {
  std::string path;
  PanelOwner owner;
};

/// Packs all items into a new file. Errors: Io for the file, everything else from pack().
Result<void> build_panels(const PanelTarget& target, const Model& model, const Backend& backend,
                          std::span<const Item> items, const PackCacheOptions& options) {
  const auto& [path, owner] = target;
  std::vector<PanelEntry> entries;
  std::uint64_t largest = 0, total = 0;
  for (const Item& item : items) {
    entries.push_back({item.key, 0, item.size, {}});
    largest = std::max(largest, item.size);
    total += item.size;
  }
  std::uint64_t end = encode_panel_header(owner, entries, 0).size();
  for (PanelEntry& entry : entries) {
    entry.offset = end;
    end += round_up(entry.size);
  }
  CYB_ASSIGN(AtomicFile file, AtomicFile::create(path, AtLink::kReplace));
  CYB_TRY(file.write(encode_panel_header(owner, entries, end)));
  CYB_ASSIGN(Buffer buffer, Buffer::allocate(round_up(largest), "packed weights"));
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (options.stop.stop_requested()) return fail(cancelled(0));
    if (options.progress) options.progress(done, total, items[i].source.name);
    const std::size_t size = static_cast<std::size_t>(items[i].size);
    const std::size_t padded = static_cast<std::size_t>(round_up(items[i].size));
    CYB_TRY(backend.pack(items[i].source, items[i].use, buffer.bytes().first(size)));
    model.release(items[i].source.bytes);
    std::memset(buffer.data() + size, 0, padded - size);
    entries[i].hash = blake3(buffer.bytes().first(size));
    CYB_TRY(file.write(std::span<const std::byte>(buffer.bytes().first(padded))));
    done += items[i].size;
  }
  CYB_TRY(file.write_at(0, encode_panel_header(owner, entries, end)));
  if (options.progress) options.progress(total, total, "");
  return file.commit();
}

}  // namespace

Result<PackCacheResult> open_pack_cache(const Model& model, const Backend& backend,
                                        std::span<const WeightNeed> needs,
                                        const PackCacheOptions& options) {
  PackCacheResult out;
  CYB_ASSIGN(const std::vector<Item> items, items_to_pack(model, backend, needs));
  for (const Item& item : items) out.bytes += round_up(item.size);
  if (items.empty()) return out;
  const std::uint64_t cap = options.cap_bytes == 0 ? kMaxPanelCacheBytes : options.cap_bytes;
  if (out.bytes > cap) {
    out.note = "packed weights are not kept: " + std::to_string(out.bytes) +
               " bytes exceed the cap of the cache folder, " + std::to_string(cap);
    return out;
  }
  out.kept = file_of(model).has_value();
  if (options.measure) {
    out.cache = measured_panels();
    return out;
  }
  const std::optional<PanelOwner> owner = owner_of(model, backend);
  if (!owner) return out;  // a model that is no file: nothing to come back to
  const std::string folder = options.folder.empty() ? cache_folder() + "/panels" : options.folder;
  const std::string path = panel_path(folder, *owner);
  if (auto found = open_panels(path, *owner, items, options.verify)) {
    out.cache = *std::move(found);
    return out;
  }
  Result<void> built = make_folders(folder);
  if (built) {
    prune_panels(folder, cap - out.bytes, "");
    built = build_panels({path, *owner}, model, backend, items, options);
  }
  Result<std::shared_ptr<const PackCache>> opened;
  if (built) {
    out.built = true;
    opened = open_panels(path, *owner, items, false);
    if (opened) {
      out.cache = *std::move(opened);
      return out;
    }
  } else if (built.error().kind() != ErrorKind::kIo) {
    return fail(std::move(built).error());
  }
  const Error& why = built ? opened.error() : built.error();
  out.note = "packed weights are not kept: " + why.text();
  return out;
}

std::shared_ptr<const PackCache> measured_panels() {
  return std::make_shared<MeasuredPanels>();
}

void prune_panels(const std::string& folder, std::uint64_t cap_bytes, const std::string& keep) {
  namespace fs = std::filesystem;
  struct Found {
    fs::file_time_type used;
    std::uint64_t size;
    fs::path path;
  };
  std::vector<Found> files;
  std::uint64_t total = 0;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    std::error_code ignored;
    if (it->path().extension() != kExtension || !it->is_regular_file(ignored)) continue;
    if (it->path().string() == keep) continue;
    const std::uint64_t size = it->file_size(ignored);
    if (ignored) continue;
    files.push_back({it->last_write_time(ignored), size, it->path()});
    total += size;
  }
  std::ranges::sort(files, {}, &Found::used);
  for (const Found& file : files) {
    if (total <= cap_bytes) return;
    std::error_code ignored;
    if (fs::remove(file.path, ignored)) log_info("cache: removed " + file.path.string());
    total -= file.size;
  }
}

}  // namespace cyb
