// What a request may ask of the engine beside its answer, and how requests come.
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

Reply raw(const TestServer& server, const std::string& text) {
  return ask(server.port(), text);
}

// RFC 9110, 7.8: who does not speak the other protocol goes on as if nothing had been offered.
TEST(ServerHttp, AnOfferToUpgradeIsNotTakenUp) {
  const TestServer server;
  const std::string offer =
      "Host: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
      "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n";
  EXPECT_EQ(raw(server, "GET /health HTTP/1.1\r\n" + offer + "\r\n").status, 200);
  EXPECT_EQ(raw(server,
                "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                "Upgrade: websocket\r\n\r\n")
                .status,
            200);
  const std::string body = R"({"prompt":"Hi>","max_tokens":2})";
  const Reply answer = raw(server, "POST /v1/completions HTTP/1.1\r\n" + offer +
                                       "Content-Type: application/json\r\nContent-Length: " +
                                       std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(answer.status, 200) << answer.body;
}

TEST(ServerHttp, WhatIsWrongWithARequestIsNamed) {
  const TestServer server;
  const auto refused = [&](const std::string& head, const char* words) {
    const Reply reply = raw(server, head + "\r\n");
    EXPECT_EQ(reply.status, 400) << head;
    EXPECT_NE(reply.body.find(words), std::string::npos) << head << reply.body;
  };
  refused("CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n", "no proxy");
  const std::string post = "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n";
  refused(post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "the only framing");
  refused(post + "Content-Length: 2, 2\r\n", "Content-Length");
  refused(post + "Transfer-Encoding: gzip, chunked\r\n", "must be chunked");
}

TEST(ServerHttp, TheAbsoluteFormIsThePath) {
  const TestServer server;
  EXPECT_EQ(raw(server, "GET http://127.0.0.1/health HTTP/1.1\r\nHost: localhost\r\n\r\n").status,
            200);
  EXPECT_EQ(raw(server, "GET HTTP://x?y HTTP/1.1\r\nHost: elsewhere\r\n\r\n").status, 403)
      << "the Host header decides";
}

TEST(ServerHttp, BodiesInACodingOrCharsetAreRefusedByName) {
  const TestServer server;
  const auto status = [&](const std::string& headers) {
    const std::string body = R"({"content":"Hi"})";
    const Reply reply =
        raw(server, "POST /tokenize HTTP/1.1\r\nHost: localhost\r\n" + headers +
                        "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    if (reply.status != 200) {
      EXPECT_EQ(reply.code(), "unsupported_media_type");
    }
    return reply.status;
  };
  EXPECT_EQ(status("Content-Type: application/json; charset=UTF-8"), 200);
  EXPECT_EQ(status("Content-Type: application/json;charset=\"utf-8\"; x=y"), 200);
  EXPECT_EQ(status("Content-Type: application/json\r\nContent-Encoding: identity"), 200);
  EXPECT_EQ(status("Content-Type: application/json\r\nContent-Encoding: gzip"), 415);
  EXPECT_EQ(status("Content-Type: application/json; charset=latin1"), 415);
  EXPECT_EQ(status("Content-Type: application/json; a=b; charset=utf-16"), 415);
  EXPECT_EQ(status("Content-Type: application/json;"), 200);
  EXPECT_EQ(status("Content-Type: ;application/json"), 415);
}

TEST(ServerHttp, BodiesThatAreNoTextAreToldApart) {
  const TestServer server;
  const auto says = [&](const std::string& body, const char* words) {
    const Reply reply = ask(server.port(), post_text("/tokenize", body));
    EXPECT_EQ(reply.code(), "invalid_json");
    EXPECT_NE(reply.body.find(words), std::string::npos) << reply.body;
  };
  says("", "the body is empty");
  says("{\"content\":\"\xff\"}", "not UTF-8 at byte 12");
}

TEST(ServerHttp, PathsThatAreNotThereSayWhatIs) {
  const TestServer server;
  const auto message = [&](const char* path) {
    return post(server.port(), path, Json::object()).json().dump();
  };
  EXPECT_NE(message("/chat/completions").find("below /v1"), std::string::npos);
  EXPECT_NE(message("/api/push").find("Of Ollama's API there are"), std::string::npos);
  EXPECT_EQ(message("/nothing").find("/v1"), std::string::npos);
}

TEST(ServerHttp, TheLogNamesTheClientOfARefusal) {
  std::mutex mutex;
  std::string log;
  server::ServerOptions options;
  options.service.access.keys = value(server::read_keys(kKey + "\n", "keys"));
  options.service.log = [&](std::string_view line) {
    const std::lock_guard lock(mutex);
    log += std::string(line) + "\n";
  };
  const TestServer server({}, test_model(), std::move(options));
  EXPECT_EQ(raw(server, "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 401);
  EXPECT_EQ(raw(server, "NONSENSE\r\n\r\n").status, 400);
  EXPECT_EQ(raw(server, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
  const std::lock_guard lock(mutex);
  for (const char* start : {"models 401", "other 400", "health 200"}) {
    const std::size_t at = log.find(start);
    ASSERT_NE(at, std::string::npos) << log;
    EXPECT_NE(log.substr(at, log.find('\n', at) - at).find(", from 127.0.0.1"), std::string::npos)
        << log;
  }
}

TEST(ServerHttp, KeysAreNotTakenAwayFromARunningServer) {
  server::ServerOptions options;
  options.service.access.keys = value(server::read_keys(kKey + "\n", "keys"));
  const TestServer server({}, test_model(), std::move(options));
  const auto renewed = server.server->renew({});
  ASSERT_FALSE(renewed.has_value());
  EXPECT_NE(renewed.error().text().find("no keys are left"), std::string::npos);
  EXPECT_EQ(raw(server, "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 401);
}

TEST(ServerSampling, ValuesThatMeanOffOrTheLikeliestAreTaken) {
  const TestServer server(answer_after_mark({'x'}));
  for (const Json& body : {Json{{"top_p", 0}}, Json{{"top_k", -1}}, Json{{"top_k", 0}}}) {
    Json all = body;
    all.update({{"max_tokens", 4}, {"temperature", 1}});
    const Reply reply = server.complete(all);
    EXPECT_EQ(reply.status, 200) << reply.body;
    EXPECT_EQ(reply.json()["choices"][0]["text"], "xxxx");
  }
  EXPECT_EQ(server.complete({{"top_k", -2}}).status, 400);
  EXPECT_EQ(server.complete({{"top_p", -0.1}}).status, 400);
}

TEST(ServerTokenize, PiecesThatAreNoTextAreBytes) {
  const TestServer server;
  const Json tokens =
      post(server.port(), "/tokenize", {{"content", "a\u00e9"}, {"with_pieces", true}})
          .json()["tokens"];
  ASSERT_EQ(tokens.size(), 3u) << tokens;
  EXPECT_EQ(tokens[0]["piece"], "a");
  EXPECT_EQ(tokens[1]["piece"], Json::array({0xC3}));
  EXPECT_EQ(tokens[2]["piece"], Json::array({0xA9}));
}

TEST(ServerOllamaTimes, TheyAddUp) {
  const TestServer server(slow(answer_after_mark({'x'}), 5));
  for (const int n : {1, 2, 10}) {
    const Json answer = post(server.port(), "/api/generate",
                             {{"prompt", "Hi>"},
                              {"raw", true},
                              {"stream", false},
                              {"options", {{"num_predict", n}}}})
                            .json();
    EXPECT_LE(answer["prompt_eval_duration"].get<double>() + answer["eval_duration"].get<double>(),
              answer["total_duration"].get<double>())
        << answer;
    EXPECT_GE(answer["eval_duration"].get<double>(), (n - 1) * 5e6);
  }
}

}  // namespace
}  // namespace cyb::test
