// /api/models/REPO/revision/REV, then /tree/COMMIT page by page; files at
// /REPO/resolve/COMMIT/PATH.
#include "api/pull/hub.hpp"

#include <fmt/format.h>

#include "base/transfer_limits.hpp"
#include "net/net_error.hpp"
#include "net/sha.hpp"

namespace cyb::api {
Result<Hub> Hub::create(const std::string& address, const std::string& token) {
  std::string text = address;
  while (text.ends_with('/')) text.pop_back();
  Hub hub;
  auto url = net::parse_url(text);
  if (!url) return fail(std::move(url).error().in("the hub"));
  hub.url_ = *std::move(url);
  while (hub.url_.text.ends_with('/')) hub.url_.text.pop_back();
  CYB_ASSIGN(hub.token_, net::make_token(hub.url_, token));
  return hub;
}

Result<HubListing> Hub::list(const HubSource& source, const net::HttpOptions& http,
                             std::stop_token stop) const {
  CYB_ASSIGN(net::Connection connection, net::Connection::create(http));
  const std::string base = fmt::format("{}/api/models/{}", url_.text, source.repository);
  HubListing out;
  out.commit = source.revision;
  if (!net::is_hex(out.commit, 40)) {
    CYB_ASSIGN(const net::Url at,
               net::parse_url(base + "/revision/" + net::escape_url(source.revision)));
    CYB_ASSIGN(const std::string text, net::get_text(connection, at, kMaxHubBytes, stop));
    CYB_ASSIGN(out.commit, parse_hub_commit(text));
  }
  CYB_ASSIGN(net::Url page, net::parse_url(base + "/tree/" + out.commit + "?recursive=true"));
  std::size_t left = kMaxHubBytes;
  for (std::uint64_t n = 0; n < kMaxHubPages; ++n) {
    net::HttpHead head;
    CYB_ASSIGN(const std::string text, net::get_text(connection, page, left, stop, &head));
    CYB_TRY(parse_hub_tree(text, out.files));
    left -= text.size();
    const std::string next = next_link(head.field("link"));
    if (next.empty()) return out;
    CYB_ASSIGN(page, net::resolve_url(page, next));
    if (page.origin() != url_.origin())
      return fail(net::net_error(net::kRedirect, "the hub's list goes on at another origin"));
  }
  return fail(net::net_error(net::kMetadata,
                             fmt::format("the hub's list has more than {} pages", kMaxHubPages)));
}

Result<net::Url> Hub::file_url(const HubSource& source, const std::string& commit,
                               const std::string& path) const {
  return net::parse_url(fmt::format("{}/{}/resolve/{}/{}", url_.text, source.repository, commit,
                                    net::escape_url(path, "/")));
}

}  // namespace cyb::api
