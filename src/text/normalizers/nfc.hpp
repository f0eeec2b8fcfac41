// Unicode's normalisation forms, in O(n log n) for any text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cyb::text {

/// True if `text` (valid UTF-8) is surely NFC already; false means only that it has to be looked
/// at.
bool is_quickly_nfc(std::string_view text) noexcept;

enum class NormalForm : std::uint8_t { kNfc, kNfd, kNfkc, kNfkd };

/// `text` (valid UTF-8) in a form.
Result<std::string> normal_form(std::string_view text, NormalForm form);

/// NFC of `text` (valid UTF-8).
Result<std::string> nfc(std::string_view text);

}  // namespace cyb::text
