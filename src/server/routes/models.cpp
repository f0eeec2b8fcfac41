// GET /v1/models and /v1/models/{name or id}.
#include <fmt/format.h>

#include <charconv>

#include "base/json_text.hpp"
#include "server/service.hpp"

namespace cyb::server {
namespace {

std::string model_json(const Service& service) {
  const Served served = service.served();
  return fmt::format(
      R"({{"id":{},"object":"model","created":{},"owned_by":"cyb-llm","model_id":{},"path":{},"backend":{},"context_tokens":{},"slots":{}}})",
      json_quote(served.name), service.started(), json_quote(served.engine.model_id()),
      json_quote(path_name(served.engine.path())), json_quote(served.engine.backend().name()),
      served.engine.ctx_tokens(), served.slots);
}

/// %2F and the like; what is no escape stays.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* digits = text.data() + i + 1;
    const bool escape = text[i] == '%' && i + 2 < text.size();
    if (escape && std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
      out += static_cast<char>(code);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

void models_route(Service& service, const std::shared_ptr<Call>& call) {
  service.respond_json(*call, R"({"object":"list","data":[)" + model_json(service) + "]}");
}

void model_route(Service& service, const std::shared_ptr<Call>& call) {
  const std::string name = unescaped(call->request().path().substr(call->route->path.size()));
  const Served served = service.served();
  if (name == served.name || name == served.engine.model_id()) {
    return service.respond_json(*call, model_json(service));
  }
  service.respond(*call, ApiError{404, "There is no such model here.", "model_not_found", "model"});
}

}  // namespace cyb::server
