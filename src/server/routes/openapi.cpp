// GET /openapi.json.
#include "server/openapi.hpp"

#include "server/service.hpp"

namespace cyb::server {

void openapi_route(Service& service, const std::shared_ptr<Call>& call) {
  service.respond_json(*call, openapi_json(service.version()));
}

}  // namespace cyb::server
