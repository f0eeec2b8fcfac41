// tokenizer.json: any bytes. What is accepted must make a tokenizer or an error, and encode and
// decode without harm.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "text/tokenizer.hpp"
#include "text/tokenizer_json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto parts = cyb::read_tokenizer_json(text);
  if (!parts) return 0;
  const auto tokenizer = cyb::Tokenizer::create(std::move(*parts));
  if (!tokenizer) return 0;
  for (const std::string_view sample :
       {"Hello  w\xC3\xB6rld 123\n", "<s> a</s>", "\xE2\x96\x81\xE2\x96\x81 x"}) {
    const auto ids = (*tokenizer)->encode(sample, {.parse_special = true, .add_special = true});
    if (ids) (void)(*tokenizer)->decode(*ids);
  }
  return 0;
}
