// Many clients at once, most of them hostile, and more answers than there are KV pages: what is
// right stays right and quick.
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "server/scripted_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

/// Requests that are none, each in its way; `random` decides the details.
std::string malformed(std::mt19937& random) {
  const auto pick = [&](std::size_t n) { return random() % n; };
  const std::string start = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n";
  const std::string json = start + "Content-Type: application/json\r\n";
  switch (pick(9)) {
    case 0: {
      std::string bytes(1 + pick(400), '\0');
      for (char& c : bytes) c = static_cast<char>(random());
      return bytes + "\r\n\r\n";
    }
    case 1:
      return "BREW /v1/completions HTTP/1.1\r\nHost: localhost\r\n\r\n";
    case 2:
      return start + "X: " + std::string(40000, 'a') + "\r\n\r\n";
    case 3:
      return post_text("/v1/completions",
                       std::string("{\"prompt\": ") + "[{\"x" + std::string(pick(2000), '['));
    case 4:
      return json + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n";
    case 5:
      return json + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n";
    case 6:
      return post_text("/v1/chat/completions", R"({"messages": [{"role": "nobody"}], "n": -1})");
    case 7:
      return start + "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}";
    default:
      return post_text("/v1/completions", R"({"prompt": "a>", "grammar": "root ::= (((" })");
  }
}

/// 16 connections of malformed requests, one after the other, until it is destroyed.
class Storm {
 public:
  explicit Storm(std::uint16_t port) {
    for (unsigned i = 0; i < 16; ++i) {
      threads_.emplace_back([this, port, i](const std::stop_token& stop) {
        std::mt19937 random(i);
        while (!stop.stop_requested()) {
          const Reply reply = ask(port, malformed(random));
          (reply.status >= 400 && reply.status < 500 ? n_refused_ : n_other_) += 1;
        }
      });
    }
  }
  std::uint64_t refused() const { return n_refused_.load(); }
  /// Answers that are no refusal, and connections that ended without one.
  std::uint64_t other() const { return n_other_.load(); }

 private:
  std::atomic<std::uint64_t> n_refused_ = 0, n_other_ = 0;
  std::vector<std::jthread> threads_;
};

/// Seconds of one good request.
double good(const TestServer& server) {
  const auto began = Clock::now();
  const Reply reply = server.complete({{"max_tokens", 20}});
  const std::chrono::duration<double> seconds = Clock::now() - began;
  EXPECT_EQ(reply.json()["choices"][0]["text"], std::string(20, 'x')) << reply.body;
  return seconds.count();
}

TEST(ServerStorm, GoodRequestsAreAnsweredAndBadOnesRefused) {
  const TestServer server(slow(answer_after_mark({'x'}), 1));
  const Storm storm(server.port());
  for (int i = 0; i < 20; ++i) good(server);
  ASSERT_TRUE(soon([&] { return storm.refused() >= 500; }));
  EXPECT_EQ(storm.other(), 0u);
  EXPECT_EQ(server.stats().submitted, 20u);
  EXPECT_EQ(server.stats().failed, 0u);
}

// The 95th percentile, with and without the storm in turns.
TEST(SlowServerStorm, GoodRequestsTakeLessThanTwiceAsLong) {
  const TestServer server(slow(answer_after_mark({'x'}), 2));
  std::vector<double> quiet, stormy;
  std::uint64_t n_refused = 0;
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < 25; ++i) quiet.push_back(good(server));
    const Storm storm(server.port());
    for (int i = 0; i < 25; ++i) stormy.push_back(good(server));
    n_refused += storm.refused();
  }
  const auto p95 = [](std::vector<double>& times) {
    std::ranges::sort(times);
    return times[times.size() * 95 / 100];
  };
  const double before = p95(quiet), with = p95(stormy);
  RecordProperty("p95_quiet_ms", std::to_string(before * 1e3));
  RecordProperty("p95_storm_ms", std::to_string(with * 1e3));
  std::printf("p95 %.1f ms, in the storm %.1f ms, %llu refused\n", before * 1e3, with * 1e3,
              static_cast<unsigned long long>(n_refused));
  EXPECT_LT(with, 2 * before);
  EXPECT_GT(n_refused, 1000u);
}

// P03: more full contexts than pages, at once; every answer is whole and that of a solo run.
TEST(ServerStorm, FullContextsOfAllSlotsWaitForPages) {
  for (const std::uint32_t n_contexts : {1U, 2U}) {
    server::ServerOptions options;
    options.service.scheduler.max_running = 4;
    options.service.scheduler.max_waiting = 4;
    const TestServer server({}, test_model(false, 256), std::move(options), n_contexts);
    const auto body = [](std::size_t i) {
      return Json{{"prompt", std::string(150, static_cast<char>('a' + i)) + ">"},
                  {"ignore_eos", true},
                  {"temperature", 0}};
    };
    std::vector<Json> solo, together(4);
    for (std::size_t i = 0; i < 4; ++i) solo.push_back(server.complete(body(i)).json()["choices"]);
    for (int round = 0; round < 3; ++round) {
      {
        std::vector<std::jthread> clients;
        for (std::size_t i = 0; i < 4; ++i) {
          clients.emplace_back([&, i] {
            Json streamed = body(i);
            streamed["stream"] = true;
            together[i] = i % 2 == 0 ? Json(stream_texts(server.complete(streamed))[0])
                                     : server.complete(body(i)).json()["choices"][0]["text"];
          });
        }
      }
      for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(together[i], solo[i][0]["text"]) << i;
    }
    EXPECT_EQ(solo[0][0]["finish_reason"], "length");
    EXPECT_EQ(server.stats().failed, 0u);
    EXPECT_EQ(server.stats().finished, 16u);
  }
}

// P03 with a queue that is full: refused before anything runs, with a time to come back.
TEST(ServerStorm, WhatDoesNotFitIntoTheQueueIsToldWhenToComeBack) {
  server::ServerOptions options;
  options.service.scheduler.max_running = 1;
  options.service.scheduler.max_waiting = 1;
  const TestServer server(slow(answer_after_mark({'x'}), 2), test_model(false, 256),
                          std::move(options), 1);
  std::atomic<int> n_whole = 0, n_refused = 0;
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 12; ++i) {
      clients.emplace_back([&] {
        const Reply reply = server.complete({{"max_tokens", 20}, {"stream", true}});
        if (reply.status == 503) {
          EXPECT_NE(reply.head.find("Retry-After: "), std::string::npos);
          EXPECT_EQ(reply.code(), "queue_full");
          ++n_refused;
        } else {
          EXPECT_EQ(stream_texts(reply)[0], std::string(20, 'x'));
          ++n_whole;
        }
      });
    }
  }
  EXPECT_EQ(n_whole + n_refused, 12);
  EXPECT_GE(n_whole, 1);
  EXPECT_GE(n_refused, 1);
  EXPECT_EQ(server.stats().refused, static_cast<std::uint64_t>(n_refused.load()));
}

}  // namespace
}  // namespace cyb::test
