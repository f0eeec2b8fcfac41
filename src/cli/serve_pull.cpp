#include "cli/serve_pull.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "api/pull/pull.hpp"
#include "cli/environment.hpp"
#include "cli/serve_shelf.hpp"
#include "cli/usage.hpp"
#include "net/sha.hpp"

namespace cyb::cli {
namespace {

using Origins = std::shared_ptr<const std::vector<std::string>>;

api::PullOptions pull_options(const server::PullOrder& order, const Origins& origins) {
  api::PullOptions out;
  out.hub = environment("HF_ENDPOINT", out.hub.c_str());
  out.token = environment("HF_TOKEN");
  out.sha256 = order.sha256;
  out.name = order.name;
  out.download.http.origins = origins;
  out.download.stop = out.source.stop = order.stop;
  out.download.progress = order.progress;
  if (order.progress) {
    out.source.progress = [tell = order.progress](const ImportProgress& p) {
      tell(p.bytes_done, p.bytes_total, std::string(p.what));
    };
  }
  return out;
}

Result<ShelfModel> fetch(const server::PullOrder& order, const Origins& origins,
                         const ServeOptions& options) {
  if (!order.sha256.empty() && !net::is_hex(order.sha256, 64))
    return fail(invalid_input("sha256 must be 64 lower-case hex digits"));
  const api::PullOptions pull = pull_options(order, origins);
  CYB_ASSIGN(const std::string origin, api::pull_origin(order.source, pull.hub));
  if (std::ranges::find(*origins, origin) == origins->end()) {
    return fail(Error(ErrorKind::kInvalidInput, server::kPullNotAllowed,
                      fmt::format("The origin {} is not one of those that this server pulls from "
                                  "(--allow-pull).",
                                  origin)));
  }
  CYB_ASSIGN(const api::Pulled pulled, api::pull(order.source, pull));
  if (pulled.name.empty())
    return fail(invalid_input("The model has no name here yet: give it one."));
  return added_model({pulled.name, pulled.path}, options);
}

}  // namespace

Result<std::vector<std::string>> read_origins(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) {
    const auto url = net::parse_url(text);
    if (!url || url->path != "/" || text.find_first_of("?#") != std::string::npos)
      return fail(usage_error(fmt::format(
          "--allow-pull: \"{}\" is no origin: write https://HOST or https://HOST:PORT", text)));
    out.push_back(url->origin());
  }
  return out;
}

Result<server::Puller> make_puller(const ServeOptions& options) {
  CYB_ASSIGN(std::vector<std::string> list, read_origins(options.allow_pulls));
  if (list.empty()) return server::Puller();
  const auto origins = std::make_shared<const std::vector<std::string>>(std::move(list));
  return server::Puller([origins, &options](const server::PullOrder& order) {
    return fetch(order, origins, options);
  });
}

}  // namespace cyb::cli
