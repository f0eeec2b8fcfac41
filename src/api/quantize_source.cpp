// One draft from whatever the source is; write_model does the rest, under a temporary name.
#include "api/quantize_source.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "model/store_index.hpp"

namespace cyb::api {
namespace {

namespace fs = std::filesystem;

/// InvalidInput where `out_path` is `source` or a file of that folder.
Result<void> check_not_source(const std::string& source, const std::string& out_path) {
  std::error_code code;
  const auto same = [&](const fs::path& file) { return fs::equivalent(file, out_path, code); };
  bool is_source = same(source);
  if (!is_source && fs::is_directory(source, code)) {
    for (fs::directory_iterator at(source, code), end; !code && at != end; at.increment(code)) {
      std::error_code ignored;
      if (at->is_regular_file(ignored)) is_source = is_source || same(at->path());
    }
  }
  if (!is_source) return {};
  return fail(
      invalid_input(fmt::format("\"{}\" is the source itself: choose another file", out_path)));
}

struct Source {
  std::string path;
  ModelDraft draft;
};

Result<Source> read(const std::string& what, const SourceOptions& options, ImportReport& report) {
  std::error_code code;
  if (fs::exists(what, code) && is_import_source(what)) {
    const ImportOptions import_options{.name = "", .progress = {}, .stop = options.stop};
    CYB_ASSIGN(ModelDraft draft, read_source(what, report, import_options));
    return Source{what, std::move(draft)};
  }
  CYB_ASSIGN(const std::string path, find_model_file(what, options));
  CYB_ASSIGN(std::shared_ptr<const Model> model, Model::open(path));
  CYB_ASSIGN(ModelDraft draft, draft_of_model(std::move(model)));
  return Source{path, std::move(draft)};
}

Result<std::string> new_name(const std::string& wished, const std::string& old, DType to) {
  if (!wished.empty()) return wished;
  std::string out = old + "-" + std::string(dtype_name(to));
  if (is_store_name(out)) return out;
  return fail(invalid_input(fmt::format("the name \"{}\" is too long: --name chooses one", out)));
}

}  // namespace

Result<QuantizedModel> quantize_to(const std::string& what, const std::string& out_path,
                                   const std::string& name, const QuantizeOptions& options,
                                   const SourceOptions& source, QuantizeReport& report) {
  QuantizedModel out;
  CYB_ASSIGN(Source from, read(what, source, out.imported));
  if (!out_path.empty()) CYB_TRY(check_not_source(from.path, out_path));
  ModelDraft& draft = from.draft;
  CYB_ASSIGN(draft.name, new_name(name, draft.name, options.to));
  out.name = draft.name;
  CYB_TRY(quantize_draft(draft, options, report));
  WriteOptions write;
  write.stop = source.stop;
  if (source.progress) {
    write.progress = [&source](const WriteProgress& p) {
      source.progress({p.bytes_done, p.bytes_total, p.what});
    };
  }
  if (!out_path.empty()) {
    out.path = out_path;
    CYB_ASSIGN(out.written, write_model(out_path, draft, write));
    return out;
  }
  Store store;
  CYB_ASSIGN(const std::string staged, store.staging_path());
  CYB_ASSIGN(out.written, write_model(staged, draft, write));
  auto stored = store.add(staged, out.name, nullptr, &out.written);
  if (!stored) {
    std::error_code ignored;
    fs::remove(staged, ignored);
    return fail(std::move(stored).error());
  }
  out.path = stored->path;
  return out;
}

}  // namespace cyb::api
