// Opening a `.model`: map, split, read the text parts, check them against each other. Vocabulary,
// graph and hashes wait until they are asked for.
#include "model/model.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/limits.hpp"
#include "model/config_check.hpp"
#include "model/format_error.hpp"
#include "model/model_impl.hpp"
#include "model/tensor_index.hpp"
#include "model/toml_cursor.hpp"
#include "model/vocab_text.hpp"

namespace cyb {
namespace {

constexpr std::size_t kAlignment = 64;

bool is_aligned(const std::byte* at) noexcept {
  return reinterpret_cast<std::uintptr_t>(at) % kAlignment == 0;
}

}  // namespace

const TensorEntry* Model::Impl::find(std::string_view wanted) const noexcept {
  const auto it = std::ranges::lower_bound(
      by_name, wanted, {}, [this](std::uint32_t i) { return std::string_view(tensors[i].name); });
  return it != by_name.end() && tensors[*it].name == wanted ? &tensors[*it] : nullptr;
}

Result<void> Model::Impl::load_tensors(const ModelOptions& options) {
  const bool versioned = split.frontmatter.at("cyb.format_version") != nullptr;
  const LegacyEncodings legacy = versioned ? LegacyEncodings::kNone : options.legacy_encodings;
  CYB_ASSIGN(tensors, read_tensor_index(split.body("tensors"), split.weights.size(), legacy));
  by_name.resize(tensors.size());
  std::iota(by_name.begin(), by_name.end(), 0u);
  const auto name_of = [this](std::uint32_t i) { return std::string_view(tensors[i].name); };
  std::ranges::sort(by_name, {}, name_of);
  const auto twice = std::ranges::adjacent_find(by_name, {}, name_of);
  if (twice != by_name.end()) return fail(duplicate_error("key", tensors[*twice].name));
  const auto finder = [this](std::string_view wanted) { return find(wanted); };
  CYB_TRY(check_scale_siblings(tensors, finder));
  CYB_TRY(check_config_against_tensors(config, tensors, finder));
  for (const TensorEntry& t : tensors) {
    if (t.size_bytes > 0 && !is_aligned(split.weights.data() + t.offset)) ++misaligned;
  }
  return {};
}

Result<void> Model::Impl::check_stated_ids() const {
  if (!stated.model || !stated.weights) return {};
  const Digest computed = model_id_of(split, *stated.weights);
  if (computed != *stated.model) return fail(model_id_mismatch(*stated.model, computed));
  return {};
}

Result<void> Model::Impl::load(const ModelOptions& options) {
  const std::uint64_t limit =
      options.text_limit_bytes == 0 ? kMaxTextBytes : options.text_limit_bytes;
  const bool legacy = options.legacy_encodings != LegacyEncodings::kNone;
  CYB_ASSIGN(split, split_model_file(bytes, {limit, legacy}));
  name = *split.frontmatter.at("cyb.name")->string();
  CYB_ASSIGN(stated, stated_ids(split.frontmatter));
  for (const std::string_view part : {"card", "program", "eval"}) {
    CYB_TRY(check_text(split.body(part), part, true));
  }
  CYB_ASSIGN(config, parse_toml(split.body("config"), "config"));
  normalise_config(config);
  CYB_TRY(check_config(config));
  CYB_ASSIGN(model_type, config.string("model_type"));
  if (const FilePart* part = split.find("chat")) {
    CYB_ASSIGN(chat, parse_toml(part->body, "chat"));
  }
  CYB_TRY(load_tensors(options));
  CYB_TRY(check_stated_ids());
  return options.verify_weights ? verify_weights({}, {}) : Result<void>{};
}

Model::Model() : impl_(std::make_unique<Impl>()) {}
Model::~Model() = default;

Result<std::shared_ptr<const Model>> Model::open(const std::string& path,
                                                 const ModelOptions& options) {
  CYB_ASSIGN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  std::shared_ptr<Model> model(new Model);
  Impl& impl = *model->impl_;
  impl.file = std::move(file);
  impl.path = path;
  impl.bytes = impl.file->bytes();
  if (auto loaded = impl.load(options); !loaded) return impl.failure(std::move(loaded).error());
  return model;
}

Result<std::shared_ptr<const Model>> Model::parse(std::span<const std::byte> bytes,
                                                  const ModelOptions& options) {
  std::shared_ptr<Model> model(new Model);
  model->impl_->bytes = bytes;
  CYB_TRY(model->impl_->load(options));
  return model;
}

const std::string& Model::path() const noexcept {
  return impl_->path;
}
const std::string& Model::name() const noexcept {
  return impl_->name;
}
const std::string& Model::model_type() const noexcept {
  return impl_->model_type;
}
std::string_view Model::card() const noexcept {
  return impl_->split.body("card");
}
std::string_view Model::program() const noexcept {
  return impl_->split.body("program");
}
std::string_view Model::eval() const noexcept {
  return impl_->split.body("eval");
}
const ConfigTable& Model::frontmatter() const noexcept {
  return impl_->split.frontmatter;
}
const ConfigTable& Model::config() const noexcept {
  return impl_->config;
}
const ConfigTable* Model::chat() const noexcept {
  return impl_->chat ? &*impl_->chat : nullptr;
}
const std::vector<TensorEntry>& Model::tensors() const noexcept {
  return impl_->tensors;
}
const TensorEntry* Model::find_tensor(std::string_view name) const noexcept {
  return impl_->find(name);
}
std::size_t Model::misaligned_tensors() const noexcept {
  return impl_->misaligned;
}
std::uint64_t Model::weights_bytes() const noexcept {
  return impl_->split.weights.size();
}
std::uint64_t Model::file_bytes() const noexcept {
  return impl_->bytes.size();
}
bool Model::has_graph() const noexcept {
  return impl_->split.find("graph") != nullptr;
}

Result<const VocabData*> Model::vocab() const {
  const std::lock_guard lock(impl_->lazy_mutex);
  auto& kept = impl_->vocab;
  if (!kept) kept = read_vocab(impl_->split.body("vocab"), expected_tokens(impl_->config));
  if (!*kept) return impl_->failure(kept->error());
  return &**kept;
}

Result<Graph> Model::graph() const {
  const FilePart* part = impl_->split.find("graph");
  if (part == nullptr) return impl_->failure(missing_part_error("graph"));
  const auto decoded = [&]() -> Result<Graph> {
    if (part->format == "toml") return parse_graph_toml(part->body);
    CYB_ASSIGN(const std::vector<std::byte> bytes, graph_from_hex(part->body));
    return decode_graph(bytes);
  };
  auto result = decoded();
  if (!result) return impl_->failure(std::move(result).error());
  return result;
}

std::uint64_t Model::copied_bytes() const noexcept {
  const std::uint64_t below = impl_->base != nullptr ? impl_->base->copied_bytes() : 0;
  const std::lock_guard lock(impl_->lazy_mutex);
  return below + impl_->copied_bytes;
}

bool Model::is_mapped(std::span<const std::byte> bytes) const noexcept {
  if (impl_->file == nullptr || bytes.empty()) return false;
  const std::span<const std::byte> all = impl_->bytes;
  const auto address = [](const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at); };
  return address(bytes.data()) >= address(all.data()) &&
         address(bytes.data()) < address(all.data()) + all.size();
}

