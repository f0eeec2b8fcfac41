// POST /v1/embeddings and /v1/rerank: known, and refused until a model that can is served.
#include "server/service.hpp"

namespace cyb::server {

void embeddings_route(Service& service, const std::shared_ptr<Call>& call) {
  service.respond(*call, ApiError{501, "This server gives no embeddings.", "embeddings_not_built"});
}

void rerank_route(Service& service, const std::shared_ptr<Call>& call) {
  service.respond(*call, ApiError{501, "This server ranks no documents.", "rerank_not_built"});
}

}  // namespace cyb::server
