// A session in a file: token ids, the KV pages that are full, and the messages of a chat. What is
// restored has the bits it was saved with, so an answer that goes on from it equals the
// uninterrupted one; tokens after the last full page are computed again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runtime/chat.hpp"
#include "runtime/session.hpp"

namespace cyb {

struct SessionNotes {
  std::string template_name;  // "own", a preset, or "raw"
  std::vector<ChatMessage> messages{};
};

/// Writes `path` atomically: a file that is there is replaced, or left as it is on an error.
/// Errors: Busy, Io, NotBuilt where the backend keeps its pages to itself.
Result<void> save_session(Session& session, const std::string& path, const SessionNotes& notes);

struct RestoredSession {
  std::uint32_t n_tokens = 0;  // positions that the session holds now
  std::vector<ChatMessage> messages{};
};

/// The session holds what `path` has, in place of what it held. On an error it is empty or
/// unchanged. Errors: Io; K01 (no saved session, cut off, damaged), K02 (of another model), K03 (of
/// another path, backend or KV type), K04 (of another chat template); Busy, ContextOverflow,
/// OutOfMemory.
Result<RestoredSession> restore_session(Session& session, const std::string& path,
                                        std::string_view template_name);

}  // namespace cyb
