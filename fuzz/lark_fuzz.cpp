// Lark grammars: any source is a grammar or an error that names its place; a grammar is walked with
// random tokens.
#include "grammar_walk.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  cyb::fuzz_walk(cyb::Grammar::from_lark(source), size + (size > 0 ? data[size - 1] : 0U));
  return 0;
}
