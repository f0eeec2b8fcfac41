// What a request may ask of the engine beside its answer: guesses and a place in the queue.
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "server/scripted_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

const std::string kKey = "0123456789abcdef", kAdmin = "fedcba9876543210";

TEST(ServerGuesses, TheAnswerIsThePlainOneInFewerRuns) {
  const TestServer server(answer_after_mark(bytes_of("one two one two one two one two one two.")));
  const Json plain = {{"max_tokens", 38}, {"logprobs", 2}, {"seed", 7}, {"temperature", 0.7}};
  Json guessing = plain;
  guessing["prompt_lookup_num_tokens"] = 5;
  const SchedulerStats start = server.stats();
  const Json want = server.complete(plain).json();
  const SchedulerStats middle = server.stats();
  const Json got = server.complete(guessing).json();
  const SchedulerStats end = server.stats();
  EXPECT_EQ(got["choices"], want["choices"]);
  EXPECT_FALSE(want["usage"].contains("completion_tokens_details"));
  const Json details = got["usage"]["completion_tokens_details"];
  EXPECT_GT(details["accepted_prediction_tokens"], 15);
  EXPECT_GE(details["rejected_prediction_tokens"], 0);
  EXPECT_LT(end.runs - middle.runs, (middle.runs - start.runs) / 2);
  guessing["prompt_lookup_num_tokens"] = 0;
  EXPECT_FALSE(server.complete(guessing).json()["usage"].contains("completion_tokens_details"));
}

TEST(ServerGuesses, MoreThanARunChecksIsRefused) {
  const TestServer server;
  for (const int bad : {8, 65, -1}) {
    const Reply reply = server.complete({{"prompt_lookup_num_tokens", bad}});
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.json()["error"]["param"], "prompt_lookup_num_tokens");
  }
  EXPECT_EQ(server.chat({{"prompt_lookup_num_tokens", 7}, {"max_tokens", 9}}).status, 200);
}

// Eight answers fill the rows of a run; guesses of some must not keep others out of it.
TEST(ServerGuesses, TheyTakeNoOthersRow) {
  server::ServerOptions options;
  options.service.scheduler.max_running = 8;
  const TestServer server(slow(answer_after_mark({'x'}), 2), test_model(), std::move(options));
  const auto runs_of = [&](int guesses) {
    const std::uint64_t before = server.stats().runs;
    std::vector<std::jthread> clients;
    for (int i = 0; i < 8; ++i) {
      clients.emplace_back([&server, i, guesses] {
        EXPECT_EQ(server
                      .complete({{"prompt", std::string(1, static_cast<char>('a' + i)) + ">"},
                                 {"max_tokens", 60},
                                 {"prompt_lookup_num_tokens", i < 4 ? guesses : 0}})
                      .status,
                  200);
      });
    }
    clients.clear();
    return server.stats().runs - before;
  };
  const std::uint64_t plain = runs_of(0);
  EXPECT_LT(runs_of(7), plain + plain / 8);
}

TEST(ServerPriority, HigherOnesAreAdmittedFirst) {
  server::ServerOptions options;
  options.service.scheduler.max_running = 1;
  const TestServer server(slow(answer_after_mark({'x'}), 2), test_model(), std::move(options));
  std::mutex mutex;
  std::vector<int> order;
  std::vector<std::jthread> clients;
  const auto ask = [&](int priority, int n_tokens) {
    clients.emplace_back([&, priority, n_tokens] {
      EXPECT_EQ(server.complete({{"max_tokens", n_tokens}, {"priority", priority}}).status, 200);
      const std::lock_guard lock(mutex);
      order.push_back(priority);
    });
  };
  ask(0, 150);
  ASSERT_TRUE(soon([&] { return server.stats().running == 1; }));
  std::uint32_t n_waiting = 0;
  for (const int priority : {-100, 0, 5, 100}) {
    ask(priority, 20);
    ++n_waiting;
    ASSERT_TRUE(soon([&] { return server.stats().waiting == n_waiting; }));
  }
  clients.clear();
  EXPECT_EQ(order, (std::vector<int>{0, 100, 5, 0, -100}));
}

TEST(ServerPriority, GoingBeforeOthersNeedsAnAdminKey) {
  server::ServerOptions options;
  options.service.access.keys = value(server::read_keys(kKey + "\n" + kAdmin + "\n", "keys"));
  options.service.access.admin_keys = value(server::read_keys(kAdmin + "\n", "keys"));
  const TestServer server({}, test_model(), std::move(options));
  const auto status = [&](const std::string& key, const char* path, int priority) {
    Json body = {{"priority", priority}, {"max_tokens", 2}};
    if (std::string_view(path).ends_with("chat/completions")) {
      body["messages"] = {{{"role", "user"}, {"content", "Hi"}}};
    } else {
      body["prompt"] = "Hi>";
    }
    const Reply reply = cyb::test::ask(
        server.port(), post_text(path, body.dump(), "Authorization: Bearer " + key + "\r\n"));
    if (reply.status != 200) {
      EXPECT_EQ(reply.code(), "admin_key_required");
    }
    return reply.status;
  };
  for (const char* path : {"/v1/completions", "/v1/chat/completions"}) {
    EXPECT_EQ(status(kKey, path, 0), 200);
    EXPECT_EQ(status(kKey, path, -3), 200);
    EXPECT_EQ(status(kKey, path, 1), 403);
    EXPECT_EQ(status(kAdmin, path, 1), 200);
  }
}

}  // namespace
}  // namespace cyb::test
