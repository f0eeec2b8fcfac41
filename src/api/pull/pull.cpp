// Resolve, look into the store, take the place, look again (another process may have done it),
// fetch, import, put away.
#include "api/pull/pull.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "api/pull/hub.hpp"
#include "api/pull/place.hpp"
#include "api/pull/pull_source.hpp"
#include "api/pull/registry.hpp"
#include "api/pull/selection.hpp"
#include "base/ascii.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/transfer_limits.hpp"
#include "model/model.hpp"
#include "model/store_index.hpp"
#include "net/net_error.hpp"

namespace cyb::api {
namespace {

namespace fs = std::filesystem;

struct WantedFile {
  std::string name;  // relative to the folder
  net::Url url;
  std::optional<std::uint64_t> size;
  std::string sha256, git_blob;
  std::string blake3{};
};

/// One run of the command.
class Pull {
 public:
  explicit Pull(const PullOptions& options) : options_(options), download_(options.download) {
    download_.replace = !options.output;
    download_.copy_follows = imports();
  }
  Result<Pulled> hub(const HubSource& source);
  Result<Pulled> address(const net::Url& url);
  Result<Pulled> server(const ServerSource& source);

 private:
  bool imports() const { return options_.import && !options_.output; }
  Result<bool> is_stored(const std::string& key_path);
  Result<bool> is_stored(const Digest& file_id, const std::string& name);
  Result<void> take_stored(const Store& store, const StoredModel& known, const std::string& name);
  Result<void> fetch_shared(const ServerSource& source, const RegistryFile& file,
                            const std::string& file_name);
  Result<void> keep_shared(const RegistryFile& file, const std::string& file_name,
                           const std::string& name);
  Result<void> fetch(const std::vector<WantedFile>& files);
  Result<void> import(const std::string& relative, const std::string& name);
  Result<void> add_model(const std::string& path, const std::string& name);
  void put_away();
  void say(const std::string& text) const {
    if (options_.source.note) options_.source.note(text);
  }
  SourceKey key_of(const std::string& path) const {
    SourceKey key;
    key.path = path;
    key.revision = importer_revision(path.substr(0, path.find('#')));
    return key;
  }

