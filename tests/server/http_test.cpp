// The protocol and the door: requests cut anywhere, too large, too slow, malformed; who may ask;
// the tables of fields; the small routes.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "server/completion_fields.hpp"
#include "server/ollama_request.hpp"
#include "server/responses_request.hpp"
#include "server/scripted_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

const TestServer& quick_server() {
  static const TestServer server(answer_after_mark({'o', 'k', kEnd}));
  return server;
}

const std::string kAsk = R"({"prompt":"a>","max_tokens":2})";

TEST(HttpProtocol, RequestsMayComeInAnyPieces) {
  const std::string text = post_text("/v1/completions", kAsk);
  Client client(quick_server().port());
  for (std::size_t size = 1; size < 60; size += 7) {  // on one connection
    for (std::size_t at = 0; at < text.size(); at += size) client.send(text.substr(at, size));
    EXPECT_EQ(client.reply().json()["choices"][0]["text"], "ok") << size;
  }
}

TEST(HttpProtocol, PipelinedRequestsAreAnsweredInOrder) {
  Client client(quick_server().port());
  client.send(get_text("/health") + post_text("/v1/completions", kAsk) + get_text("/nothing") +
              get_text("/v1/models"));
  EXPECT_EQ(client.reply().json()["status"], "ok");
  EXPECT_EQ(client.reply().json()["choices"][0]["text"], "ok");
  EXPECT_EQ(client.reply().status, 404);  // refused by its head: the connection closes
  EXPECT_TRUE(client.ended());
}

