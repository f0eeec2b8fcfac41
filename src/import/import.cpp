// Import: which reader a path needs, and writing what it read.
#include "import/import.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/file.hpp"
#include "import/gguf/gguf_import.hpp"
#include "import/gguf/gguf_source.hpp"
#include "import/hf/hf_import.hpp"
#include "import/lora/lora_import.hpp"
#include "import/onnx/onnx_import.hpp"
#include "import/tokenizer_file.hpp"

namespace cyb {
namespace {

enum class SourceKind { kGguf, kFolder, kSafetensors, kOnnx };

struct Source {
  SourceKind kind = SourceKind::kGguf;
  std::string folder, file;  // of a checkpoint
};

bool is_folder(const std::string& path) {
  std::error_code code;
  return std::filesystem::is_directory(path, code);
}

bool starts_as_gguf(const std::string& path) {
  const auto file = MappedFile::open(path);
  return file && (*file)->text().starts_with("GGUF");
}

Result<Source> classify(const std::string& path) {
  if (is_adapter_source(path)) return fail(adapter_is_no_model(path));
  if (is_folder(path)) return Source{SourceKind::kFolder, path, ""};
  const std::size_t slash = path.rfind('/');
  std::string folder =
      slash == std::string::npos ? "." : path.substr(0, std::max<std::size_t>(slash, 1));
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.ends_with(".safetensors"))
    return Source{SourceKind::kSafetensors, std::move(folder), std::move(name)};
  CYB_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  if (file->text().starts_with("GGUF") || name.ends_with(".gguf"))
    return Source{SourceKind::kGguf, "", ""};
  if (onnx::is_onnx(path)) return Source{SourceKind::kOnnx, "", ""};
  return fail(
      invalid_input(path + " is no GGUF, safetensors or ONNX file and no checkpoint folder"));
}

Result<std::vector<std::string>> files_of(const std::string& path) {
  CYB_ASSIGN(const Source source, classify(path));
  if (source.kind == SourceKind::kGguf) return gguf::part_paths(path);
  if (source.kind == SourceKind::kOnnx) return onnx::onnx_files(path);
  return hf::folder_files(source.folder, source.file);
}

/// Raised when the same ONNX file becomes another model than before: a store imports it again.
constexpr std::int64_t kOnnxRevision = 2;  // 2: a Cast between integers

Error no_dims() {
  return invalid_input("dimensions have names in ONNX files only");
}

}  // namespace

Result<ModelDraft> read_source(const std::string& path, ImportReport& report,
                               const ImportOptions& options) {
  std::error_code code;
  report.source = path;
  if (options.tokenizer_only && std::filesystem::is_directory(path, code)) {
    return hf::read_folder_tokenizer_alone(path, report, options);
  }
  if (!options.encoding.empty() && !options.tokenizer_only) {
    return fail(invalid_input("an encoding is named for a tokenizer alone"));
  }
  if (options.tokenizer_only && !starts_as_gguf(path)) {
    return read_tokenizer_file_alone(path, report, options);
  }
  CYB_ASSIGN(const Source source, classify(path));
  if (source.kind == SourceKind::kGguf && !options.dims.empty()) return fail(no_dims());
  if (source.kind == SourceKind::kGguf) return gguf::read_gguf(path, report, options);
  if (source.kind == SourceKind::kOnnx) return onnx::read_onnx(path, report, options);
  if (!options.dims.empty()) return fail(no_dims());
  return hf::read_folder(source.folder, source.file, report, options);
}

Result<WrittenModel> import_model(const std::string& source, const std::string& out_path,
                                  const ImportOptions& options, ImportReport& report) {
  CYB_ASSIGN(const ModelDraft draft, read_source(source, report, options));
  if (options.stop.stop_requested()) return fail(cancelled(0));
  WriteOptions write;
  write.stop = options.stop;
  if (options.progress) {
    write.progress = [&options](const WriteProgress& p) {
      options.progress({p.bytes_done, p.bytes_total, p.what});
    };
  }
  CYB_ASSIGN(const WrittenModel written, write_model(out_path, draft, write));
  report.written = written;
  return written;
}

Result<SourceKey> source_key(const std::string& path) {
  CYB_ASSIGN(const std::vector<std::string> files, files_of(path));
  std::error_code code;
  SourceKey key;
  key.revision = onnx::is_onnx(path) ? kOnnxRevision : 0;
  key.path = std::filesystem::weakly_canonical(path, code).string();
  if (code) key.path = path;
  for (const std::string& file : files) {
    struct stat info{};
    if (::stat(file.c_str(), &info) != 0) return fail(io_errno(file, "stat", errno));
    key.size_bytes += static_cast<std::uint64_t>(info.st_size);
    const auto nanoseconds = [](const timespec& t) {
      return std::int64_t{t.tv_sec} * 1'000'000'000 + std::int64_t{t.tv_nsec};
    };
    key.mtime_ns = std::max(key.mtime_ns, nanoseconds(info.st_mtim));
    key.ctime_ns = std::max(key.ctime_ns, nanoseconds(info.st_ctim));
  }
  return key;
}

std::int64_t importer_revision(std::string_view name) noexcept {
  return name.ends_with(".onnx") ? kOnnxRevision : 0;
}

bool is_import_source(const std::string& path) {
  if (is_folder(path)) return true;
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) return false;
  return path.ends_with(".safetensors") || starts_as_gguf(path) || onnx::is_onnx(path);
}

}  // namespace cyb
