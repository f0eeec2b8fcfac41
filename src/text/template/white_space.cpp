// White space at the ends of texts.
#include "text/template/white_space.hpp"

#include "text/pretokenizers/char_class.hpp"

namespace cyb::tmpl {

bool is_python_space(char32_t c) noexcept {
  return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F) || c == ' ' ||
         (c >= 0x80 && text::class_of(c) == text::CharClass::kSpace);
}

std::size_t rstrip_end(std::string_view text) noexcept {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t begin = end - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80U) --begin;
    if (!is_python_space(text::decode_valid(text, begin, end - begin))) break;
    end = begin;
  }
  return end;
}

std::size_t lstrip_begin(std::string_view text, std::size_t from) noexcept {
  while (from < text.size()) {
    const std::size_t size = text::valid_size(static_cast<unsigned char>(text[from]));
    if (!is_python_space(text::decode_valid(text, from, size))) break;
    from += size;
  }
  return from;
}

}  // namespace cyb::tmpl
