// Streaming of source tensors, and what completes a draft.
#include "import/draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <stop_token>

#include "base/json_text.hpp"
#include "base/utf8.hpp"
#include "model/graph.hpp"
#include "model/store_index.hpp"
#include "paths/family.hpp"
#include "paths/graph/record.hpp"
#include "tensor/dtype.hpp"

namespace cyb {
namespace {

constexpr std::uint64_t kChunkBytes = std::uint64_t{4} << 20;

/// Tensors of a draft as a family sees them.
class DraftTensors final : public TensorSource {
 public:
  explicit DraftTensors(const ModelDraft& draft) {
    for (const DraftTensor& tensor : draft.tensors) tensors_.emplace(tensor.name, &tensor);
  }

  std::optional<TensorSpec> find(std::string_view name) const override {
    const auto at = tensors_.find(name);
    if (at == tensors_.end()) return std::nullopt;
    return TensorSpec::of(at->second->dtype, at->second->shape);
  }

  Result<std::vector<float>> read_f32(std::string_view name) const override {
    const auto at = tensors_.find(name);
    if (at == tensors_.end()) return fail(missing_tensor(name, "the family"));
    const DraftTensor& tensor = *at->second;
    const DecodeFn decode = format_info(tensor.dtype).decode;
    if (decode == nullptr) return fail(source_encoding(name, dtype_name(tensor.dtype)));
    std::vector<std::byte> bytes;
    CYB_TRY(tensor.produce([&bytes](std::span<const std::byte> part) -> Result<void> {
      bytes.insert(bytes.end(), part.begin(), part.end());
      return {};
    }));
    std::vector<float> values(static_cast<std::size_t>(tensor.shape.count()));
    decode(bytes.data(), values.data(), values.size());
    return values;
  }

