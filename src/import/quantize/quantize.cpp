// Choosing encodings and putting an EncodeStream before each tensor that changes.
#include "import/quantize/quantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/json_text.hpp"
#include "base/thread_pool.hpp"
#include "import/quantize/encode_stream.hpp"
#include "import/quantize/rules.hpp"
#include "model/graph.hpp"
#include "model/scale.hpp"
#include "paths/family.hpp"

namespace cyb {
namespace {

using quantize::Choice;

/// Tensors by name; views of a draft whose tensors stay.
class TensorsByName {
 public:
  explicit TensorsByName(const std::vector<DraftTensor>& tensors) {
    for (const DraftTensor& tensor : tensors) at_.emplace(tensor.name, &tensor);
  }
  const DraftTensor* find(std::string_view name) const {
    const auto at = at_.find(name);
    return at == at_.end() ? nullptr : at->second;
  }

 private:
  std::map<std::string_view, const DraftTensor*> at_;
};

/// All values of a small f32 tensor.
Result<std::vector<float>> read_f32(const DraftTensor& tensor) {
  std::vector<std::byte> bytes;
  CYB_TRY(tensor.produce([&bytes](std::span<const std::byte> part) -> Result<void> {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  }));
  std::vector<float> out(static_cast<std::size_t>(tensor.shape.count()));
  if (bytes.size() != out.size() * sizeof(float)) return fail(internal_error("a scale is not f32"));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

/// The tensor with another encoding; `scale`: its sibling, or null.
DraftTensor encoded(DraftTensor tensor, DType to, const DraftTensor* scale,
                    std::shared_ptr<ThreadPool> pool, QuantizedTensor& row) {
  DraftTensor out;
  out.name = tensor.name;
  out.dtype = to;
  out.shape = tensor.shape;
  std::optional<DraftTensor> factors;
  if (scale != nullptr) factors = *scale;
  out.produce = [from = std::move(tensor), to, factors = std::move(factors), pool = std::move(pool),
                 &row](const ByteSink& sink) -> Result<void> {
    quantize::StreamJob job{from.name, from.shape, from.dtype, to};
    if (factors) {
      CYB_ASSIGN(std::vector<float> values, read_f32(*factors));
      job.scale = quantize::StreamScale{factors->shape, std::move(values)};
    }
    quantize::EncodeStream stream(std::move(job), *pool, sink);
    CYB_TRY(
        from.produce([&stream](std::span<const std::byte> bytes) { return stream.update(bytes); }));
    CYB_TRY(stream.finish());
    row.squared_error = stream.squared_error();
    row.squared_values = stream.squared_values();
    return {};
  };
  return out;
}

class Quantizer {
 public:
  Quantizer(ModelDraft& draft, const QuantizeOptions& options, QuantizeReport& report)
      : draft_(draft),
        options_(options),
        report_(report),
        tensors_(draft.tensors),
        facts_{tensors_.find("lm_head.weight") != nullptr},
        used_(options.keep.size(), false) {}

  Result<void> run() {
    CYB_TRY(check_model());
    CYB_TRY(choose_all());
    CYB_TRY(check_requantizing());
    apply();
    return check_graph();
  }

 private:
  static Result<void> check_encoder(DType dtype) {
    const std::vector<DType> known = quantize_targets();
    if (std::ranges::find(known, dtype) != known.end()) return {};
    return fail(invalid_input(fmt::format("there is no encoder for {}", dtype_name(dtype))));
  }

  Result<void> check_model() const {
    CYB_TRY(check_encoder(options_.to));
    for (const KeepRule& rule : options_.keep) CYB_TRY(check_encoder(rule.to));
    CYB_ASSIGN(const std::string model_type, draft_.config.string("model_type"));
    if (find_family(model_type) != nullptr) return {};
    return fail(
        not_built(fmt::format("quantising a model of model_type {}", json_quote(model_type))));
  }

  /// The tensor that `tensor` is the scale of, or null.
  const DraftTensor* scaled_by(const DraftTensor& tensor) const {
    constexpr std::string_view kSuffix = ".scale";
    if (!tensor.name.ends_with(kSuffix)) return nullptr;
    const std::string_view name = tensor.name;
    const DraftTensor* base = tensors_.find(name.substr(0, name.size() - kSuffix.size()));
    return base != nullptr && has_scale_sibling(base->dtype) ? base : nullptr;
  }

  Result<Choice> choice_of(const DraftTensor& tensor) {
    for (std::size_t i = 0; i < options_.keep.size(); ++i) {
      const KeepRule& rule = options_.keep[i];
      if (!matches_glob(rule.pattern, tensor.name)) continue;
      used_[i] = true;
      if (const auto why = quantize::why_not(tensor, rule.to)) {
        return fail(invalid_input(fmt::format("tensor {}: {} asked for by the pattern {}: {}",
                                              json_quote(tensor.name), dtype_name(rule.to),
                                              json_quote(rule.pattern), *why)));
      }
      return Choice{rule.to, "asked for"};
    }
    return quantize::choose(tensor, options_.to, facts_);
  }

  Result<void> choose_all() {
    for (const DraftTensor& tensor : draft_.tensors) {
      QuantizedTensor row;
      row.name = tensor.name;
      row.from = row.to = tensor.dtype;
      row.n_values = tensor.shape.elements().value_or(0);
      if (scaled_by(tensor) == nullptr) {
        CYB_ASSIGN(Choice choice, choice_of(tensor));
        row.to = choice.to;
        row.reason = std::move(choice.reason);
      }
      row.bytes_before = tensor_bytes(row.from, tensor.shape).value_or(0);
      row.bytes_after = tensor_bytes(row.to, tensor.shape).value_or(0);
      if (is_requantized(row)) ++report_.n_requantized;
      if (row.to != row.from) changed_.insert(tensor.name);
      report_.tensors.push_back(std::move(row));
    }
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (used_[i]) continue;
      return fail(invalid_input(
          fmt::format("the pattern {} matches no tensor", json_quote(options_.keep[i].pattern))));
    }
    return {};
  }

  static bool is_requantized(const QuantizedTensor& row) {
    return row.to != row.from && is_block(row.from) && is_block(row.to);
  }

  Result<void> check_requantizing() const {
    if (report_.n_requantized == 0 || options_.allow_requantize) return {};
    std::map<std::string_view, std::uint64_t> counts;
    for (const QuantizedTensor& row : report_.tensors) {
      if (is_requantized(row)) ++counts[dtype_name(row.from)];
    }
    std::string text;
    for (const auto& [name, n] : counts)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", n, name);
    return fail(invalid_input(fmt::format(
        "the source is quantised already ({} tensors): its errors would add to the new ones. Take "
        "the unquantised model, or allow it with --allow-requantize",
        text)));
  }

  void apply() {
    auto pool = std::make_shared<ThreadPool>(options_.n_threads);
    std::vector<DraftTensor> out;
    std::vector<QuantizedTensor> rows;
    rows.reserve(report_.tensors.size());  // closures keep references to the rows
    for (std::size_t i = 0; i < draft_.tensors.size(); ++i) {
      const DraftTensor& tensor = draft_.tensors[i];
      const DraftTensor* base = scaled_by(tensor);
      if (base != nullptr && changed_.contains(base->name)) continue;  // in the new values
      rows.push_back(std::move(report_.tensors[i]));
      QuantizedTensor& row = rows.back();
      if (row.to == row.from) {
        out.push_back(tensor);
        continue;
      }
      const DraftTensor* scale =
          has_scale_sibling(row.from) ? tensors_.find(tensor.name + ".scale") : nullptr;
      if (scale != nullptr)
        row.bytes_before += tensor_bytes(scale->dtype, scale->shape).value_or(0);
      out.push_back(encoded(tensor, row.to, scale, pool, row));
    }
    draft_.tensors = std::move(out);
    report_.tensors = std::move(rows);  // the elements stay where they are
  }

  Result<void> check_graph() const {
    if (!draft_.graph_hex) return {};
    CYB_ASSIGN(const std::vector<std::byte> bytes, graph_from_hex(*draft_.graph_hex));
    CYB_ASSIGN(const Graph graph, decode_graph(bytes));
    const TensorsByName tensors(draft_.tensors);
    const auto lookup = [&tensors](std::string_view name) -> std::optional<TensorSpec> {
      const DraftTensor* tensor = tensors.find(name);
      if (tensor == nullptr) return std::nullopt;
      return TensorSpec::of(tensor->dtype, tensor->shape);
    };
    CYB_TRY(validate_graph(graph, lookup));
    return {};
  }

  ModelDraft& draft_;
  const QuantizeOptions& options_;
  QuantizeReport& report_;
  TensorsByName tensors_;  // until apply()
  quantize::ModelFacts facts_;
  std::set<std::string, std::less<>> changed_;
  std::vector<bool> used_;
};

}  // namespace

Result<void> quantize_draft(ModelDraft& draft, const QuantizeOptions& options,
                            QuantizeReport& report) {
  const auto source = draft.lineage.find("method");
  const std::string before =
      source != nullptr && source->string() != nullptr ? *source->string() + ", " : std::string();
  CYB_TRY(Quantizer(draft, options, report).run());
  draft.lineage.set("method", fmt::format("{}quantize {}", before, dtype_name(options.to)));
  return {};
}

}  // namespace cyb
