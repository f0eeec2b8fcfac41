// The one table of hard limits on what files and requests may ask for; `cyb-llm limits` prints it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace cyb {

struct Limit {
  std::string_view name;
  std::uint64_t value;
  std::string_view unit;
  std::string_view what;
};

// CYB_LIMIT(constant, name, value, unit, what)
#define CYB_LIMITS(CYB_LIMIT)                                                                      \
  CYB_LIMIT(kMaxTextBytes, "text", 536870912, "bytes",                                             \
            "text parts of a .model before the weights")                                           \
  CYB_LIMIT(kMaxHeaderBytes, "header", 104857600, "bytes",                                         \
            "safetensors header; GGUF metadata value block")                                       \
  CYB_LIMIT(kMaxStringBytes, "string", 16777216, "bytes", "one string in a file")                  \
  CYB_LIMIT(kMaxKeyBytes, "key", 65536, "bytes", "one key or tensor name")                         \
  CYB_LIMIT(kMaxRank, "rank", 5, "dimensions", "a stored tensor")                                  \
  CYB_LIMIT(kMaxGgufRank, "gguf_rank", 4, "dimensions", "a GGUF tensor")                           \
  CYB_LIMIT(kMaxGraphRank, "graph_rank", 8, "dimensions", "a tensor in a graph")                   \
  CYB_LIMIT(kMaxTensors, "tensors", 1048576, "tensors", "in one model")                            \
  CYB_LIMIT(kMaxAlignment, "alignment", 1048576, "bytes", "of tensor data in a GGUF")              \
  CYB_LIMIT(kMaxJsonDepth, "json_depth", 128, "levels", "nesting of JSON")                         \
  CYB_LIMIT(kMaxGraphNodes, "graph_nodes", 1048576, "nodes", "in one graph")                       \
  CYB_LIMIT(kMaxSubgraphDepth, "subgraph_depth", 32, "levels", "nesting of sub-graphs")            \
  CYB_LIMIT(kMaxVocab, "vocab", 4194304, "tokens", "in one vocabulary")                            \
  CYB_LIMIT(kMaxTemplateSteps, "template_steps", 1000000, "steps", "of one template rendering")    \
  CYB_LIMIT(kMaxTemplateOutput, "template_output", 16777216, "bytes", "of one template rendering") \
  CYB_LIMIT(kMaxTemplateLoop, "template_loop", 100000, "rounds", "of one template loop")           \
  CYB_LIMIT(kMaxTemplateDepth, "template_depth", 64, "levels", "nesting of template constructs")   \
  CYB_LIMIT(kMaxPromptBytes, "prompt", 67108864, "bytes", "of a prompt or a text to tokenize")     \
  CYB_LIMIT(kMaxPanelCacheBytes, "panel_cache", 21474836480, "bytes",                              \
            "packed weights kept in the cache folder")                                             \
  CYB_LIMIT(kMaxPicturePixels, "picture", 67108864, "pixels", "of a picture given as input")       \
  CYB_LIMIT(kMaxPictureSide, "picture_side", 65535, "pixels", "along a side of a picture")         \
  CYB_LIMIT(kMaxSoundSamples, "sound", 268435456, "samples", "of a sound given as input")

#define CYB_LIMIT_CONSTANT(constant, name, value, unit, what) \
  inline constexpr std::uint64_t constant = value;
CYB_LIMITS(CYB_LIMIT_CONSTANT)
#undef CYB_LIMIT_CONSTANT

/// All rows, in the order above.
std::span<const Limit> all_limits() noexcept;

}  // namespace cyb
