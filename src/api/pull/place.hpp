// Where a pull keeps its files, and who may write there now.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "base/result.hpp"
#include "model/store_lock.hpp"

namespace cyb::api {

struct PullPlace {
  std::string folder;
  std::string pin_path;  // always among the downloads, wherever the files go
  std::optional<FileLock> lock;
  bool waited = false;
};

/// downloads/<key>/ in the data folder, where the key is the BLAKE3 of `identity`; or `output`.
/// Waits for another process that pulls the same, after one `note`. Errors: Io, Cancelled.
Result<PullPlace> take_place(const std::string& identity, const std::optional<std::string>& output,
                             const std::function<void(const std::string&)>& note,
                             std::stop_token stop);

/// The SHA-256 that an earlier fetch of the address kept; "" where there is none.
std::string read_pin(const std::string& path);
Result<void> write_pin(const std::string& path, const std::string& address,
                       const std::string& sha256);

/// The folder and those above `relative` in it, for a file's final place.
Result<std::string> place_file(const std::string& folder, const std::string& relative);

}  // namespace cyb::api
