// GET / and /assets/: the page. It needs no key (the page asks for it) and loads nothing from elsewhere.
#include <algorithm>

#include "server/page_files.hpp"
#include "server/service.hpp"

namespace cyb::server {
namespace {

// style-src 'self' forbids style attributes too: scripts set single properties.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// "gzip", "deflate, gzip;q=0.5"; not "gzip;q=0".
bool takes_gzip(const http::RequestHead& head) {
  for (std::string_view list : head.values("accept-encoding")) {
    while (!list.empty()) {
      const std::size_t end = std::min(list.find(','), list.size());
      const std::string_view entry = list.substr(0, end);
      list.remove_prefix(std::min(end + 1, list.size()));
      const std::size_t cut = std::min(entry.find(';'), entry.size());
      if (!http::same_name(trimmed(entry.substr(0, cut)), "gzip")) continue;
      const std::string_view quality = trimmed(entry.substr(std::min(cut + 1, entry.size())));
      return !quality.starts_with("q=0") || quality.find_first_of("123456789") != quality.npos;
    }
  }
  return false;
}

}  // namespace

http::Response page_response(std::span<const PageFile> files, const http::RequestHead& head) {
  const bool index = head.path() == "/";
  const auto file = std::ranges::find(files, head.path(), &PageFile::path);
  if (file == files.end()) {
    return error_response(index ? ApiError{501,
                                           "This build has no page: `make web` builds one with it, "
                                           "docs/web.md says how. The API is at /v1.",
                                           "page_not_built"}
                                : ApiError{404, "There is nothing at this path.", "not_found"});
  }
  const bool gzip = !file->gzip.empty() && takes_gzip(head);
  http::Response out{200, std::string(file->content_type),
                     std::string(gzip ? file->gzip : file->body)};
  if (gzip) out.headers.push_back({"Content-Encoding", "gzip"});
  if (!file->gzip.empty()) out.headers.push_back({"Vary", "Accept-Encoding"});
  // Names under /assets/ change with their bytes.
  out.headers.push_back(
      {"Cache-Control", index ? "no-cache" : "public, max-age=31536000, immutable"});
  out.headers.push_back({"Content-Security-Policy", kPolicy});
  out.headers.push_back({"X-Content-Type-Options", "nosniff"});
  out.headers.push_back({"Referrer-Policy", "no-referrer"});
  out.headers.push_back({"Cross-Origin-Opener-Policy", "same-origin"});
  out.headers.push_back({"Cross-Origin-Resource-Policy", "same-origin"});
  return out;
}

void page_route(Service& service, const std::shared_ptr<Call>& call) {
  service.respond(*call, page_response(page_files(), call->request()));
}

void page_asset_route(Service& service, const std::shared_ptr<Call>& call) {
  service.respond(*call, page_response(page_files(), call->request()));
}

}  // namespace cyb::server
