// Tables alone.
#include "server/model_fields.hpp"

namespace cyb::server {
namespace {

using enum FieldType;
using enum FieldState;

constexpr Field kLoad[] = {
    {"model", kString, kBuilt, 1, 512, "", "its name or id", true},
    {"keep_alive", kAny, kBuilt, 0, 0, "the server's", "how long it stays when nobody uses it",
     false, nullptr, "KeepAlive"},
};
constexpr Field kUnload[] = {
    {"model", kString, kBuilt, 1, 512, "", "its name or id", true},
};

constexpr Field kPull[] = {
    {"source", kString, kBuilt, 1, 8192, "", "as `cyb-llm pull` takes it", true},
    {"name", kString, kBuilt, 1, 128, "the source's own", "what clients call the model"},
    {"sha256", kString, kBuilt, 64, 64, "", "of the file of an address, lower-case hex"},
    {"stream", kBool, kBuilt, 0, 0, "false", "progress as server-sent events"},
    {"detach", kBool, kBuilt, 0, 0, "false", "answer 202 at once and go on without the client"},
};

}  // namespace

std::span<const Field> load_model_fields() {
  return kLoad;
}

std::span<const Field> unload_model_fields() {
  return kUnload;
}

std::span<const Field> pull_model_fields() {
  return kPull;
}

}  // namespace cyb::server
