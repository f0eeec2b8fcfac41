// What `replay` reads: requests with their answers, whole or as the text of a stream.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/json.hpp"

namespace cyb::cli {

struct SavedAnswer {
  std::string where;  // the file, or file and line: for messages
  std::string path = "/v1/chat/completions";
  Json request, response;      // the request as it is asked again: whole, with the recipe's seed
  std::string model_id, hash;  // of the recipe; `hash` is empty where an older server wrote none
  const Json& recipe() const { return response.at("cyb_llm"); }
};

/// Discarded where it is no JSON, or nested deeper than any request may be.
Json parse_flat_json(std::string_view text);

/// One object, or one a line. Errors: R01 with the place; NotBuilt for a route that replay does not
/// know.
Result<std::vector<SavedAnswer>> read_saved_answers(std::string_view text, const std::string& name);

/// The events of a stream as the answer that is not streamed; `chat`: of /v1/chat/completions.
/// Without `usage` where the stream had none. Errors: R01.
Result<Json> joined_stream(std::string_view events, bool chat);

}  // namespace cyb::cli
