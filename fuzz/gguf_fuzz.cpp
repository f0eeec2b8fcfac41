// Fuzzes the GGUF reader and what the importer makes of its metadata: header, config, vocabulary.
#include <cstddef>
#include <cstdint>
#include <span>

#include "import/gguf/gguf_config.hpp"
#include "import/gguf/gguf_file.hpp"
#include "import/gguf/gguf_vocab.hpp"
#include "import/gguf/metadata.hpp"
#include "import/names.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cyb;
  const auto file = gguf::GgufFile::parse(std::as_bytes(std::span(data, size)));
  if (!file) return 0;
  std::uint64_t sum = 0;
  for (const gguf::TensorInfo& tensor : file->tensors) {
    // Every range that was accepted may be touched.
    for (std::uint64_t at = 0; at < tensor.size_bytes; at += 4096) sum += data[tensor.offset + at];
    if (tensor.size_bytes > 0) sum += data[tensor.offset + tensor.size_bytes - 1];
  }
  gguf::Metadata metadata(file->values);
  const auto name = metadata.text("general.architecture");
  const auto row = gguf::find_architecture(name ? *name : "llama");
  if (!row) return 0;
  gguf::TensorFacts facts;
  facts.n_tensors = file->tensors.size();
  facts.embedding_rows = 32;
  ImportReport report;
  const auto config = gguf::read_config(metadata, *row, facts, report);
  if (config) sum += architecture_config(*config).items().size();
  const auto parts = gguf::read_vocabulary(metadata);
  if (parts) sum += static_cast<std::uint64_t>(parts->vocabulary.size());
  return sum == UINT64_MAX ? 1 : 0;
}
