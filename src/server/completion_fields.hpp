// The field tables of the routes that answer: all of OpenAI's fields, and ours.
#pragma once

#include <span>

#include "server/fields.hpp"

namespace cyb::server {

/// POST /v1/chat/completions.
std::span<const Field> chat_fields();
/// POST /v1/completions.
std::span<const Field> completion_fields();
/// `stream_options` of both.
std::span<const Field> stream_option_fields();

inline constexpr std::size_t kMaxAnswers = 16, kMaxStops = 16, kMaxStopBytes = 256;
inline constexpr std::size_t kMaxBiases = 1024, kMaxMessages = 4096, kMaxTopLogprobs = 20;
inline constexpr std::size_t kMaxTools = 128, kMaxGuesses = 64;

}  // namespace cyb::server
