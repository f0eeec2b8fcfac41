// GET /health (the process lives), /ready (it takes requests), /metrics.
#include "server/service.hpp"

namespace cyb::server {

void health_route(Service& service, const std::shared_ptr<Call>& call) {
  service.respond_json(*call, R"({"status":"ok"})");
}

void ready_route(Service& service, const std::shared_ptr<Call>& call) {
  if (service.ready()) return service.respond_json(*call, R"({"status":"ready"})");
  service.respond(*call, ApiError{503, "The server is shutting down.", "shutting_down"});
}

void metrics_route(Service& service, const std::shared_ptr<Call>& call) {
  service.respond(*call,
                  http::Response{200, "text/plain; version=0.0.4; charset=utf-8",
                                 service.metrics().text(service.shelf(), service.n_connections())});
}

}  // namespace cyb::server
