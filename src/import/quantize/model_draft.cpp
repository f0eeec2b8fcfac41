// An opened model as a draft: every part that the writer knows, decoded and ready to be written
// again. Pages of the mapping are let go as they are passed on by the kernel's own rules.
#include <algorithm>

#include "import/quantize/quantize.hpp"
#include "model/graph.hpp"

namespace cyb {
namespace {

constexpr std::size_t kStepBytes = std::size_t{4} << 20;

DraftTensor draft_tensor(const std::shared_ptr<const Model>& model, const TensorEntry& entry) {
  DraftTensor out;
  out.name = entry.name;
  out.dtype = entry.dtype;
  out.shape = entry.shape;
  out.produce = [model, &entry](const ByteSink& sink) -> Result<void> {
    const std::span<const std::byte> all = model->tensor_bytes(entry);
    if (all.size() != entry.size_bytes)
      return fail(out_of_memory("model", entry.size_bytes, 0).in(entry.name));
    for (std::size_t at = 0; at < all.size(); at += kStepBytes)
      CYB_TRY(sink(all.subspan(at, std::min(kStepBytes, all.size() - at))));
    return {};
  };
  return out;
}

}  // namespace

Result<ModelDraft> draft_of_model(std::shared_ptr<const Model> model) {
  ModelDraft out;
  out.name = model->name();
  if (const ConfigValue* lineage = model->frontmatter().at("cyb.lineage");
      lineage != nullptr && lineage->table() != nullptr) {
    out.lineage = *lineage->table();
  }
  out.card = model->card();
  out.config = model->config();
  out.program = model->program();
  out.eval = model->eval();
  if (model->has_graph()) {
    CYB_ASSIGN(const Graph graph, model->graph());
    out.graph_hex = graph_to_hex(encode_graph(graph));
  }
  CYB_ASSIGN(const VocabData* vocab, model->vocab());
  out.vocab = *vocab;
  if (model->chat() != nullptr) out.chat = *model->chat();
  for (const TensorEntry& entry : model->tensors())
    out.tensors.push_back(draft_tensor(model, entry));
  return out;
}

}  // namespace cyb
