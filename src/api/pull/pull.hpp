// `cyb-llm pull`: a repository of a hub, one file of an address, or a model of another server, to
// the store (imported) or to a folder (as it is). Every byte is held against a digest: the hub's,
// the server's, the user's, or the one that the first fetch of an address pinned.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/model_source.hpp"
#include "net/download.hpp"

namespace cyb::api {

struct PullOptions {
  std::string hub = "https://huggingface.co";
  std::string token;                  // for the hub's origin alone
  std::string server_token;           // for the origin of a cyb:// source alone
  std::string sha256;                 // of an address, lower-case hex
  std::string name;                   // of the model; "": the source's own
  std::optional<std::string> output;  // folder for the files as they are; then nothing is imported
  bool import = true;
  net::DownloadOptions download;  // connections, retries, stall, progress, note, stop
  SourceOptions source;           // of the import
};

struct PulledFile {
  std::string name, path;  // in the source; "" where it is no longer kept
  net::FileResult result;
};

struct Pulled {
  std::string source, commit;  // what it was resolved to; "" but for a hub
  std::string path;            // of the .model, or the folder of the files
  std::string name, model_id;  // of an imported model
  std::vector<PulledFile> files;
  bool already = false;  // the model was in the store
  bool waited = false;   // another process was at work on it
  bool pinned = false;   // the digest was not known before and is kept now
};

/// The origin that a source is asked of first: a hub's, an address's, a server's. Errors: as
/// parse_pull_source().
Result<std::string> pull_origin(const std::string& source, const std::string& hub);

/// Errors: N codes, InvalidInput, NotBuilt, JSON, Io, Cancelled (what was fetched is kept), those
/// of an import.
Result<Pulled> pull(const std::string& source, const PullOptions& options);

}  // namespace cyb::api
