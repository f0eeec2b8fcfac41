// Tests of characters as Rust's standard library and the `tokenizers` package make them.
#pragma once

namespace cyb::text {

bool is_white_space(char32_t c) noexcept;  // Unicode White_Space
bool is_decimal(char32_t c) noexcept;      // Nd
bool is_numeric(char32_t c) noexcept;      // Nd, Nl, No
bool is_punctuation(char32_t c) noexcept;  // P*, and all of ASCII's
bool is_mark(char32_t c) noexcept;         // Mn, Mc, Me
bool is_nonspacing_mark(char32_t c) noexcept;
bool is_other(char32_t c) noexcept;         // Cc, Cf, Co, Cs
bool is_chinese_char(char32_t c) noexcept;  // as BERT defines it
bool is_word(char32_t c) noexcept;          // \w as Rust reads it

}  // namespace cyb::text
