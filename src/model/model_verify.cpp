// Identities and verification of an open model. One pass over the weights serves every hash and the
// check for finite values.
#include <algorithm>

#include "model/finite.hpp"
#include "model/format_error.hpp"
#include "model/model.hpp"
#include "model/model_impl.hpp"
#include "model/store_rebuild.hpp"
#include "model/vocab_text.hpp"

#include <fmt/format.h>

namespace cyb {
namespace {

constexpr std::size_t kStepBytes = std::size_t{1} << 20;

/// The pass over the weights: every byte goes to the part's hash, tensor bytes also to their own.
class WeightsPass {
 public:
  WeightsPass(std::span<const std::byte> weights, std::stop_token stop,
              const ByteProgress& progress)
      : weights_(weights), stop_(std::move(stop)), progress_(progress) {}

  Result<void> gap(std::uint64_t end) {
    return steps(end, [](std::span<const std::byte>) { return Result<void>{}; });
  }

  Result<void> tensor(const TensorEntry& t) {
    FiniteCheck finite(t.name, t.dtype);
    Blake3 hasher;
    CYB_TRY(steps(t.offset + t.size_bytes, [&](std::span<const std::byte> bytes) {
      if (t.hash) hasher.update(bytes);
      return finite.update(bytes);
    }));
    if (t.hash && hasher.finish() != *t.hash) {
      return fail(
          format_error("F41", fmt::format("tensor \"{}\": hash mismatch", printable(t.name))));
    }
    return {};
  }

  Digest finish() const { return hasher_.finish(); }

 private:
  template <class F>
  Result<void> steps(std::uint64_t end, F each) {
    while (at_ < end) {
      if (stop_.stop_requested())
        return fail(cancelled_bytes("verification", at_, weights_.size()));
      const std::uint64_t step = std::min<std::uint64_t>(kStepBytes, end - at_);
      const auto bytes =
          weights_.subspan(static_cast<std::size_t>(at_), static_cast<std::size_t>(step));
      hasher_.update(bytes);
      CYB_TRY(each(bytes));
      at_ += step;
      if (progress_) progress_(at_);
    }
    return {};
  }

