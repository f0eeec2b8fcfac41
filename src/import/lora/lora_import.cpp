// From a path to the bytes of an adapter.
#include "import/lora/lora_import.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "base/file.hpp"
#include "base/limits.hpp"

namespace cyb {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "adapter_config.json";
constexpr const char* kTensors = "adapter_model.safetensors";

bool is_there(const fs::path& path) {
  std::error_code code;
  return fs::exists(path, code);
}

bool is_folder(const fs::path& path) {
  std::error_code code;
  return fs::is_directory(path, code);
}

Result<LoraAdapter> read_peft(const fs::path& folder, const fs::path& tensors, const Model& model) {
  const fs::path config = folder / kConfig;
  if (!is_there(config))
    return fail(lora_error("L01", fmt::format("{} is missing: it is no LoRA adapter", kConfig)));
  if (!is_there(tensors) && is_there(folder / "adapter_model.bin")) {
    return fail(lora_error(
        "L01", "adapter_model.bin is a pickle file, which is never read; save it as safetensors"));
  }
  CYB_ASSIGN(const std::string text, read_text_file(config.string(), kMaxHeaderBytes));
  CYB_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(tensors.string()));
  return parse_peft_adapter(text, file->bytes(), model);
}

Result<LoraAdapter> read_file(const std::string& path, const Model& model) {
  CYB_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  if (file->text().starts_with("GGUF")) return parse_gguf_adapter(file->bytes(), model);
  return fail(lora_error("L01",
                         "it is no LoRA adapter: want a PEFT folder, its safetensors file, or a "
                         "GGUF file"));
}

}  // namespace

Result<std::shared_ptr<const LoraAdapter>> read_adapter(const std::string& path,
                                                        const Model& model) {
  const fs::path at(path);
  auto read = is_folder(at)                    ? read_peft(at, at / kTensors, model)
              : path.ends_with(".safetensors") ? read_peft(at.parent_path(), at, model)
                                               : read_file(path, model);
  if (!read) {
    // An Io error names its own path.
    if (read.error().kind() == ErrorKind::kIo) return fail(std::move(read).error());
    return fail(std::move(read).error().in(path));
  }
  read->path = path;
  return std::make_shared<const LoraAdapter>(*std::move(read));
}

bool is_adapter_source(const std::string& path) {
  const fs::path at(path);
  if (is_folder(at)) return is_there(at / kConfig) && !is_there(at / "config.json");
  return at.filename().string() == kTensors && is_there(at.parent_path() / kConfig);
}

Error adapter_is_no_model(std::string_view path) {
  return lora_error("L12", fmt::format("{} is a LoRA adapter, no model: give it with --lora beside "
                                       "the model that it was made for",
                                       path));
}

}  // namespace cyb
