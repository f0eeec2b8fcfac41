// The chat at a terminal: line editing with history, /commands, Ctrl-C ends the answer and keeps
// the conversation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "runtime/chat.hpp"
#include "runtime/engine.hpp"
#include "runtime/generation.hpp"
#include "runtime/session.hpp"

namespace cyb::cli {

struct ChatFlags {
  std::optional<std::string> system, preset;
  bool raw = false;  // no template: in a chat each line is a completion of its own
  std::optional<std::string> prompt_cache{};  // file to start from and to save to
};

/// "own", the preset, or "raw": what a saved session must agree with.
std::string template_name(const ChatFlags& flags);
/// Restores `path` where it exists. Errors: those of restore_session().
Result<void> open_prompt_cache(Output& output, Session& session, const std::string& path,
                               const ChatFlags& flags);

/// Errors: Usage for a preset that is none, for a system message that is not UTF-8, for either with
/// raw.
Result<void> check_chat_flags(const ChatFlags& flags);

/// A warning where the chosen preset ends turns with a text that is no control token of this model;
/// "" where it fits.
Result<std::string> preset_warning(const Engine& engine, const ChatFlags& flags);

/// Ids of a conversation by the model's own template or the chosen preset.
Result<std::vector<std::int32_t>> encode_messages(const Engine& engine, const ChatFlags& flags,
                                                  std::span<const ChatMessage> messages);

/// Adds the stop strings that a chosen preset brings.
Result<void> add_preset_stops(const Engine& engine, const ChatFlags& flags,
                              std::vector<std::string>& stops);

/// Reads lines until /quit or the end of input. Errors of one turn are shown and the chat goes on.
Result<int> run_chat(Context& context, const std::shared_ptr<Engine>& engine,
                     const ChatFlags& flags, const GenerateOptions& options);

}  // namespace cyb::cli
