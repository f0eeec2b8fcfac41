// Look-up order: an existing path first, then the store; a path that looks like one but does not
// exist is an Io error.
#include "api/model_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "model/store_index.hpp"

namespace cyb::api {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kHashStep = std::uint64_t{16} << 20;

Result<Digest> hash_file(const std::string& path, std::stop_token stop) {
  CYB_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  Blake3 hasher;
  const std::span<const std::byte> bytes = file->bytes();
  for (std::uint64_t at = 0; at < bytes.size(); at += kHashStep) {
    if (stop.stop_requested()) return fail(cancelled(0));
    const std::size_t size = static_cast<std::size_t>(std::min(kHashStep, bytes.size() - at));
    hasher.update(bytes.subspan(static_cast<std::size_t>(at), size));
    file->release(at, size);
  }
  return hasher.finish();
}

Result<void> copy_file(const std::string& from, const std::string& to,
                       const SourceOptions& options) {
  CYB_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(from));
  CYB_ASSIGN(AtomicFile out, AtomicFile::create(to, AtLink::kReplace));
  const std::span<const std::byte> bytes = file->bytes();
  for (std::uint64_t at = 0; at < bytes.size(); at += kHashStep) {
    if (options.stop.stop_requested()) return fail(cancelled(0));
    const std::size_t size = static_cast<std::size_t>(std::min(kHashStep, bytes.size() - at));
    CYB_TRY(out.write(bytes.subspan(static_cast<std::size_t>(at), size)));
    file->release(at, size);
    if (options.progress) options.progress({at + size, bytes.size(), "copying"});
  }
  return out.commit();
}

/// Names of the regular files directly inside a folder, sorted.
Result<std::vector<std::string>> file_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored)) names.push_back(at->path().filename().string());
  }
  if (code) return fail(io_error(folder, "list", code.message()));
  std::sort(names.begin(), names.end());
  return names;
}

/// BLAKE3 of a source's bytes: of the file, or of the names and hashes of a folder's files. nullopt
/// where one file alone does not say what the source is (a split GGUF).
Result<std::optional<Digest>> content_of(const std::string& source, const SourceKey& key,
                                         std::stop_token stop) {
  std::error_code code;
  if (!fs::is_directory(source, code)) {
    if (fs::file_size(source, code) != key.size_bytes || code) return std::optional<Digest>();
    CYB_ASSIGN(const Digest digest, hash_file(source, stop));
    return std::optional(digest);
  }
  CYB_ASSIGN(const std::vector<std::string> names, file_names(source));
  Blake3 hasher;
  for (const std::string& name : names) {
    CYB_ASSIGN(const Digest digest, hash_file((fs::path(source) / name).string(), stop));
    hasher.update(name);
    hasher.update(std::as_bytes(std::span("", 1)));
    hasher.update(std::as_bytes(std::span(digest)));
  }
  return std::optional(hasher.finish());
}

ImportOptions import_options(const std::string& name, const SourceOptions& options) {
  return {.name = name,
          .progress = options.progress,
          .stop = options.stop,
          .dims = options.dims,
          .tokenizer_only = options.tokenizer_only,
          .encoding = options.encoding};
}

Result<std::string> find_source_model(const std::string& source, const SourceOptions& options) {
  const Store store;
  CYB_ASSIGN(SourceKey key, source_key(source));
  CYB_ASSIGN(std::optional<StoredModel> known, store.find_source(key));
  if (!known) {
    CYB_ASSIGN(key.content, content_of(source, key, options.stop));
    CYB_ASSIGN(known, store.find_source(key));
  }
  if (known) return known->path;
  if (options.note) options.note(fmt::format("importing {} into the store (once)", source));
  CYB_ASSIGN(const ImportedModel imported, import_as(source, "", &key, options));
  return imported.path;
}

bool looks_like_path(const std::string& what) {
  const auto ends = [&](std::string_view suffix) { return what.ends_with(suffix); };
  return what.find('/') != std::string::npos || ends(".model") || ends(".gguf") ||
         ends(".safetensors") || ends(".onnx");
}

}  // namespace

