// GET /v1/registry/models and /v1/registry/blobs/{digest}.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/json_text.hpp"
#include "server/download.hpp"

namespace cyb::server {
namespace {

ApiError sharing_off() {
  return {403, "This server does not share its models (serve --share-models).", "sharing_off"};
}

ApiError overloaded() {
  return {503, "The server has too much to do; try again later.", "overloaded"};
}

void send(Service& service, const std::shared_ptr<Call>& call, const SharedFile& file) {
  const int fd = ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 || file_stamp(fd) != file.stamp) {
    if (fd >= 0) ::close(fd);
    return service.respond(*call, ApiError{404, "The file has changed.", "file_not_shared"});
  }
  const std::string etag = fmt::format("\"{}\"", digest_text(file.digest));
  const ByteRange range = byte_range(call->request(), file.stamp.size_bytes, etag);
  http::Response head{range.status, "application/octet-stream", "", {}};
  head.headers = {{"ETag", etag},
                  {"Accept-Ranges", "bytes"},
                  {"Cache-Control", "private, no-cache"},
                  {"X-Content-Type-Options", "nosniff"}};
  if (range.status != 200) {
    head.headers.push_back({"Content-Range", content_range(range, file.stamp.size_bytes)});
  }
  if (range.status == 416) {
    ::close(fd);
    head.content_type = "application/json";
    head.body = error_json({416, "The file has no such bytes.", "range_not_satisfiable"});
    return service.respond(*call, std::move(head));
  }
  head.headers.push_back({"X-Request-Id", call->id});
  const auto download = std::make_shared<Download>(service, call, file, fd);
  if (!service.registry()->enter(download)) {
    return download->refuse(
        {503, "Too many downloads run; try again later.", "too_many_downloads"});
  }
  download->start(range, std::move(head));
}

}  // namespace

void registry_models_route(Service& service, const std::shared_ptr<Call>& call) {
  Registry* registry = service.registry();
  if (registry == nullptr) return service.respond(*call, sharing_off());
  const bool taken = registry->look_up([&service, registry, call] {
    std::string out;
    for (const SharedFile& file : registry->list()) {
      out += fmt::format(R"({}{{"name":{},"model_id":"{}","digest":"{}","size_bytes":{}}})",
                         out.empty() ? "" : ",", json_quote(file.name), file.model_id,
                         digest_text(file.digest), file.stamp.size_bytes);
    }
    service.respond_json(*call, R"({"object":"list","data":[)" + out + "]}");
  });
  if (!taken) service.respond(*call, overloaded());
}

void registry_blob_route(Service& service, const std::shared_ptr<Call>& call) {
  Registry* registry = service.registry();
  if (registry == nullptr) return service.respond(*call, sharing_off());
  const auto digest = parse_digest(call->request().path().substr(call->route->path.size()));
  const auto missing = [&service, call] {
    service.respond(*call, ApiError{404, "No file that is shared has this digest (any more).",
                                    "file_not_shared"});
  };
  if (!digest) return missing();
  if (const auto file = registry->find_known(*digest)) return send(service, call, *file);
  const bool taken = registry->look_up([&service, registry, call, digest, missing] {
    registry->list();
    const auto file = registry->find_known(*digest);
    file ? send(service, call, *file) : missing();
  });
  if (!taken) service.respond(*call, overloaded());
}

}  // namespace cyb::server
