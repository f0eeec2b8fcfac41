// Tables alone.
#include "server/text_fields.hpp"

#include "server/completion_fields.hpp"

namespace cyb::server {
namespace {

using enum FieldType;
using enum FieldState;

constexpr double kMaxItems = 1e7;

constexpr Field kTokenize[] = {
    {"model", kString, kBuilt, 1, 512, "the one that is loaded", "its name or id"},
    {"content", kString, kBuilt, 0, kMaxItems, "", "the text", true},
    {"add_special", kBool, kBuilt, 0, 0, "false", "BOS and EOS as the model wants them"},
    {"parse_special", kBool, kBuilt, 0, 0, "false", "control tokens in the text count"},
    {"with_pieces", kBool, kBuilt, 0, 0, "false", "{\"id\", \"piece\"} of each"},
};
constexpr Field kDetokenize[] = {
    {"model", kString, kBuilt, 1, 512, "the one that is loaded", "its name or id"},
    {"tokens", kList, kBuilt, 0, kMaxItems, "", "ids", true, nullptr, "TokenIds"},
};
constexpr Field kApplyTemplate[] = {
    {"model", kString, kBuilt, 1, 512, "the one that is loaded", "its name or id"},
    {"messages", kList, kBuilt, 1, kMaxMessages, "", "", true, nullptr, "Message"},
    {"tools", kList, kBuilt, 0, kMaxTools, "[]", "as the template of a chat gets them", false,
     nullptr, "Tool"},
    {"add_generation_prompt", kBool, kBuilt, 0, 0, "true"},
    {"chat_template_kwargs", kObject, kBuilt, 0, 64, "{}", "variables of the template"},
};

}  // namespace

std::span<const Field> tokenize_fields() {
  return kTokenize;
}

std::span<const Field> detokenize_fields() {
  return kDetokenize;
}

std::span<const Field> apply_template_fields() {
  return kApplyTemplate;
}

}  // namespace cyb::server
