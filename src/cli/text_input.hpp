// Text and ids from arguments, files and pipes; whatever a person gives is checked here: one
// source, within the limit on prompts, UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/output.hpp"

namespace cyb::cli {

/// What a text is for, and the ways to give it, for messages: "the prompt", "as PROMPT, with
/// --prompt-file FILE".
struct TextWanted {
  std::string_view what, how;
};

/// A warning where the file's mode lets others than its owner read or write it: no place for a
/// secret.
void warn_if_open_to_others(Output& output, const std::string& path);

/// A file's or pipe's text, or that of standard input for "-", as it is. `wake_fd`: ends the wait
/// for more with Cancelled when it becomes readable; -1: none. Errors: Io, Cancelled, Usage above
/// the limit on prompts.
Result<std::string> read_text(const std::string& path, int wake_fd = -1);

/// The argument, else the file, else (not a terminal) standard input; UTF-8. Errors: Usage when
/// both or none are given, as read_text, as api::check_utf8.
Result<std::string> text_argument(const std::optional<std::string>& argument,
                                  const std::optional<std::string>& file, const TextWanted& wanted,
                                  int wake_fd = -1);

/// "1,2, 3", "[1, 2]", "1 2 3". Errors: InvalidInput naming the item.
Result<std::vector<std::int32_t>> parse_ids(std::string_view text);

bool stdin_is_terminal() noexcept;

}  // namespace cyb::cli