  std::span<const std::byte> weights_;
  std::stop_token stop_;
  const ByteProgress& progress_;
  Blake3 hasher_;
  std::uint64_t at_ = 0;
};

/// Spaces and one LF.
Result<void> check_pad(std::string_view pad) {
  if (pad.empty()) return {};
  const std::size_t at = pad.find_first_not_of(' ');
  if (at + 1 == pad.size() && pad[at] == '\n') return {};
  return fail(format_error("F05", fmt::format("pad: byte {} is neither a space nor the final line "
                                              "feed",
                                              std::min(at, pad.size()))));
}

/// What [[files]] says of the weights' alignment is true.
Result<void> check_alignment(const SplitFile& file) {
  for (const ConfigValue& entry : *file.frontmatter.find("files")->array()) {
    const ConfigValue* align = entry.table()->find("align");
    if (align == nullptr) continue;
    const std::int64_t* stated = align->integer();
    const bool right = stated != nullptr && *stated > 0 &&
                       file.weights_offset % static_cast<std::uint64_t>(*stated) == 0;
    if (right) continue;
    return fail(format_error(
        "F31", fmt::format("frontmatter: files: align: out of range: the weights start at byte {}",
                           file.weights_offset)));
  }
  return {};
}

}  // namespace

Result<void> Model::Impl::verify_weights(std::stop_token stop, const ByteProgress& progress) const {
  WeightsPass pass(split.weights, std::move(stop), progress);
  for (const TensorEntry& t : tensors) {
    if (t.size_bytes == 0) continue;
    CYB_TRY(pass.gap(t.offset));
    CYB_TRY(pass.tensor(t));
  }
  CYB_TRY(pass.gap(split.weights.size()));
  const Digest hash = pass.finish();
  {
    const std::lock_guard lock(lazy_mutex);
    weights_hash = hash;
  }
  const Digest computed = model_id_of(split, hash);
  if (stated.model && *stated.model != computed)
    return fail(model_id_mismatch(*stated.model, computed));
  if (stated.weights && *stated.weights != hash) {
    return fail(format_error("F41", fmt::format("weights: hash mismatch: expected {}, computed {}",
                                                digest_text(*stated.weights), digest_text(hash))));
  }
  return {};
}

Result<Digest> Model::Impl::hash_weights(std::stop_token stop) const {
  {
    const std::lock_guard lock(lazy_mutex);
    if (weights_hash) return *weights_hash;
  }
  CYB_ASSIGN(const Digest hash, hash_bytes(split.weights, std::move(stop)));
  const std::lock_guard lock(lazy_mutex);
  weights_hash = hash;
  return hash;
}

Result<Digest> Model::model_id() const {
  if (impl_->stated.model) return *impl_->stated.model;
  return computed_model_id();
}

Result<Digest> Model::computed_model_id() const {
  CYB_ASSIGN(const Digest hash, impl_->hash_weights({}));
  return model_id_of(impl_->split, hash);
}

Result<Digest> Model::file_id() const {
  {
    const std::lock_guard lock(impl_->lazy_mutex);
    if (impl_->file_hash) return *impl_->file_hash;
  }
  CYB_ASSIGN(const Digest hash, hash_bytes(impl_->bytes, {}));
  const std::lock_guard lock(impl_->lazy_mutex);
  impl_->file_hash = hash;
  return hash;
}

Result<void> Model::verify_weights(std::stop_token stop,
                                   const std::function<void(std::uint64_t)>& progress) const {
  if (impl_->base != nullptr) return impl_->base->verify_weights(std::move(stop), progress);
  auto result = impl_->verify_weights(std::move(stop), progress);
  if (!result) return impl_->failure(std::move(result).error());
  return result;
}

std::vector<std::string> Model::outside_model_id() const {
  std::vector<std::string> out{"frontmatter"};
  for (const FilePart& part : impl_->split.parts) {
    const bool inside =
        part.name == "weights" || std::ranges::count(kIdentityParts, part.name) != 0;
    if (!inside) out.push_back(part.name);
  }
  return out;
}

Result<void> Model::Impl::verify_graph(const Graph& decoded) const {
  const WeightLookup weights = [this](std::string_view wanted) -> std::optional<TensorSpec> {
    const TensorEntry* t = find(wanted);
    return t == nullptr ? std::nullopt : std::optional(TensorSpec::of(t->dtype, t->shape));
  };
  CYB_TRY(validate_graph(decoded, weights));
  return {};
}

Result<void> Model::verify(std::stop_token stop) const {
  if (impl_->base != nullptr) return impl_->base->verify(std::move(stop));
  CYB_ASSIGN(const VocabData* words, vocab());
  const auto check_text_parts = [&]() -> Result<void> {
    CYB_TRY(check_merges(*words));
    CYB_TRY(parse_toml(eval(), "eval"));
    CYB_TRY(check_pad(impl_->split.body("pad")));
    return check_alignment(impl_->split);
  };
  if (auto checked = check_text_parts(); !checked)
    return impl_->failure(std::move(checked).error());
  if (has_graph()) {
    CYB_ASSIGN(const Graph decoded, graph());
    if (auto valid = impl_->verify_graph(decoded); !valid)
      return impl_->failure(std::move(valid).error());
  }
  CYB_TRY(verify_weights(stop));
  const std::optional<Digest> place = file_id_of_path(path());
  if (!place) return {};
  CYB_ASSIGN(const Digest computed, hash_bytes(impl_->bytes, std::move(stop)));
  if (*place == computed) return {};
  return impl_->failure(format_error(
      "F40", fmt::format("file id mismatch: its place in the store says {}, computed {}",
                         digest_text(*place), digest_text(computed))));
}

}  // namespace cyb
