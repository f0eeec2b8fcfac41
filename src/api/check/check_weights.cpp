// Configuration and every tensor of the source, decoded, beside the model's own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "api/check/rows.hpp"
#include "base/json_text.hpp"
#include "tensor/dtype.hpp"
#include "tensor/formats/formats.hpp"

namespace cyb::api {
namespace {

/// A number as models compute with it: a GGUF file holds 1e-05 as the nearest f32.
std::string number_text(double value) {
  if (value == std::floor(value)) return fmt::format("{}", value);
  return fmt::format("{}", static_cast<float>(value));
}

/// Values of a config by dotted path. What text needs is checked by rows of its own.
void flatten(const ConfigTable& table, const std::string& prefix,
             std::map<std::string, std::string>& out) {
  for (const auto& [key, value] : table.items()) {
    const std::string path = prefix + key;
    const bool own_row = path == "parameters" || path == "tokenizer" || path == "sampling";
    if (own_row) continue;
    if (value.table() != nullptr) {
      flatten(*value.table(), path + ".", out);
      continue;
    }
    ConfigTable one;
    one.set("x", value);
    out[path] = value.number() ? number_text(*value.number()) : write_toml(one).substr(4);
  }
}

/// The importer's own pictures of a source and of a file of ours differ in defaults that the writer
/// states: a key that one side does not have is compared only where the source has it.
std::string config_difference(const ConfigTable& got, const ConfigTable& want, std::size_t& n) {
  std::map<std::string, std::string> a, b;
  flatten(got, "", a);
  flatten(want, "", b);
  n = b.size();
  for (const auto& [path, value] : b) {
    const auto at = a.find(path);
    if (at == a.end()) return fmt::format("{} is missing, the source has {}", path, value);
    if (at->second != value)
      return fmt::format("{}: {}, the source has {}", path, at->second, value);
  }
  for (const auto& [path, value] : a) {
    if (!b.contains(path)) return fmt::format("{} = {} is not of the source", path, value);
  }
  return {};
}

/// One tensor of both sides, decoded in step: the source's bytes come in pieces.
class Comparison {
 public:
  Comparison(const Model& model, const TensorEntry& entry, const DraftTensor& tensor)
      : got_(model.tensor_bytes(entry)),
        got_format_(format_info(entry.dtype)),
        want_format_(format_info(tensor.dtype)) {
    // Blocks of both formats end together there.
    step_ = std::size_t{got_format_.block_values} * want_format_.block_values;
    while (step_ < 4096) step_ *= 2;
  }

  bool can_decode() const {
    return got_format_.decode != nullptr && want_format_.decode != nullptr;
  }

  Result<void> add(std::span<const std::byte> part) {
    held_.insert(held_.end(), part.begin(), part.end());
    const std::size_t step_bytes = step_ / want_format_.block_values * want_format_.block_bytes;
    std::size_t at = 0;
    for (; held_.size() - at >= step_bytes; at += step_bytes) compare(at, step_bytes);
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(at));
    return {};
  }
  void finish() {
    compare(0, held_.size());
    held_.clear();
  }

  std::uint64_t n_values = 0, n_differ = 0;
  double difference = 0, squares = 0;  // sums of squares

 private:
  void compare(std::size_t at, std::size_t size) {
    const std::size_t n = size / want_format_.block_bytes * want_format_.block_values;
    const std::size_t offset =
        static_cast<std::size_t>(n_values / got_format_.block_values * got_format_.block_bytes);
    const std::size_t got_size = n / got_format_.block_values * got_format_.block_bytes;
    if (n == 0) return;
    if (offset + got_size > got_.size()) {
      n_differ += n;
      return;
    }
    a_.resize(n);
    b_.resize(n);
    want_bytes_.assign(held_.begin() + static_cast<std::ptrdiff_t>(at),
                       held_.begin() + static_cast<std::ptrdiff_t>(at + size));
    got_format_.decode(got_.data() + offset, a_.data(), n);
    want_format_.decode(want_bytes_.data(), b_.data(), n);
    for (std::size_t i = 0; i < n; ++i) {
      n_differ += std::memcmp(&a_[i], &b_[i], sizeof(float)) != 0;
      const double want = b_[i], d = static_cast<double>(a_[i]) - want;
      difference += d * d;
      squares += want * want;
    }
    n_values += n;
  }

