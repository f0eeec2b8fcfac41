// Folders, locks and pins of downloads.
#include "api/pull/place.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "net/sha.hpp"

namespace cyb::api {
namespace {

constexpr std::string_view kPinHead = "sha256 ";
constexpr std::uint64_t kMaxPinBytes = 16384;

}  // namespace

Result<PullPlace> take_place(const std::string& identity, const std::optional<std::string>& output,
                             const std::function<void(const std::string&)>& note,
                             std::stop_token stop) {
  PullPlace place;
  std::string lock_path;
  const std::string own = data_folder() + "/downloads/" + hex(blake3(identity)).substr(0, 32);
  place.pin_path = own + ".pin";
  if (output) {
    place.folder = *output;
    while (place.folder.size() > 1 && place.folder.ends_with('/')) place.folder.pop_back();
    lock_path = place.folder + "/.cyb-llm-pull.lock";
  } else {
    place.folder = own;
    lock_path = own + ".lock";
  }
  CYB_TRY(make_folders(place.folder));
  while (true) {
    auto lock = FileLock::take(lock_path, 0, "this download");
    if (lock) {
      place.lock.emplace(*std::move(lock));
      CYB_TRY(make_folders(place.folder));  // the process before may have removed it
      return place;
    }
    if (lock.error().kind() != ErrorKind::kBusy) return fail(std::move(lock).error());
    if (!std::exchange(place.waited, true) && note)
      note("another process is pulling this: waiting for it");
    if (stop.stop_requested()) return fail(cancelled(0));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

std::string read_pin(const std::string& path) {
  const auto text = path.empty() ? Result<std::string>("") : read_text_file(path, kMaxPinBytes);
  if (!text || !text->starts_with(kPinHead)) return {};
  const std::string digest = text->substr(kPinHead.size(), 64);
  return net::is_hex(digest, 64) ? digest : std::string();
}

Result<void> write_pin(const std::string& path, const std::string& address,
                       const std::string& sha256) {
  CYB_TRY(make_folders(path.substr(0, path.rfind('/'))));
  CYB_ASSIGN(AtomicFile file, AtomicFile::create(path, AtLink::kReplace));
  CYB_TRY(file.write(fmt::format("{}{}\n{}\n", kPinHead, sha256, address)));
  return file.commit();
}

Result<std::string> place_file(const std::string& folder, const std::string& relative) {
  std::string path = folder + "/" + relative;
  CYB_TRY(make_folders(path.substr(0, path.rfind('/'))));
  return path;
}

}  // namespace cyb::api