void Model::release(std::span<const std::byte> bytes) const noexcept {
  if (!is_mapped(bytes)) return;
  impl_->file->release(static_cast<std::uint64_t>(bytes.data() - impl_->bytes.data()),
                       bytes.size());
}

std::span<const std::byte> Model::tensor_bytes(const TensorEntry& entry) const noexcept {
  if (impl_->base != nullptr) {
    const TensorEntry* stored = impl_->base->find_tensor(entry.name);
    if (stored != nullptr && stored->dtype != entry.dtype) return impl_->decoded_bytes(entry);
    if (stored != nullptr) return impl_->base->tensor_bytes(*stored);
  }
  const auto size = static_cast<std::size_t>(entry.size_bytes);
  const std::span<const std::byte> stored =
      impl_->split.weights.subspan(static_cast<std::size_t>(entry.offset), size);
  if (size == 0 || is_aligned(stored.data())) return stored;
  const std::lock_guard lock(impl_->lazy_mutex);
  const auto found = impl_->copies.find(entry.offset);
  if (found != impl_->copies.end()) return {found->second.get(), size};
  const std::size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  AlignedBytes copy(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
  if (copy == nullptr) return {};
  std::memcpy(copy.get(), stored.data(), size);
  impl_->copied_bytes += size;
  return {impl_->copies.emplace(entry.offset, std::move(copy)).first->second.get(), size};
}

}  // namespace cyb