Result<ImportedModel> import_as(const std::string& source, const std::string& name,
                                const SourceKey* key, const SourceOptions& options) {
  Store store;
  CYB_ASSIGN(const std::string staged, store.staging_path());
  ImportedModel imported;
  CYB_TRY(import_model(source, staged, import_options(name, options), imported.report));
  const auto before = store.find(imported.report.name);
  auto stored = store.add(staged, imported.report.name, key);
  if (!stored) {
    std::error_code ignored;
    fs::remove(staged, ignored);
    return fail(std::move(stored).error());
  }
  imported.path = stored->path;
  if (options.note && before && *before && (*before)->name == imported.report.name &&
      (*before)->file_id != stored->file_id) {
    options.note(fmt::format("the name \"{}\" meant another model, which keeps its id {}",
                             imported.report.name, digest_text((*before)->model_id)));
  }
  if (options.on_imported) options.on_imported(imported.report);
  return imported;
}

Result<ImportedModel> import_to(const std::string& source, const std::string& out_path,
                                const std::string& name, const SourceOptions& options) {
  // A tokenizer alone is not what the source would become.
  if (out_path.empty() && options.tokenizer_only) {
    return import_as(source, name, nullptr, options);
  }
  if (out_path.empty()) {
    CYB_ASSIGN(SourceKey key, source_key(source));
    CYB_ASSIGN(key.content, content_of(source, key, options.stop));
    // With dimensions fixed it is not what the source alone would become.
    return import_as(source, name, options.dims.empty() ? &key : nullptr, options);
  }
  std::error_code code;
  if (fs::equivalent(source, out_path, code)) {
    return fail(
        invalid_input(fmt::format("\"{}\" is the source itself: choose another file", out_path)));
  }
  ImportedModel imported;
  imported.path = out_path;
  CYB_TRY(import_model(source, out_path, import_options(name, options), imported.report));
  if (options.on_imported) options.on_imported(imported.report);
  return imported;
}

Result<StoredModel> add_to_store(const ModelFile& file, const SourceOptions& options) {
  CYB_ASSIGN(const std::shared_ptr<const Model> model, Model::open(file.path));
  const std::string own_name = file.name.empty() ? model->name() : file.name;
  if (!is_store_name(own_name)) {
    return fail(invalid_input(
        "the model's name cannot be a name in the store: choose another one with --name"));
  }
  CYB_TRY(model->verify(options.stop));
  Store store;
  CYB_ASSIGN(const std::string staged, store.staging_path());
  std::error_code code;
  if (file.move) fs::rename(file.path, staged, code);
  if (!file.move || code) CYB_TRY(copy_file(file.path, staged, options));
  auto stored = store.add(staged, own_name, file.key);
  if (!stored) fs::remove(staged, code);
  return stored;
}

Result<std::string> find_model_file(const std::string& what, const SourceOptions& options) {
  if (what.empty()) return fail(invalid_input("the model's name is empty"));
  std::error_code code;
  if (fs::exists(what, code)) {
    return is_import_source(what) ? find_source_model(what, options) : Result<std::string>(what);
  }
  CYB_ASSIGN(const std::optional<StoredModel> stored, Store().find(what));
  if (stored) return stored->path;
  if (looks_like_path(what)) return fail(io_errno(what, "open", code ? code.value() : ENOENT));
  return fail(invalid_input(
      fmt::format("no model \"{}\": not a file, and not a name or id in the store", what)));
}

Result<std::shared_ptr<const Model>> open_model(const std::string& what,
                                                const ModelOptions& model_options,
                                                const SourceOptions& options) {
  CYB_ASSIGN(const std::string path, find_model_file(what, options));
  auto model = Model::open(path, model_options);
  const bool is_damage = !model && (model.error().kind() == ErrorKind::kFormat ||
                                    model.error().kind() == ErrorKind::kGraph);
  if (!is_damage || path == what) return model;
  if (!is_import_source(what)) {
    if (options.note)
      options.note(
          fmt::format("to mend the store's copy of \"{}\", import its source again", what));
    return model;
  }
  if (options.note) {
    options.note(fmt::format("the store's copy is damaged ({}); importing {} again",
                             model.error().code(), what));
  }
  CYB_ASSIGN(const ImportedModel imported, import_to(what, "", "", options));
  return Model::open(imported.path, model_options);
}

}  // namespace cyb::api
