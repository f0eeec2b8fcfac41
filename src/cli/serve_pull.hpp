// What `serve --allow-pull` lets an admin fetch: `cyb-llm pull` within a list of origins.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/serve_options.hpp"
#include "server/pull_desk.hpp"

namespace cyb::cli {

/// Origins as net::Url::origin() writes them. Errors: Usage for what is no http(s)://HOST[:PORT].
Result<std::vector<std::string>> read_origins(const std::vector<std::string>& texts);

/// Empty where no origin is allowed. `options` must outlive the server. Errors: as read_origins().
Result<server::Puller> make_puller(const ServeOptions& options);

}  // namespace cyb::cli