 private:
  std::map<std::string_view, const DraftTensor*> tensors_;
};

/// Adds the source's own name of the tensor that an error speaks of ("tensor \"<canonical>\"").
Error with_source_name(Error error, std::span<const NameRow> table) {
  const std::string& text = error.message();
  constexpr std::string_view kMark = "tensor \"";
  const std::size_t mark = text.find(kMark);
  if (mark == std::string::npos) return error;
  const std::size_t begin = mark + kMark.size();
  const auto source = gguf_name(table, text.substr(begin, text.find('"', begin) - begin));
  return source ? std::move(error).in(*source) : error;
}

Result<void> record(ModelDraft& draft, const DraftTensors& tensors) {
  CYB_ASSIGN(const Graph graph, record_graph(draft.config, tensors));
  const auto lookup = [&tensors](std::string_view name) { return tensors.find(name); };
  CYB_TRY(validate_graph(graph, lookup));
  draft.graph_hex = graph_to_hex(encode_graph(graph));
  return {};
}

/// `written` instead of `text`, said where they differ.
std::string noted(std::string_view what, std::string_view text, std::string written,
                  ImportReport& report) {
  if (written != text) {
    report.warnings.push_back(
        fmt::format("{} holds control characters or is not valid UTF-8: {} was written", what,
                    json_quote(written)));
  }
  return written;
}

constexpr std::size_t kMaxNameBytes = 128;

bool is_name_character(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

void report_sampling(const ModelDraft& draft, ImportReport& report) {
  const ConfigValue* sampling = draft.config.find("sampling");
  if (sampling == nullptr || sampling->table() == nullptr) return;
  report.sampling.clear();
  for (const auto& [key, value] : sampling->table()->items()) {
    if (!report.sampling.empty()) report.sampling += ", ";
    if (const std::string* text = value.string()) report.sampling += *text;
    if (const auto number = value.number()) report.sampling += fmt::format("{} {}", key, *number);
  }
}

void report_tensors(const ModelDraft& draft, ImportReport& report) {
  report.n_tensors = draft.tensors.size();
  report.parameters = report.weights_bytes = 0;
  std::map<std::string_view, ReportEncoding> by_name;
  for (const DraftTensor& tensor : draft.tensors) {
    const std::uint64_t bytes = tensor_bytes(tensor.dtype, tensor.shape).value_or(0);
    ReportEncoding& row = by_name[dtype_name(tensor.dtype)];
    ++row.count;
    row.bytes += bytes;
    report.weights_bytes += bytes;
    if (!tensor.name.starts_with("cyb.")) report.parameters += tensor.shape.elements().value_or(0);
  }
  report.encodings.clear();
  for (auto& [name, row] : by_name) {
    row.name = name;
    report.encodings.push_back(row);
  }
  std::ranges::sort(report.encodings, std::ranges::greater{}, &ReportEncoding::bytes);
}

}  // namespace

DraftTensor copied(SourceTensor tensor) {
  DraftTensor out;
  out.name = tensor.name;
  out.dtype = tensor.dtype;
  out.shape = tensor.shape;
  out.produce = [source = std::move(tensor)](const ByteSink& sink) -> Result<void> {
    const std::span<const std::byte> all = source.bytes();
    for (std::uint64_t at = 0; at < all.size(); at += kChunkBytes) {
      const std::uint64_t size = std::min<std::uint64_t>(kChunkBytes, all.size() - at);
      CYB_TRY(sink(all.subspan(at, size)));
      source.file->release(source.offset + at, size);
    }
    return {};
  };
  return out;
}

Result<DraftTensor> unpermuted(SourceTensor tensor, std::int64_t n_heads) {
  const std::int64_t n_rows = tensor.shape.rank() == 0 ? 0 : tensor.shape[0];
  if (n_heads <= 0 || n_rows == 0 || n_rows % (2 * n_heads) != 0) {
    return fail(Error(ErrorKind::kFormat, "F33",
                      fmt::format("tensor {}: {} rows do not split into {} heads of an even size",
                                  json_quote(tensor.source_name), n_rows, n_heads)));
  }
  DraftTensor out;
  out.name = tensor.name;
  out.dtype = tensor.dtype;
  out.shape = tensor.shape;
  const auto head_rows = static_cast<std::size_t>(n_rows / n_heads);
  const std::uint64_t row_bytes = tensor.size_bytes / static_cast<std::uint64_t>(n_rows);
  out.produce = [source = std::move(tensor), head_rows,
                 row_bytes](const ByteSink& sink) -> Result<void> {
    const std::span<const std::byte> all = source.bytes();
    const std::uint64_t head_bytes = head_rows * row_bytes;
    std::vector<std::byte> head(head_bytes);
    for (std::uint64_t at = 0; at < all.size(); at += head_bytes) {
      for (std::size_t row = 0; row < head_rows; ++row) {
        const std::size_t half = row / (head_rows / 2), pair = row % (head_rows / 2);
        std::memcpy(head.data() + row * row_bytes, all.data() + at + (2 * pair + half) * row_bytes,
                    row_bytes);
      }
      CYB_TRY(sink(head));
      source.file->release(source.offset + at, head_bytes);
    }
    return {};
  };
  return out;
}

bool same_content(const SourceTensor& a, const SourceTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape || a.size_bytes != b.size_bytes) return false;
  const std::span<const std::byte> left = a.bytes(), right = b.bytes();
  for (std::uint64_t at = 0; at < left.size(); at += kChunkBytes) {
    const std::uint64_t size = std::min<std::uint64_t>(kChunkBytes, left.size() - at);
    if (std::memcmp(left.data() + at, right.data() + at, size) != 0) return false;
    a.file->release(a.offset + at, size);
    b.file->release(b.offset + at, size);
  }
  return true;
}

Result<void> complete_draft(ModelDraft& draft, const SourceNames& names, ImportReport& report) {
  std::ranges::sort(draft.tensors, {},
                    [](const DraftTensor& t) { return std::pair(file_order(t.name), t.name); });
  CYB_ASSIGN(const std::string model_type, draft.config.string("model_type"));
  const FamilyRow* family = find_family(model_type);
  if (family == nullptr)
    return fail(not_built(fmt::format("model_type {}", json_quote(model_type))));
  const DraftTensors tensors(draft);
  const auto bound = family->bind(draft.config, tensors);
  if (!bound) return fail(with_source_name(bound.error(), names.table));
  for (const SourceName& name : names.present) {
    if ((*bound)->uses_tensor(name.canonical)) continue;
    return fail(
        Error(ErrorKind::kFormat, "IMPORT",
              fmt::format("tensor {} is not part of family {}: it cannot be left out silently",
                          json_quote(name.source), family->family)));
  }
  if (auto done = record(draft, tensors); !done)
    return fail(with_source_name(std::move(done).error(), names.table));
  report.name = draft.name;
  report.family = family->family;
  report.model_type = model_type;
  report_tensors(draft, report);
  report_sampling(draft, report);
  return {};
}

std::string one_line(std::string_view text) {
  std::string out = utf8_replace_invalid(text);
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return out;
}

Result<std::string> draft_name(const std::string& wished, const std::string& path,
                               ImportReport& report) {
  if (!wished.empty()) {
    if (is_store_name(wished)) return wished;
    return fail(invalid_input(fmt::format(
        "name {}: want 1 to {} of A-Z a-z 0-9 . _ -, not starting with . or - (it has {} bytes)",
        json_quote(wished.substr(0, kMaxNameBytes)), kMaxNameBytes, wished.size())));
  }
  std::string base = path;
  while (base.size() > 1 && base.back() == '/') base.pop_back();
  base = base.substr(base.rfind('/') + 1);
  for (const std::string_view ending : {".gguf", ".safetensors", ".GGUF"}) {
    if (base.ends_with(ending)) base.resize(base.size() - ending.size());
  }
  std::string out;
  for (const char c : base) out += is_name_character(c) ? c : '-';
  out.erase(0, std::min(out.find_first_not_of(".-"), out.size()));
  if (out.size() > kMaxNameBytes) out.resize(kMaxNameBytes);
  if (out.empty()) out = "model";
  if (out != base) {
    report.assumptions.push_back(fmt::format(
        "the name {}, because {} is no model name (--name chooses another)", out, one_line(base)));
  }
  return out;
}

std::string shown_text(std::string_view what, std::string_view text, ImportReport& report) {
  return noted(what, text, one_line(text), report);
}

std::string valid_text(std::string_view what, std::string_view text, ImportReport& report) {
  return noted(what, text, utf8_replace_invalid(text), report);
}

}  // namespace cyb