TEST(HttpProtocol, ChunkedBodiesContinueHeadAndClose) {
  Client client(quick_server().port());
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json; "
      "charset=utf-8\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.reply().status, 100);
  client.send("5\r\n" + kAsk.substr(0, 5) + "\r\n");
  client.send(std::string("19") + "\r\n" + kAsk.substr(5) + "\r\n0\r\n\r\n");
  EXPECT_EQ(client.reply().json()["choices"][0]["text"], "ok");
  client.send("HEAD /health HTTP/1.1\r\nHost: [::1]:80\r\n\r\n");
  const Reply head = client.reply(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_NE(head.head.find("Content-Length: 15"), std::string::npos);
  client.send(get_text("/health", "Connection: close\r\n"));
  EXPECT_NE(client.reply().head.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(client.ended());
  Client old(
      quick_server().port());  // HTTP/1.0: no chunks, the end of the connection ends the body
  old.send(
      "POST /v1/completions HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: "
      "45\r\n\r\n" +
      std::string(R"({"prompt":"a>","max_tokens":2,"stream":true} )"));
  EXPECT_TRUE(old.wait_for("data: [DONE]\n\n"));
  EXPECT_TRUE(old.ended());
}

TEST(HttpProtocol, WhatIsTooLargeOrMalformedIsRefused) {
  const std::uint16_t port = quick_server().port();
  const std::string start = "GET /health HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(ask(port, start + "X: " + std::string(40000, 'a') + "\r\n\r\n").status, 431);
  const Reply large = ask(port,
                          "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                          "application/json\r\nContent-Length: 10485761\r\n\r\n");
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(large.code(), "body_too_large");
  for (const std::string& bad : std::vector<std::string>{
           "nonsense\r\n\r\n", "GET /health HTTP/9.9\r\n\r\n", "GET\r\n\r\n",
           std::string(64, '\0') + "\r\n\r\n",
           "GET /health HTTP/1.1\r\n\r\n",     // no Host
           start + "Host: localhost\r\n\r\n",  // two of them
           start + "Content-Length: x\r\n\r\n", start + "Content-Length: -1\r\n\r\n",
           start + "no colon\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
           start + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    const Reply reply = ask(port, bad);
    EXPECT_TRUE(reply.status >= 400 && reply.status < 500) << bad << reply.status;
    EXPECT_NE(reply.head.find("X-Request-Id: req-"), std::string::npos) << bad;
  }
  EXPECT_EQ(ask(port, "PUT /health HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 405);
  EXPECT_NE(ask(port, get_text("/v1/completions")).head.find("Allow: POST"), std::string::npos);
  EXPECT_EQ(ask(port, "POST /health HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 405);
  for (const char* body : {"", "{", "[]", "7", "\"x\"", "{\"a\":}", "{\"secret words", "\xFF"}) {
    const Reply reply = ask(port, post_text("/v1/completions", body));
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_EQ(reply.code(), "invalid_json") << body;
    EXPECT_EQ(reply.body.find("secret"), std::string::npos) << reply.body;
  }
  const std::string deep = R"({"prompt":)" + std::string(100000, '[') + "}";
  EXPECT_EQ(ask(port, post_text("/v1/completions", deep)).code(), "invalid_json");
  EXPECT_EQ(ask(port, get_text("/health")).status, 200);
}

TEST(HttpProtocol, ClientsThatTakeTooLongAreCutOff) {
  server::ServerOptions options;
  options.http.header_timeout = std::chrono::milliseconds(150);
  options.http.body_timeout = std::chrono::milliseconds(150);
  options.http.idle_timeout = std::chrono::milliseconds(150);
  const TestServer server(answer_after_mark({'o', kEnd}), test_model(), std::move(options));
  Client head(server.port()), body(server.port()), idle(server.port());
  head.send("GET /health HT");
  body.send(post_text("/v1/completions", kAsk).substr(0, 120));
  idle.send(get_text("/health"));
  EXPECT_EQ(idle.reply().status, 200);
  EXPECT_TRUE(idle.ended(3000));
  EXPECT_EQ(head.reply().status, 408);
  EXPECT_EQ(body.reply().status, 408);
  EXPECT_TRUE(head.ended(5000) && body.ended(5000));
}

TEST(HttpAccess, HostsOriginsAndTypes) {
  const std::uint16_t port = quick_server().port();
  const auto with = [&](const std::string& headers) {
    return ask(port, "GET /v1/models HTTP/1.1\r\n" + headers + "\r\n");
  };
  for (const char* host : {"localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]"}) {
    EXPECT_EQ(with("Host: " + std::string(host) + "\r\n").status, 200) << host;
  }
  for (const char* host :
       {"evil.example", "localhost.evil.example", "127.0.0.1.evil", "192.0.2.1"}) {
    EXPECT_EQ(with("Host: " + std::string(host) + "\r\n").code(), "host_not_allowed") << host;
  }
  for (const char* host : {"", ":80", "[::1", "a:b", "localhost:80:80"}) {
    EXPECT_EQ(with("Host: " + std::string(host) + "\r\n").status, 400) << host;
  }
  EXPECT_EQ(with("Host: localhost:1\r\nOrigin: http://localhost:1\r\n").status, 200);
  for (const char* origin : {"http://evil.example", "null", "http://localhost:2", "file://", ""}) {
    const Reply reply = with("Host: localhost:1\r\nOrigin: " + std::string(origin) + "\r\n");
    EXPECT_EQ(reply.code(), "origin_not_allowed") << origin;
    EXPECT_EQ(reply.head.find("Access-Control"), std::string::npos);
  }
  for (const char* type :
       {"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"}) {
    EXPECT_EQ(ask(port, "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
                            std::string(type) + "\r\nContent-Length: 0\r\n\r\n")
                  .status,
              415)
        << type;
  }
}

TEST(HttpAccess, KeysAndOpenHosts) {
  server::ServerOptions options;
  options.http.host = "0.0.0.0";
  EXPECT_FALSE(server::Server::start(quick_server().engine, options).has_value());
  options.http.host = "no address";
  EXPECT_FALSE(server::Server::start(quick_server().engine, options).has_value());
  EXPECT_FALSE(server::read_keys("# none\n", "f").has_value());
  EXPECT_FALSE(server::read_keys("short\n", "f").has_value());
  EXPECT_FALSE(server::read_keys("0123456789 abcdefgh\n", "f").has_value());
  options.http.host = "0.0.0.0";
  options.service.access.keys =
      value(server::read_keys("# two\n0123456789abcdef\n\nfedcba9876543210\r\n", "f"));
  ASSERT_EQ(options.service.access.keys.size(), 2u);
  const TestServer server(answer_after_mark({'o', 'k', kEnd}), test_model(), std::move(options));
  const auto with = [&](const std::string& headers) {
    return ask(server.port(), get_text("/v1/models", headers)).status;
  };
  EXPECT_EQ(with(""), 401);
  EXPECT_EQ(with("Authorization: Bearer 0123456789abcdee\r\n"), 401);
  EXPECT_EQ(with("Authorization: Basic 0123456789abcdef\r\n"), 401);
  EXPECT_EQ(with("Authorization: Bearer 0123456789abcdef\r\nAuthorization: Bearer x\r\n"), 401);
  EXPECT_EQ(with("Authorization: Bearer 0123456789abcdef\r\n"), 200);
  EXPECT_EQ(with("authorization: bearer fedcba9876543210\r\n"), 200);
  EXPECT_EQ(ask(server.port(), get_text("/health")).status, 200);
  EXPECT_EQ(ask(server.port(), get_text("/metrics")).status, 401);
  EXPECT_EQ(ask(server.port(), post_text("/v1/completions", kAsk)).code(), "invalid_api_key");
}

/// A value that the table refuses, for each field that is built.
Json wrong_value(const server::Field& field) {
  using server::FieldType;
  switch (field.type) {
    case FieldType::kString:
    case FieldType::kStrings:
    case FieldType::kObject:
      return 7;
    case FieldType::kInteger:
      return 1.5;
    default:
      return "x";
  }
}

TEST(HttpFields, NothingIsIgnoredInSilence) {
  const TestServer& server = quick_server();
  const auto check = [&](const char* path, Json base, std::span<const server::Field> table) {
    base["frobnicate"] = 1;
    Reply reply = post(server.port(), path, base);
    const auto error = [&] {
      const Json json = reply.json();
      return json["error"].is_string() ? json : json["error"];  // Ollama's shape, or OpenAI's
    };
    EXPECT_EQ(error()["code"], "unknown_parameter");
    EXPECT_EQ(error()["param"], "frobnicate");
    base.erase("frobnicate");
    std::set<std::string_view> names;
    for (const server::Field& field : table) {
      const std::string name(field.name);
      EXPECT_TRUE(names.insert(field.name).second) << name << " stands twice";
      Json body = base;
      body[name] = nullptr;  // as if it were not there
      if (!base.contains(name)) {
        EXPECT_EQ(post(server.port(), path, body).status, 200) << name;
      }
      body[name] = field.state == server::FieldState::kOnly ? Json("other") : wrong_value(field);
      if (field.type == server::FieldType::kAny) body[name] = true;
      reply = post(server.port(), path, body);
      EXPECT_EQ(reply.status, 400) << name;
      EXPECT_EQ(error()["param"].get<std::string>(), name) << reply.body;
      const bool built = field.state == server::FieldState::kBuilt;
      if (!built) {
        EXPECT_EQ(error()["code"], "unsupported_parameter") << name;
      }
      const bool number =
          field.type == server::FieldType::kInteger || field.type == server::FieldType::kNumber;
      for (const double value : {field.min - 1, field.max + 1}) {
        if (!built || !number) continue;
        body[name] = value;
        EXPECT_EQ(post(server.port(), path, body).status, 400) << name << value;
      }
    }
  };
  check("/v1/chat/completions",
        {{"messages", Json::array({{{"role", "user"}, {"content", "a"}}})}, {"max_tokens", 1}},
        server::chat_fields());
  check("/v1/completions", {{"prompt", "a>"}, {"max_tokens", 1}}, server::completion_fields());
  check("/v1/responses", {{"input", "a"}, {"max_output_tokens", 1}}, server::responses_fields());
  check("/api/chat",
        {{"messages", Json::array({{{"role", "user"}, {"content", "a"}}})}, {"stream", false}},
        server::ollama_chat_fields());
  check("/api/generate", {{"prompt", "a"}, {"stream", false}}, server::ollama_generate_fields());
  check("/api/show", Json::object(), server::ollama_show_fields());
}

TEST(HttpFields, RulesBetweenFields) {
  const TestServer& server = quick_server();
  const auto refused = [&](Json body, const char* field) {
    const Reply reply = server.chat(std::move(body));
    EXPECT_EQ(reply.status, 400) << reply.body;
    EXPECT_EQ(reply.json()["error"]["param"], field) << reply.body;
  };
  refused({{"stream_options", {{"include_usage", true}}}}, "stream_options");
  refused({{"stream", true}, {"stream_options", {{"other", true}}}}, "stream_options.other");
  refused({{"top_logprobs", 2}}, "top_logprobs");
  refused({{"max_tokens", 2}, {"max_completion_tokens", 3}}, "max_completion_tokens");
  refused({{"typical_p", 0}}, "typical_p");
  refused({{"min_p", 1}}, "min_p");
  refused({{"logit_bias", {{"x", 1}}}}, "logit_bias");
  refused({{"logit_bias", {{"99999", 1}}}}, "logit_bias");
  refused({{"logit_bias", {{"5", 101}}}}, "logit_bias");
  refused({{"stop", Json::array({""})}}, "stop");
  refused({{"stop", std::string(257, 'a')}}, "stop");
  refused({{"overflow", "wrap"}}, "overflow");
  refused({{"chat_template_kwargs", {{"messages", 1}}}}, "chat_template_kwargs");
  refused({{"tools", Json::array({Json::object()})}}, "tools[0].type");
  refused({{"response_format", {{"type", "xml"}}}}, "response_format");
  refused({{"messages", Json::array({{{"role", "tool"}, {"content", "a"}}})}},
          "messages[0].tool_call_id");
  const Reply other = server.chat({{"model", "gpt"}});
  EXPECT_EQ(other.status, 404);
  EXPECT_EQ(other.code(), "model_not_found");
  const Json fine = {{"response_format", {{"type", "text"}}},
                     {"tools", Json::array()},
                     {"tool_choice", "none"},
                     {"store", false},
                     {"max_completion_tokens", 1},
                     {"logit_bias", {{"107", -100}}},
                     {"user", "me"},
                     {"top_k", 3.0}};
  EXPECT_EQ(server.chat(fine).json()["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(server.complete({{"best_of", 2}}).json()["error"]["param"], "best_of");
  EXPECT_EQ(server.complete({{"echo", true}}).json()["error"]["param"], "echo");
}

TEST(HttpRoutes, ModelsTextAndWhatIsNotBuilt) {
  const TestServer& server = quick_server();
  const std::uint16_t port = server.port();
  const Json models = ask(port, get_text("/v1/models")).json();
  EXPECT_EQ(models["data"][0]["id"], "test");
  EXPECT_EQ(ask(port, get_text("/v1/models/test")).json(), models["data"][0]);
  EXPECT_EQ(ask(port, get_text("/v1/models/%74est?x=1")).status, 200);
  EXPECT_EQ(ask(port, get_text("/v1/models/other")).code(), "model_not_found");
  const Json tokens = post(port, "/tokenize", {{"content", "aé<|end|>"}}).json();
  EXPECT_EQ(tokens["tokens"].size(), 10u);
  EXPECT_EQ(tokens["count"], 10);
  EXPECT_EQ(post(port, "/detokenize", {{"tokens", tokens["tokens"]}}).json()["content"],
            "aé<|end|>");
  EXPECT_EQ(
      post(port, "/tokenize", {{"content", "<|end|>"}, {"parse_special", true}}).json()["tokens"],
      Json{kEnd});
  EXPECT_EQ(post(port, "/tokenize", {{"content", "a"}, {"with_pieces", true}})
                .json()["tokens"][0]["piece"],
            "a");
  EXPECT_EQ(post(port, "/tokenize", Json::object()).status, 400);
  EXPECT_EQ(post(port, "/detokenize", {{"tokens", {-1}}}).json()["error"]["param"], "tokens");
  EXPECT_EQ(post(port, "/detokenize", {{"tokens", {1e9}}}).status, 400);
  EXPECT_EQ(post(port, "/apply-template",
                 {{"messages", Json::array({{{"role", "user"}, {"content", "Hi"}}})}})
                .json()["prompt"],
            "<user:Hi>");
  EXPECT_EQ(post(port, "/v1/embeddings", {{"input", "x"}}).status, 501);
  EXPECT_EQ(post(port, "/v1/rerank", {{"query", "x"}}).code(), "rerank_not_built");
}

TEST(HttpRoutes, MetricsCount) {
  const TestServer server(answer_after_mark({'o', 'k', kEnd}));
  EXPECT_EQ(server.complete({}).status, 200);
  EXPECT_EQ(server.complete({{"x", 1}}).status, 400);
  const Reply reply = ask(server.port(), get_text("/metrics"));
  EXPECT_NE(reply.head.find("text/plain; version=0.0.4"), std::string::npos);
  for (const char* line : {"cyb_llm_requests_total{route=\"completions\",code=\"200\"} 1\n",
                           "cyb_llm_requests_total{route=\"completions\",code=\"400\"} 1\n",
                           "cyb_llm_answers_finished_total{model=\"test\"} 1\n",
                           "cyb_llm_answer_tokens_total{model=\"test\"} 2\n",
                           "cyb_llm_prompt_tokens_total{model=\"test\"} 3\n",
                           "cyb_llm_time_to_first_token_seconds_count{model=\"test\"} 1\n",
                           "cyb_llm_inter_token_seconds_count{model=\"test\"} 1\n",
                           "cyb_llm_model_info{model=\"test\"} 1\n"}) {
    EXPECT_NE(reply.body.find(std::string("\n") + line), std::string::npos) << line << reply.body;
  }
}

}  // namespace
}  // namespace cyb::test
