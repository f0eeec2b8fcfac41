// A pull that a request waits for, follows as a stream, or leaves to itself.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/pull_desk.hpp"
#include "server/service.hpp"

namespace cyb::server {

struct PullManner {
  bool stream = false;
  bool detach = false;  // the client need not stay
};

/// Begins it; the answer is `answer` of the served model's place on the shelf, 202 at once where it
/// is detached. An error is answered.
void start_pull(Service& service, const std::shared_ptr<Call>& call, PullOrder order,
                PullManner manner, std::function<std::string(std::size_t model)> answer);

}  // namespace cyb::server
