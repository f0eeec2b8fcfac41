// Keys are tenants: what one of them sent is neither found nor seen by another.
#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "server/scripted_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

const std::array<std::string, 2> kKeys = {"0123456789abcdef", "fedcba9876543210"};

server::ServerOptions keyed() {
  server::ServerOptions options;
  options.service.access.keys = value(server::read_keys(kKeys[0] + "\n" + kKeys[1] + "\n", "keys"));
  return options;
}

Json complete(const TestServer& server, std::size_t key, const Json& body) {
  const Reply reply = ask(server.port(), post_text("/v1/completions", body.dump(),
                                                   "Authorization: Bearer " + kKeys[key] + "\r\n"));
  EXPECT_EQ(reply.status, 200) << reply.body;
  return reply.json();
}

/// What a request cost, in everything that its time could show.
struct Cost {
  std::int64_t cached = 0;
  std::uint64_t reused = 0, runs = 0, tokens = 0;
  bool operator==(const Cost&) const = default;
};

Cost cost(const TestServer& server, std::size_t key, const std::string& prompt) {
  const SchedulerStats before = server.stats();
  const Json reply = complete(server, key, {{"prompt", prompt}, {"max_tokens", 4}});
  const SchedulerStats after = server.stats();
  return {reply["usage"]["prompt_tokens_details"]["cached_tokens"].get<std::int64_t>(),
          after.reused_tokens - before.reused_tokens, after.runs - before.runs,
          after.run_tokens - before.run_tokens};
}

// Security demand 18, without a clock: a foreign prefix costs exactly what an unknown one costs.
TEST(ServerTenants, APrefixOfAnotherKeyIsNoHit) {
  const TestServer server(answer_after_mark({'x'}), test_model(true, 1024), keyed());
  std::set<std::int64_t> own_hits;
  for (char c = 'a'; c < 'a' + 10; ++c) {
    const std::string known(300, c), unknown(300, static_cast<char>(c - 'a' + 'A'));
    const Cost first = cost(server, 0, known + "1>");
    EXPECT_EQ(first.cached, 0);
    const Cost own = cost(server, 0, known + "2>");
    EXPECT_GT(own.cached, 200);
    EXPECT_LT(own.tokens, first.tokens);
    own_hits.insert(own.cached);
    const Cost foreign = cost(server, 1, known + "3>"), cold = cost(server, 1, unknown + "3>");
    EXPECT_EQ(foreign, cold);
    EXPECT_EQ(foreign.cached, 0);
    EXPECT_EQ(cost(server, 1, known + "4>").cached, own.cached);  // now it is its own
  }
  EXPECT_EQ(own_hits.size(), 1u);
}

// Security demand 19: few pages that change hands all the time; whatever a run of a tenant reads is
// its own text.
TEST(ServerTenants, PagesOfAnotherTenantShowNothing) {
  constexpr std::int32_t kCanary[] = {'P', 'Q'};  // each in the prompts of one tenant only
  auto n_seen = std::make_shared<std::atomic<int>>(0);
  auto n_rows = std::make_shared<std::atomic<int>>(0);
  Script script;
  script.row = [=](std::span<const std::int32_t> history, std::span<float> logits) {
    ++*n_rows;
    for (const std::int32_t own : kCanary) {
      if (history[0] != own) continue;
      const std::int32_t other = kCanary[0] + kCanary[1] - own;
      if (std::ranges::find(history, other) != history.end()) ++*n_seen;
    }
    std::ranges::fill(logits, 0.0f);
    logits['x'] = 20.0f;
  };
  const TestServer server(std::move(script), test_model(true, 256), keyed(), 2);
  std::vector<std::jthread> clients;
  for (std::size_t i = 0; i < 6; ++i) {
    clients.emplace_back([&, i] {
      const std::size_t key = i % 2;
      for (std::size_t round = 0; round < 12; ++round) {
        const std::string prompt(20 + (37 * (i + round)) % 180, static_cast<char>(kCanary[key]));
        const Json reply = complete(server, key, {{"prompt", prompt}, {"max_tokens", 30}});
        EXPECT_EQ(reply["choices"][0]["text"], std::string(30, 'x'));
      }
    });
  }
  clients.clear();
  EXPECT_GE(n_rows->load(), 6 * 12 * 30);
  EXPECT_EQ(n_seen->load(), 0);
  EXPECT_GT(server.stats().evicted_prefixes + server.stats().preempted, 0u);  // they did change
}

}  // namespace
}  // namespace cyb::test
