// The optional JSON files of a Hugging Face folder.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cyb::hf {

inline constexpr const char* kTokenizerConfigFile = "tokenizer_config.json";
inline constexpr const char* kAddedTokensFile = "added_tokens.json";
inline constexpr const char* kSpecialTokensFile = "special_tokens_map.json";

bool file_exists(const std::string& path);

/// A key of added_tokens_decoder: up to 9 digits.
std::optional<std::int64_t> id_of_key(std::string_view key) noexcept;

/// The object in `folder`/`name`; an empty one where the file is not there. Errors: Format.
Result<nlohmann::json> optional_object(const std::string& folder, const char* name);

}  // namespace cyb::hf
