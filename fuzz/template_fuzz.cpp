// Chat templates: any source, rendered with a small chat. Bytes of the messages must keep their
// origin.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/template/chat_template.hpp"

namespace {

// Does not occur in any template that a fuzzer is likely to write, in any case.
constexpr std::string_view kSecret = "\xE2\x98\x83\xE2\x98\x83";

cyb::ChatInput chat() {
  using cyb::ChatValue;
  cyb::ChatInput input;
  input.messages.push_back(
      ChatValue::object({{"role", ChatValue::of("user")}, {"content", ChatValue::of(kSecret)}}));
  input.messages.push_back(ChatValue::object(
      {{"role", ChatValue::of("assistant")}, {"content", ChatValue::of("a <b> c")}}));
  input.tools = ChatValue::list(
      {ChatValue::object({{"name", ChatValue::of("f")}, {"n", ChatValue::of(std::int64_t{3})}})});
  input.bos_token = "<s>";
  input.eos_token = "</s>";
  return input;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const cyb::ChatInput kInput = chat();
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  const auto made = cyb::Template::compile(source);
  if (!made) return 0;
  const auto rendered = made->render(kInput);
  if (!rendered) return 0;
  const bool written = source.find("\xE2\x98\x83") != std::string_view::npos ||
                       source.find('\\') != std::string_view::npos;
  for (const cyb::OwnedSegment& segment : *rendered) {
    if (segment.control && !written && segment.text.find("\xE2\x98\x83") != std::string::npos)
      std::abort();
  }
  return 0;
}
