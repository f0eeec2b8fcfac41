// The HTTP API of a hub, as far as a download needs it.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "api/pull/hub_tree.hpp"
#include "api/pull/pull_source.hpp"
#include "net/http.hpp"

namespace cyb::api {

struct HubListing {
  std::string commit;  // what the revision is now: all files are of it
  std::vector<HubFile> files;
};

class Hub {
 public:
  /// `token` "": none. Errors: InvalidInput; N04 for a token over http to another machine.
  static Result<Hub> create(const std::string& address, const std::string& token);
  const std::shared_ptr<const net::Token>& token() const noexcept { return token_; }
  const net::Url& url() const noexcept { return url_; }

  /// Errors: N codes, JSON, Cancelled.
  Result<HubListing> list(const HubSource& source, const net::HttpOptions& http,
                          std::stop_token stop) const;
  Result<net::Url> file_url(const HubSource& source, const std::string& commit,
                            const std::string& path) const;

 private:
  net::Url url_;
  std::shared_ptr<const net::Token> token_;
};

}  // namespace cyb::api
