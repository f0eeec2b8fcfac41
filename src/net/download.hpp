// Files of addresses to files on disk: several files and several ranges of one file at once, each
// range retried alone, resumed from what an earlier run left, held against the digest that was
// announced, and given its final name when it is whole.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "net/http.hpp"

namespace cyb::net {

struct FileRequest {
  Url url;
  std::string path;                   // final place; its folder exists
  std::optional<std::uint64_t> size;  // as announced
  std::string sha256, git_blob;       // as announced, lower-case hex; "": not
  std::string blake3{};               // the same
};

struct FileResult {
  std::string sha256;
  std::uint64_t size = 0;
  std::uint64_t fetched_bytes = 0;  // bodies read by this run
  bool already = false;             // the file was there with the right digest
};

struct DownloadOptions {
  unsigned connections = 4;
  unsigned retries = 5;  // of one range without progress
  HttpOptions http;
  bool replace = false;       // a file with other bytes under the final name may go
  bool copy_follows = false;  // as much space again will be needed
  std::function<void(std::uint64_t done, std::uint64_t total, const std::string& what)> progress;
  std::function<void(const std::string&)> note;  // one line for the user
  std::stop_token stop;
};

/// In the order of `files`. On an error what was fetched is kept. Errors: N codes, Io, Cancelled,
/// InvalidInput for a file that is in the way.
Result<std::vector<FileResult>> download(const std::vector<FileRequest>& files,
                                         const DownloadOptions& options);

}  // namespace cyb::net