  const PullOptions& options_;
  net::DownloadOptions download_;
  PullPlace place_;
  std::string key_path_;
  Pulled out_;
};

/// A model that this source became before.
Result<bool> Pull::is_stored(const std::string& key_path) {
  key_path_ = key_path;
  if (!imports()) return false;
  const Store store;
  CYB_ASSIGN(const std::optional<StoredModel> known, store.find_source(key_of(key_path)));
  if (!known) return false;
  CYB_TRY(take_stored(store, *known, options_.name));
  return true;
}

/// A model that is this file, whatever it was made from. A damaged copy counts as none.
Result<bool> Pull::is_stored(const Digest& file_id, const std::string& name) {
  if (!imports()) return false;
  const Store store;
  const auto known = store.find(hex(file_id));
  if (!known || !*known || (*known)->file_id != file_id) return false;
  CYB_TRY(take_stored(store, **known, name));
  return true;
}

/// It gets the name that is asked for now.
Result<void> Pull::take_stored(const Store& store, const StoredModel& known,
                               const std::string& name) {
  out_.already = true;
  out_.path = known.path;
  out_.model_id = digest_text(known.model_id);
  out_.name = known.name;
  if (name.empty() || name == known.name) return {};
  CYB_ASSIGN(const std::string staged, store.staging_path());
  std::error_code code;
  fs::create_hard_link(known.path, staged, code);
  if (code) return fail(io_error(staged, "link", code.message()));
  const WrittenModel same{known.model_id, known.file_id, known.file_bytes};
  CYB_ASSIGN(const StoredModel named, Store(store).add(staged, name, nullptr, &same));
  out_.name = named.name;
  return {};
}

Result<void> Pull::fetch(const std::vector<WantedFile>& files) {
  std::vector<net::FileRequest> requests;
  for (const WantedFile& file : files) {
    CYB_ASSIGN(std::string path, place_file(place_.folder, file.name));
    requests.push_back(
        {file.url, std::move(path), file.size, file.sha256, file.git_blob, file.blake3});
  }
  CYB_ASSIGN(const std::vector<net::FileResult> results, net::download(requests, download_));
  for (std::size_t i = 0; i < files.size(); ++i)
    out_.files.push_back({files[i].name, requests[i].path, results[i]});
  return {};
}

Result<void> Pull::add_model(const std::string& path, const std::string& name) {
  const SourceKey key = key_of(key_path_);
  CYB_ASSIGN(const StoredModel stored, add_to_store({path, name, true, &key}, options_.source));
  out_.path = stored.path;
  out_.name = stored.name;
  out_.model_id = digest_text(stored.model_id);
  return {};
}

Result<void> Pull::import(const std::string& relative, const std::string& name) {
  out_.path = place_.folder;
  if (!imports()) return {};
  const std::string source = relative.empty() ? place_.folder : place_.folder + "/" + relative;
  if (relative.ends_with(".model")) {
    CYB_TRY(add_model(source, name));
  } else {
    const SourceKey key = key_of(key_path_);
    CYB_ASSIGN(const ImportedModel imported, import_as(source, name, &key, options_.source));
    out_.path = imported.path;
    out_.name = imported.report.name;
    if (imported.report.written) out_.model_id = digest_text(imported.report.written->model_id);
  }
  put_away();
  return {};
}

/// The files are in the store now: those of this pull go, and their folders where nothing is left.
void Pull::put_away() {
  std::error_code ignored;
  for (PulledFile& file : out_.files) {
    fs::remove(file.path, ignored);
    std::string folder = file.path.substr(0, file.path.rfind('/'));
    while (folder.size() > place_.folder.size() && fs::remove(folder, ignored))
      folder.resize(folder.rfind('/'));
    file.path.clear();
  }
  fs::remove(place_.folder, ignored);
}

Result<Pulled> Pull::hub(const HubSource& source) {
  CYB_ASSIGN(const Hub hub, Hub::create(options_.hub, options_.token));
  download_.http.token = hub.token();
  CYB_ASSIGN(const HubListing listing, hub.list(source, download_.http, options_.download.stop));
  CYB_ASSIGN(Selection selection, select_files(listing.files, source.wanted));
  const std::string whole =
      fmt::format("{}/{}@{}", hub.url().text, source.repository, listing.commit);
  out_.source = whole;
  out_.commit = listing.commit;
  const std::string key = whole + ":" + selection.files.front().path;
  CYB_ASSIGN(bool stored, is_stored(key));
  if (stored) return std::move(out_);
  CYB_ASSIGN(place_, take_place(whole, options_.output, options_.source.note, download_.stop));
  out_.waited = place_.waited;
  if (out_.waited) {
    CYB_ASSIGN(stored, is_stored(key));
    if (stored) return std::move(out_);
  }
  const auto wanted = [&](std::size_t from) -> Result<std::vector<WantedFile>> {
    std::vector<WantedFile> files;
    for (std::size_t i = from; i < selection.files.size(); ++i) {
      const HubFile& file = selection.files[i];
      CYB_ASSIGN(net::Url url, hub.file_url(source, listing.commit, file.path));
      files.push_back({file.path, std::move(url), file.size, file.sha256, file.git_blob});
    }
    return files;
  };
  if (!selection.index.empty()) {  // it says which shards there are
    CYB_ASSIGN(std::vector<WantedFile> first, wanted(0));
    CYB_TRY(fetch(first));
    const std::size_t n = selection.files.size();
    CYB_ASSIGN(const std::string index,
               read_text_file(place_.folder + "/" + selection.index, kMaxHubBytes));
    CYB_TRY(add_shards(listing.files, index, selection));
    CYB_ASSIGN(const std::vector<WantedFile> shards, wanted(n));
    CYB_TRY(fetch(shards));
  } else {
    CYB_ASSIGN(const std::vector<WantedFile> files, wanted(0));
    CYB_TRY(fetch(files));
  }
  const bool by_repository = !selection.import_path.ends_with(".gguf");
  const std::string own = source.repository.substr(source.repository.find('/') + 1);
  CYB_TRY(
      import(selection.import_path, options_.name.empty() && by_repository ? own : options_.name));
  return std::move(out_);
}

/// A page that says 200 and is no file: of a gateway that wants a login, of an error.
Result<void> check_is_file(const std::string& path, const std::string& address) {
  CYB_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  const auto bytes = file->bytes().first(std::min<std::size_t>(file->bytes().size(), 512));
  std::string text;
  for (const std::byte b : bytes) {
    const char c = static_cast<char>(b);
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (!blank || !text.empty()) text += ascii_lower(c);
  }
  if (text.starts_with("<!doctype html") || text.starts_with("<html"))
    return fail(net::net_error(net::kLies, address + ": the server gave an HTML page, not a file"));
  if (bytes.empty()) return fail(net::net_error(net::kLies, address + ": the file is empty"));
  return {};
}

Result<Pulled> Pull::address(const net::Url& url) {
  if (!url.is_secure() && !url.is_loopback() && options_.sha256.empty())
    return fail(
        invalid_input("an http:// address needs --sha256: nothing else says that the bytes "
                      "are the right ones"));
  const std::string name = url.path.substr(url.path.rfind('/') + 1);
  if (!is_safe_path(name))
    return fail(net::net_error(net::kMetadata, "the address ends in no name of a file"));
  if (imports() && name.ends_with(".safetensors"))
    return fail(
        net::net_error(net::kChoice,
                       "a .safetensors file alone has no config.json and no tokenizer: pull "
                       "the repository, or keep the file with --output FOLDER"));
  out_.source = url.shown();
  CYB_ASSIGN(place_, take_place(url.text, options_.output, options_.source.note, download_.stop));
  out_.waited = place_.waited;
  const std::string pin = read_pin(place_.pin_path);
  const std::string sha256 = options_.sha256.empty() ? pin : options_.sha256;
  const auto key = [&](const std::string& digest) { return url.shown() + "#sha256=" + digest; };
  if (!sha256.empty()) {
    CYB_ASSIGN(const bool stored, is_stored(key(sha256)));
    if (stored) {
      put_away();
      return std::move(out_);
    }
  }
  auto fetched = fetch({WantedFile{name, url, {}, sha256, ""}});
  if (!fetched && fetched.error().code() == net::kDigest && options_.sha256.empty())
    return fail(std::move(fetched).error().in(
        "pinned by the first fetch (--sha256 accepts another digest)"));
  if (!fetched) return fail(std::move(fetched).error());
  const std::string digest = out_.files.front().result.sha256;
  const std::string path = out_.files.front().path;
  key_path_ = key(digest);
  Result<void> kept = sha256.empty() ? check_is_file(path, url.shown()) : Result<void>();
  if (kept) kept = import(name, options_.name);
  if (!kept) {
    // Nothing vouches for bytes that are no model: the next pull fetches what is there then.
    std::error_code ignored;
    if (sha256.empty() && kept.error().kind() == ErrorKind::kFormat) fs::remove(path, ignored);
    return fail(std::move(kept).error());
  }
  if (digest != pin) {
    CYB_TRY(write_pin(place_.pin_path, url.shown(), digest));
    out_.pinned = true;
  }
  if (sha256.empty()) say(fmt::format("SHA-256 of {}: {} (kept for the next pull)", name, digest));
  return std::move(out_);
}

Result<void> Pull::fetch_shared(const ServerSource& source, const RegistryFile& file,
                                const std::string& file_name) {
  CYB_ASSIGN(net::Url url, file_url(source, file));
  auto fetched =
      fetch({WantedFile{file_name, std::move(url), file.size, "", "", hex(file.digest)}});
  if (fetched || fetched.error().code() != net::kStatus) return fetched;
  // Refused in the middle: is it still what it was?
  const auto now = list_registry(source, download_.http, download_.stop);
  const auto same = [&](const RegistryFile& other) { return other.digest == file.digest; };
  if (!now || std::ranges::any_of(*now, same)) return fetched;
  return fail(net::net_error(
      net::kChanged, fmt::format("{} has changed on {} while it was fetched: {} is offered no "
                                 "more; the same command begins anew",
                                 source.name, source.base, digest_text(file.digest))));
}

Result<Pulled> Pull::server(const ServerSource& source) {
  CYB_ASSIGN(const net::Url base, net::parse_url(source.base));
  CYB_ASSIGN(download_.http.token, net::make_token(base, options_.server_token));
  CYB_ASSIGN(const std::vector<RegistryFile> files,
             list_registry(source, download_.http, download_.stop));
  CYB_ASSIGN(const RegistryFile file, choose_file(files, source));
  const std::string file_name = file.name + ".model";
  const std::string name = options_.name.empty() ? file.name : options_.name;
  if (!is_safe_path(file_name) || file_name.find('/') != std::string::npos ||
      (imports() && !is_store_name(name)))
    return fail(invalid_input(
        fmt::format("the model's name {} cannot be a name here: choose another one with --name",
                    json_quote(name))));
  if (!base.is_secure() && !base.is_loopback())
    say("without TLS nobody vouches for the bytes: whoever is in between may change them");
  out_.source = source.base + "/" + file.name;
  CYB_ASSIGN(bool stored, is_stored(file.digest, name));
  if (stored) return std::move(out_);
  CYB_ASSIGN(place_,
             take_place(out_.source, options_.output, options_.source.note, download_.stop));
  out_.waited = place_.waited;
  CYB_ASSIGN(stored, is_stored(file.digest, name));
  if (stored) return std::move(out_);
  CYB_TRY(fetch_shared(source, file, file_name));
  auto kept = keep_shared(file, file_name, name);
  if (!kept && kept.error().kind() != ErrorKind::kCancelled) {  // all bytes came: no resume helps
    std::error_code ignored;
    fs::remove(out_.files.front().path, ignored);
  }
  if (!kept) return fail(std::move(kept).error());
  return std::move(out_);
}

/// After the fetch: its content id is the listed one, and all in it is verified.
Result<void> Pull::keep_shared(const RegistryFile& file, const std::string& file_name,
                               const std::string& name) {
  {
    CYB_ASSIGN(const std::shared_ptr<const Model> model, Model::open(out_.files.front().path));
    CYB_ASSIGN(const Digest id, model->model_id());
    if (digest_text(id) != file.model_id)
      return fail(
          net::net_error(net::kDigest, fmt::format("{}: its content id is {}, the server says {}",
                                                   out_.source, digest_text(id), file.model_id)));
  }
  key_path_ = out_.source + "#" + digest_text(file.digest);
  return import(file_name, name);
}

}  // namespace

Result<std::string> pull_origin(const std::string& source, const std::string& hub) {
  CYB_ASSIGN(const PullSource parsed, parse_pull_source(source));
  if (parsed.url) return parsed.url->origin();
  CYB_ASSIGN(const net::Url url, net::parse_url(parsed.server ? parsed.server->base : hub));
  return url.origin();
}

Result<Pulled> pull(const std::string& source, const PullOptions& options) {
  CYB_ASSIGN(const PullSource parsed, parse_pull_source(source));
  if (parsed.url) return Pull(options).address(*parsed.url);
  if (!options.sha256.empty())
    return fail(invalid_input(
        "--sha256 goes with an address; hubs and servers say their digests themselves"));
  if (parsed.server) return Pull(options).server(*parsed.server);
  return Pull(options).hub(*parsed.hub);
}

}  // namespace cyb::api
