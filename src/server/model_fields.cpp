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

}  // namespace

std::span<const Field> load_model_fields() {
  return kLoad;
}

std::span<const Field> unload_model_fields() {
  return kUnload;
}

}  // namespace cyb::server
