// Without a wish: the checkpoint in the root, else the one GGUF, else the one ONNX file. Parts of a
// split GGUF are one choice.
#include "api/pull/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "base/ascii.hpp"

#include "api/pull/pull_source.hpp"
#include "import/quantize/quantize.hpp"
#include "net/net_error.hpp"

namespace cyb::api {
namespace {

constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::size_t kMaxListed = 40;

/// What an importer reads beside the weights of a checkpoint.
constexpr std::array<std::string_view, 15> kCompanions = {"config.json",
                                                          "generation_config.json",
                                                          "tokenizer.json",
                                                          "tokenizer_config.json",
                                                          "special_tokens_map.json",
                                                          "added_tokens.json",
                                                          "vocab.json",
                                                          "merges.txt",
                                                          "vocab.txt",
                                                          "tokenizer.model",
                                                          "spiece.model",
                                                          "tekken.json",
                                                          "chat_template.jinja",
                                                          "chat_template.json",
                                                          "adapter_config.json"};

/// "a-00002-of-00003.gguf" -> "a.gguf"; other names as they are.
std::string whole_name(const std::string& path) {
  const std::string number(5, '?'), form = "-" + number + "-of-" + number + ".gguf";
  if (path.size() <= form.size()) return path;
  const std::size_t at = path.size() - form.size();
  if (!matches_glob(form, std::string_view(path).substr(at))) return path;
  for (const std::size_t digit : {at + 1, at + 5, at + 10, at + 14})
    if (path[digit] < '0' || path[digit] > '9') return path;
  return path.substr(0, at) + ".gguf";
}

bool is_weights(const std::string& path) {
  return path.ends_with(".gguf") || path.ends_with(".onnx") || path.ends_with(".safetensors");
}

/// `word` in `text` with no letter, digit or _ at either side.
bool has_word(std::string_view text, std::string_view word) {
  const auto inside = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !inside(text[at - 1])) && (end == text.size() || !inside(text[end])))
      return true;
  }
  return false;
}

using Groups = std::map<std::string, std::vector<HubFile>>;

std::uint64_t bytes_of(const std::vector<HubFile>& files) {
  std::uint64_t sum = 0;
  for (const HubFile& file : files) sum += file.size;
  return sum;
}

Error choice(std::string_view what, const Groups& groups) {
  std::string list;
  std::size_t n = 0;
  for (const auto& [name, files] : groups) {
    if (++n > kMaxListed) continue;
    list +=
        fmt::format("\n  {}  {:.1f} MiB", name, static_cast<double>(bytes_of(files)) / 1048576.0);
  }
  if (n > kMaxListed) list += fmt::format("\n  and {} more", n - kMaxListed);
  return net::net_error(
      net::kChoice,
      fmt::format("{}; choose one with ORG/NAME:FILE or a part of its name:{}", what, list));
}

Groups group(const std::vector<HubFile>& files, const std::function<bool(const HubFile&)>& wanted) {
  Groups out;
  for (const HubFile& file : files)
    if (wanted(file)) out[whole_name(file.path)].push_back(file);
  for (auto& [name, parts] : out) std::ranges::sort(parts, {}, &HubFile::path);
  return out;
}

const HubFile* find(const std::vector<HubFile>& files, std::string_view path) {
  const auto at = std::ranges::find(files, path, &HubFile::path);
  return at == files.end() ? nullptr : &*at;
}

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/') + 1);
}

void add_companions(const std::vector<HubFile>& files, const std::string& folder, Selection& out) {
  for (const std::string_view name : kCompanions)
    if (const HubFile* file = find(files, folder + std::string(name))) out.files.push_back(*file);
}

/// The parts of one choice with what belongs to them.
Selection with_companions(const std::vector<HubFile>& files, const std::vector<HubFile>& parts) {
  Selection out;
  out.files = parts;
  const std::string& main = parts.front().path;
  out.import_path = main;
  if (main.ends_with(".safetensors")) add_companions(files, folder_of(main), out);
  if (main.ends_with(".onnx")) {  // external data: model.onnx_data, model.onnx.data
    for (const HubFile& file : files)
      if (file.path.starts_with(main) && file.path != main) out.files.push_back(file);
  }
  return out;
}

Result<Selection> select_default(const std::vector<HubFile>& files) {
  if (const HubFile* index = find(files, kIndex)) {
    Selection out;
    out.files.push_back(*index);
    out.index = kIndex;
    add_companions(files, "", out);
    return out;
  }
  if (const HubFile* single = find(files, "model.safetensors")) {
    Selection out = with_companions(files, {*single});
    out.import_path.clear();
    return out;
  }
  for (const std::string_view end : {".safetensors", ".gguf", ".onnx"}) {
    const Groups found =
        group(files, [&](const HubFile& file) { return file.path.ends_with(end); });
    if (found.size() == 1) return with_companions(files, found.begin()->second);
    if (found.size() > 1)
      return fail(choice(fmt::format("the repository has {} {} models", found.size(), end), found));
  }
  for (const HubFile& file : files)
    if (is_pickle_name(file.path))
      return fail(net::net_error(
          net::kPickle, fmt::format("the repository has pickle files only ({}), which are never "
                                    "read: take one with safetensors or GGUF files",
                                    file.path)));
  return fail(net::net_error(net::kChoice, "the repository has no safetensors, GGUF or ONNX file"));
}

}  // namespace

Result<Selection> select_files(const std::vector<HubFile>& files, const std::string& wanted) {
  if (wanted.empty()) return select_default(files);
  const std::string word = ascii_lower(wanted);
  const bool pattern = word.find_first_of("*?") != std::string::npos;
  const auto find_by = [&](auto test) {
    return group(files, [&](const HubFile& f) { return is_weights(f.path) && test(f.path); });
  };
  Groups found = find_by(
      [&](const std::string& path) { return path == wanted || whole_name(path) == wanted; });
  if (const HubFile* file = find(files, wanted))
    found = find_by(
        [&](const std::string& path) { return whole_name(path) == whole_name(file->path); });
  if (found.empty() && pattern)
    found = find_by([&](const std::string& path) { return matches_glob(word, ascii_lower(path)); });
  if (found.empty() && !pattern)
    found = find_by([&](const std::string& path) { return has_word(ascii_lower(path), word); });
  if (found.empty() && !pattern)
    found = find_by(
        [&](const std::string& path) { return ascii_lower(path).find(word) != std::string::npos; });
  if (found.size() == 1) return with_companions(files, found.begin()->second);
  if (found.size() > 1)
    return fail(choice(fmt::format("\"{}\" fits {} models", wanted, found.size()), found));
  const Groups all = find_by([](const std::string&) { return true; });
  return fail(choice(fmt::format("\"{}\" fits no model file of the repository", wanted), all));
}

Result<void> add_shards(const std::vector<HubFile>& files, std::string_view index_text,
                        Selection& selection) {
  CYB_ASSIGN(const std::vector<std::string> names, parse_shard_names(index_text));
  for (const std::string& name : names) {
    if (!name.ends_with(".safetensors"))
      return fail(net::net_error(net::kMetadata, fmt::format("{} names the shard {}, which is no "
                                                             "safetensors file",
                                                             kIndex, name)));
    const HubFile* file = find(files, name);
    if (file == nullptr)
      return fail(net::net_error(
          net::kChoice,
          fmt::format("{} names {}, which the repository does not have", kIndex, name)));
    selection.files.push_back(*file);
  }
  return {};
}

}  // namespace cyb::api