  std::span<const std::byte> got_;
  const FormatInfo &got_format_, &want_format_;
  std::size_t step_ = 0;
  std::vector<std::byte> held_, want_bytes_;
  std::vector<float> a_, b_;
};

/// Largest error of a requantised tensor relative to its values, both as root mean square: what
/// blocks of two bits make of random weights is below it.
constexpr double kMaxRequantised = 0.35;

/// The same for weights kept in fewer bits without blocks: half a unit of the last place.
double most_rounded(DType dtype) noexcept {
  return dtype == DType::kF16 ? 0x1p-11 : dtype == DType::kBf16 ? 0x1p-8 : 0.0;
}

struct Totals {
  std::size_t n_equal = 0, n_requantised = 0;
  std::uint64_t n_values = 0;
  double worst = 0;
  std::string worst_name;
};

Result<std::string> compare_tensor(const Model& model, const DraftTensor& tensor, Totals& totals) {
  const TensorEntry* entry = model.find_tensor(tensor.name);
  if (entry == nullptr) return fmt::format("{} is missing", json_quote(tensor.name));
  if (entry->shape != tensor.shape) {
    return fmt::format("{}: shape {}, the source has {}", json_quote(tensor.name),
                       entry->shape.text(), tensor.shape.text());
  }
  Comparison compare(model, *entry, tensor);
  if (!compare.can_decode()) return fmt::format("{} cannot be decoded", json_quote(tensor.name));
  CYB_TRY(
      tensor.produce([&compare](std::span<const std::byte> part) { return compare.add(part); }));
  compare.finish();
  totals.n_values += compare.n_values;
  if (compare.n_differ == 0) {
    ++totals.n_equal;
    return std::string();
  }
  const bool changed = entry->dtype != tensor.dtype;
  const bool blocks = format_info(entry->dtype).block_values > 1;
  const double most = !changed ? 0.0 : blocks ? kMaxRequantised : most_rounded(entry->dtype);
  const double error = std::sqrt(compare.difference / std::max(compare.squares, 1e-300));
  if (!(error <= most) || most == 0.0) {
    return fmt::format(
        "{}: {} of {} values differ ({} here, {} in the source; relative error {:.3g})",
        json_quote(tensor.name), compare.n_differ, compare.n_values, dtype_name(entry->dtype),
        dtype_name(tensor.dtype), error);
  }
  ++totals.n_requantised;
  if (error > totals.worst) {
    totals.worst = error;
    totals.worst_name = tensor.name;
  }
  return std::string();
}

}  // namespace

Result<void> check_architecture(const Model& model, const Source& source, Rows& rows) {
  CYB_TRY(rows.begin("configuration"));
  if (!source.draft) {
    rows.not_run("no source was named with --against");
  } else if (!source.has_weights) {
    rows.not_run("the source is a tokenizer alone");
  } else {
    std::size_t n = 0;
    std::string problem = config_difference(model.config(), source.draft->config, n);
    rows.judge(std::move(problem), fmt::format("{} keys equal to the source's", n));
  }
  return {};
}

Result<void> check_weights(const Model& model, const Source& source, Rows& rows) {
  CYB_TRY(rows.begin("weights"));
  if (!source.draft || !source.has_weights) {
    rows.not_run(source.draft ? "the source is a tokenizer alone"
                              : "no source was named with --against");
    return {};
  }
  Totals totals;
  std::set<std::string> names;
  for (const DraftTensor& tensor : source.draft->tensors) {
    if (rows.stop().stop_requested()) return fail(cancelled(0));
    names.insert(tensor.name);
    CYB_ASSIGN(std::string problem, compare_tensor(model, tensor, totals));
    if (!problem.empty()) {
      rows.fail(std::move(problem));
      return {};
    }
  }
  for (const TensorEntry& entry : model.tensors()) {
    if (names.contains(entry.name)) continue;
    rows.fail(fmt::format("{} is not of the source", json_quote(entry.name)));
    return {};
  }
  std::string good = fmt::format("{} tensors with {} values: {} equal bit for bit", names.size(),
                                 totals.n_values, totals.n_equal);
  if (totals.n_requantised > 0) {
    good += fmt::format(", {} in another encoding (largest relative error {:.3g}, {})",
                        totals.n_requantised, totals.worst, totals.worst_name);
  }
  rows.pass(std::move(good));
  return {};
}

}  // namespace cyb::api
