// Import: GGUF files, Hugging Face folders and ONNX files become a ModelDraft, then one `.model`
// file. Nothing is dropped silently: every tensor and every configuration key is used, known to be
// harmless, or refused by name.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/store.hpp"
#include "model/writer.hpp"

namespace cyb {

struct ImportProgress {
  std::uint64_t bytes_done = 0, bytes_total = 0;
  std::string_view what;  // tensor or part at work
};

struct ImportOptions {
  std::string name;                                     // "": from the source's file or folder name
  std::function<void(const ImportProgress&)> progress;  // may be empty
  std::stop_token stop;                                 // Cancelled; nothing is left behind
  std::vector<std::pair<std::string, std::int64_t>> dims = {};  // ONNX: named dimensions, fixed
  bool tokenizer_only = false;  // the vocabulary without any tensor; then a tokenizer file, too
  std::string encoding = {};    // of a tiktoken rank file: cl100k_base...; "": by its name
};

struct ReportToken {
  std::int64_t id = 0;
  std::string text;
};

struct ReportEncoding {
  std::string name;
  std::uint64_t count = 0, bytes = 0;
};

struct ReportTemplate {
  bool present = false;
  std::uint64_t length = 0;  // bytes
  std::string problem;       // "": it compiles; else the reason with line and column
};

/// An input or output of a graph.
struct ReportValue {
  std::string name, dtype, shape;
};

struct ReportOp {
  std::string name;  // of the source
  std::uint64_t count = 0;
};

/// Of a source that is a graph and no text model.
struct ReportGraph {
  std::vector<ReportValue> inputs, outputs;
  std::vector<ReportOp> ops;
  std::uint64_t n_nodes = 0;  // of ours
};

/// What the importer understood; printed by `cyb-llm import`.
struct ImportReport {
  std::string source, source_format;
  std::string name, family, model_type, architecture;
  std::uint64_t parameters = 0, n_tensors = 0, weights_bytes = 0;
  std::vector<ReportEncoding> encodings;
  std::int64_t n_layers = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0, hidden_size = 0,
               ffn_size = 0;
  std::int64_t vocab_size = 0, context_tokens = 0;
  bool tied = false;
  std::string rope, attention;
  std::string tokenizer, tokenizer_pre;
  std::uint64_t n_tokens = 0;  // real tokens, without padding
  ReportTemplate chat_template;
  std::optional<ReportToken> bos;
  std::vector<ReportToken> stops;  // every id that ends an answer
  bool add_bos = false, add_eos = false;
  std::string sampling;
  std::vector<std::string> skipped;      // tensors that carry no information
  std::vector<std::string> assumptions;  // what the source does not say
  std::vector<std::string> warnings;
  std::optional<ReportGraph> graph;  // then nothing is said of layers and text
  std::optional<WrittenModel> written;
};

/// For people, several lines.
std::string report_text(const ImportReport& report);
/// One JSON object.
std::string report_json(const ImportReport& report);

/// Reads a source without its weights (they stay in the mapped files until the draft is written).
/// `path`: a GGUF file, the first shard of a split GGUF, a Hugging Face folder, a .safetensors file
/// with config.json beside it, or an ONNX file. Errors: Io, Format, InvalidConfig, MissingTensor,
/// SourceEncoding, Tokenizer, NotBuilt.
Result<ModelDraft> read_source(const std::string& path, ImportReport& report,
                               const ImportOptions& options = {});

/// read_source, the graph part, write_model. On any error or stop no file appears under `out_path`.
Result<WrittenModel> import_model(const std::string& source, const std::string& out_path,
                                  const ImportOptions& options, ImportReport& report);

/// Path (absolute), total size and latest mtime of all files that an import of `path` would read,
/// and the revision of their importer.
Result<SourceKey> source_key(const std::string& path);

/// Of the importer that a file of this name gets; raised when it makes other models than before.
std::int64_t importer_revision(std::string_view name) noexcept;

/// True if `path` names something read_source takes: a folder, or a file that starts as a GGUF or
/// an ONNX model or is named *.safetensors.
bool is_import_source(const std::string& path);

}  // namespace cyb
