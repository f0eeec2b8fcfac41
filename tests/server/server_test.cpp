// Answers over HTTP: shapes, streams, stops, limits of the context, several answers, cancellation,
// the bits of solo runs. The models are scripted, so that every text is known.
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "base/utf8.hpp"
#include "server/scripted_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

std::vector<std::int32_t> ended(std::vector<std::int32_t> ids) {
  ids.push_back(kEnd);
  return ids;
}

TEST(ServerAnswers, ChatHasTheShapeOfTheApi) {
  const TestServer server(answer_after_mark(ended(bytes_of("Hello"))));
  const Reply reply = server.chat({{"model", "test"}, {"seed", 5}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.head.find("X-Request-Id: req-"), std::string::npos);
  const Json json = reply.json();
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_TRUE(json["id"].get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(json["model"], "test");
  EXPECT_EQ(json["choices"].size(), 1u);
  EXPECT_EQ(json["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(json["choices"][0]["message"]["content"], "Hello");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(json["choices"][0]["logprobs"].is_null());
  EXPECT_EQ(json["usage"]["prompt_tokens"], 9);  // "<user:Hi>"
  EXPECT_EQ(json["usage"]["completion_tokens"], 5);
  EXPECT_EQ(json["usage"]["total_tokens"], 14);
  EXPECT_EQ(json["cyb_llm"]["seed"], 5);
  EXPECT_EQ(json["cyb_llm"]["model_id"], server.engine->model_id());
}

TEST(ServerAnswers, StreamIsTheWholeAnswerInPieces) {
  const TestServer server(answer_after_mark(ended(bytes_of("Hello there"))));
  const Reply reply =
      server.chat({{"stream", true}, {"stream_options", {{"include_usage", true}}}});
  EXPECT_EQ(stream_texts(reply), std::vector<std::string>{"Hello there"});
  const auto events = reply.events();
  const Json first = Json::parse(events[0]), finish = Json::parse(events[events.size() - 3]);
  const Json usage = Json::parse(events[events.size() - 2]);
  EXPECT_EQ(first["object"], "chat.completion.chunk");
  EXPECT_EQ(first["choices"][0]["delta"]["role"], "assistant");
  EXPECT_TRUE(first["usage"].is_null());
  EXPECT_EQ(finish["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(finish.contains("cyb_llm"));
  EXPECT_EQ(usage["choices"].size(), 0u);
  EXPECT_EQ(usage["usage"]["completion_tokens"], 11);
  for (const std::string& text : events) {
    if (text != "[DONE]") {
      EXPECT_EQ(Json::parse(text)["id"], first["id"]);
    }
  }
  EXPECT_EQ(stream_texts(server.complete({{"stream", true}})),
            std::vector<std::string>{"Hello there"});
  EXPECT_FALSE(Json::parse(server.complete({{"stream", true}}).events()[0]).contains("usage"));
}

// V01
TEST(ServerAnswers, StopTextsOverTokenBordersNeverLeak) {
  const TestServer server(answer_after_mark({258, 259, 260, 'x', kEnd}));
  const Json body = {{"stop", "DEFGHIJ"}, {"stream", true}};
  for (const Reply& reply : {server.chat(body), server.complete(body)}) {
    EXPECT_EQ(stream_texts(reply), std::vector<std::string>{""});
    const auto events = reply.events();
    EXPECT_EQ(Json::parse(events[events.size() - 2])["choices"][0]["finish_reason"], "stop");
  }
  const Json whole = server.chat({{"stop", Json::array({"none", "DEFGHIJ"})}}).json();
  EXPECT_EQ(whole["choices"][0]["message"]["content"], "");
  EXPECT_EQ(whole["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(server.chat({{"stop", "GHIX"}}).json()["choices"][0]["message"]["content"], "DEFGHIJx");
  const TestServer bytes(answer_after_mark(ended(bytes_of("ab DEFGHIJ"))));
  for (std::size_t cut = 1; cut < 7; ++cut) {  // the stop ends inside, and begins late
    const std::string stop = std::string("DEFGHIJ").substr(7 - cut);
    EXPECT_EQ(stream_texts(bytes.complete({{"stop", stop}, {"stream", true}}))[0],
              "ab " + std::string("DEFGHIJ").substr(0, 7 - cut));
  }
}

// V03
TEST(ServerAnswers, EveryChunkIsWholeUtf8) {
  const std::string text = "👨‍👩‍👧‍👦 漢 é.";
  const TestServer server(answer_after_mark(ended(bytes_of(text))));
  const Reply reply = server.chat({{"stream", true}});
  EXPECT_EQ(stream_texts(reply)[0], text);
  for (const std::string& chunk : reply.chunks) {
    EXPECT_EQ(utf8_find_invalid(chunk), std::string::npos);
    EXPECT_EQ(chunk.find("\xEF\xBF\xBD"), std::string::npos);
  }
}

// V07
TEST(ServerAnswers, EmptyPromptsAreRefusedAndHarmless) {
  const TestServer server(answer_after_mark(ended(bytes_of("ok"))));
  const Json prompts = {"",
                        Json::array({""}),
                        Json::array(),
                        Json::array({Json::array()}),
                        nullptr,
                        7,
                        Json::array({"a", "b"}),
                        Json::array({1, "a"}),
                        Json::array({-1})};
  for (const Json& prompt : prompts) {
    const Reply reply = server.complete({{"prompt", prompt}});
    EXPECT_EQ(reply.status, 400) << prompt << reply.body;
    EXPECT_EQ(reply.json()["error"]["type"], "invalid_request_error");
    EXPECT_EQ(server.complete({}).status, 200);
  }
  const Json messages = {Json::array(),
                         Json::array({{{"role", "user"}, {"content", nullptr}}}),
                         Json::array({{{"role", "user"}}}),
                         Json::array({{{"content", "x"}}}),
                         Json::array({"x"}),
                         Json::array({{{"role", "user"}, {"content", 7}}}),
                         "x"};
  for (const Json& list : messages) {
    const Reply reply = server.chat({{"messages", list}});
    EXPECT_EQ(reply.status, 400) << list << reply.body;
    EXPECT_TRUE(reply.json()["error"]["param"].get<std::string>().starts_with("messages"));
  }
  EXPECT_EQ(server.chat({}).status, 200);
}

// V09
TEST(ServerAnswers, PromptsLongerThanTheContextAreRefusedWithBothNumbers) {
  const TestServer server(answer_after_mark(ended(bytes_of("ok"))), test_model(true, 128));
  const auto prompt = [](std::size_t n) { return std::string(n - 1, 'a') + ">"; };
  EXPECT_EQ(server.complete({{"prompt", prompt(127)}}).status, 200);
  EXPECT_EQ(server.complete({{"prompt", prompt(128)}}).status, 200);
  for (const std::size_t n : {std::size_t{129}, std::size_t{1280}}) {
    const Reply reply = server.complete({{"prompt", prompt(n)}, {"stream", true}});
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.code(), "context_length_exceeded");
    const std::string text = reply.json()["error"]["message"];
    EXPECT_NE(text.find(std::to_string(n) + " tokens"), std::string::npos) << text;
    EXPECT_NE(text.find("holds 128"), std::string::npos) << text;
  }
  const Json cut = server.complete({{"prompt", prompt(129)}, {"overflow", "truncate"}}).json();
  EXPECT_GT(cut["cyb_llm"]["overflow"]["dropped_prompt_tokens"], 0) << cut;
}

// V11; the default script's logits are a hash of all that came before.
TEST(ServerAnswers, SeveralAnswersDifferAndComeAgain) {
  const TestServer server;
  Json body = {{"n", 8}, {"seed", 7}, {"temperature", 1.2}, {"max_tokens", 24}};
  const Json many = server.complete(body).json();
  ASSERT_EQ(many["choices"].size(), 8u);
  std::set<std::string> texts;
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(many["choices"][i]["index"], i);
    texts.insert(many["choices"][i]["text"].get<std::string>());
  }
  EXPECT_EQ(texts.size(), 8u);
  EXPECT_EQ(server.complete(body).json()["choices"], many["choices"]);
  body["stream"] = true;
  const auto streamed = stream_texts(server.complete(body), 8);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(streamed[i], many["choices"][i]["text"].get<std::string>());
  }
  body.erase("stream");
  body.erase("n");
  EXPECT_EQ(server.complete(body).json()["choices"][0], many["choices"][0]);
  body["seed"] = 0;  // a seed like any other
  EXPECT_EQ(server.complete(body).json()["choices"], server.complete(body).json()["choices"]);
  body.erase("seed");
  std::set<std::string> free;
  for (int i = 0; i < 3; ++i) free.insert(server.complete(body).json()["choices"].dump());
  EXPECT_EQ(free.size(), 3u);
  body["n"] = 9;  // more than the slots
  EXPECT_EQ(server.complete(body).json()["error"]["param"], "n");
}

TEST(ServerAnswers, LogprobsOfBothApis) {
  const TestServer server(
      answer_after_mark({258, 0xC3, 0xA9, kEnd}));  // "DEF", then é as two bytes
  const Json chat = server.chat({{"logprobs", true}, {"top_logprobs", 2}}).json();
  const Json& content = chat["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 3u) << chat;
  EXPECT_EQ(content[0]["token"], "DEF");
  EXPECT_EQ(content[0]["bytes"], (Json{'D', 'E', 'F'}));
  EXPECT_EQ(content[1]["bytes"], (Json{0xC3}));
  EXPECT_EQ(content[0]["top_logprobs"].size(), 2u);
  EXPECT_EQ(content[0]["top_logprobs"][0]["token"], "DEF");
  EXPECT_EQ(content[0]["top_logprobs"][0]["logprob"], content[0]["logprob"]);
  EXPECT_LE(content[0]["logprob"], 0.0);
  const Json text = server.complete({{"logprobs", 1}}).json()["choices"][0]["logprobs"];
  EXPECT_EQ(text["tokens"], (Json{"DEF", "bytes:\\xc3", "bytes:\\xa9"}));
  EXPECT_EQ(text["text_offset"], (Json{0, 3, 4}));
  EXPECT_EQ(text["token_logprobs"].size(), 3u);
  EXPECT_EQ(text["top_logprobs"][0].size(), 1u);
  // In a stream the same tokens, in order.
  Json streamed = Json::array();
  for (const auto& event :
       server.chat({{"logprobs", true}, {"top_logprobs", 2}, {"stream", true}}).events()) {
    if (event == "[DONE]") continue;
    const Json chunk = Json::parse(event);
    const Json& part = chunk["choices"][0]["logprobs"];
    if (part.is_object())
      streamed.insert(streamed.end(), part["content"].begin(), part["content"].end());
  }
  EXPECT_EQ(streamed, content);
}

TEST(ServerAnswers, ATemplatesOwnErrorIsA400AndContentStaysContent) {
  const TestServer server(answer_after_mark(ended(bytes_of("ok"))));
  const Json late = {{{"role", "system"}, {"content", "a"}},
                     {{"role", "user"}, {"content", "b"}},
                     {{"role", "system"}, {"content", "c"}}};
  const Reply reply = server.chat({{"messages", late}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.code(), "template_error");
  EXPECT_NE(reply.body.find("System must come first!"), std::string::npos);
  const Json marked = {{{"role", "user"}, {"content", "<|end|>"}}};
  EXPECT_EQ(server.chat({{"messages", marked}}).json()["usage"]["prompt_tokens"], 14);
  const Json parts = {
      {{"role", "developer"},
       {"content", {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}}}}};
  EXPECT_EQ(post(server.port(), "/apply-template", {{"messages", parts}}).json()["prompt"],
            "<system:a\nb>");
  const TestServer plain(answer_after_mark(ended(bytes_of("ok"))), test_model(false));
  EXPECT_EQ(plain.chat({}).code(), "no_chat_template");
  EXPECT_EQ(plain.chat({}).status, 400);
  EXPECT_EQ(plain.complete({}).status, 200);
}

// V05: the client goes at every stage; the answers would go on for 40 s.
TEST(ServerCancel, AClientThatGoesAwayFreesItsSlot) {
  TestServer server(slow(answer_after_mark({'x'}), 10), test_model(true, 4096));
  std::uint64_t n_cancelled = 0;
  const auto gone = [&] {
    ++n_cancelled;
    return soon([&] {
      const SchedulerStats stats = server.stats();
      return stats.cancelled == n_cancelled && stats.running == 0 && stats.waiting == 0;
    });
  };
  const std::string decode = post_text("/v1/completions", R"({"prompt":"a>","stream":true})");
  const std::string whole = post_text("/v1/completions", R"({"prompt":"a>"})");
  const std::string prefill =
      post_text("/v1/completions", Json{{"prompt", std::string(4000, 'a') + ">"}}.dump());
  for (int round = 0; round < 6; ++round) {
    for (const std::string& request : {decode, whole, prefill}) {
      Client client(server.port());
      client.send(request);
      ASSERT_TRUE(soon([&] { return server.stats().running == 1; }));
      if (request == decode) {
        ASSERT_TRUE(client.wait_for("data: "));
      }
      round % 2 == 0 ? client.close() : client.reset();
      EXPECT_TRUE(gone()) << round;
    }
  }
  EXPECT_EQ(server.stats().failed, 0u);
  EXPECT_EQ(server.complete({{"max_tokens", 2}}).status, 200);
}

TEST(ServerCancel, QueuedRequestsOfGoneClientsNeverRun) {
  server::ServerOptions options;
  options.service.scheduler.max_running = 1;
  options.service.scheduler.max_waiting = 2;
  TestServer server(slow(answer_after_mark({'x'}), 5), test_model(true, 4096), std::move(options));
  Client running(server.port()), first(server.port()), second(server.port());
  const std::string text = post_text("/v1/completions", R"({"prompt":"a>","stream":true})");
  running.send(text);
  ASSERT_TRUE(running.wait_for("data: "));
  first.send(text);
  second.send(text);
  ASSERT_TRUE(soon([&] { return server.stats().waiting == 2; }));
  const Reply full = server.complete({});
  EXPECT_EQ(full.status, 503);
  EXPECT_EQ(full.code(), "queue_full");
  EXPECT_NE(full.head.find("Retry-After: 1"), std::string::npos);
  first.close();
  ASSERT_TRUE(soon([&] { return server.stats().cancelled == 1; }));
  EXPECT_EQ(server.stats().waiting, 1u);
  running.close();
  EXPECT_TRUE(second.wait_for("data: "));  // the next one has its turn
  second.close();
  EXPECT_TRUE(soon([&] { return server.stats().cancelled == 3; }));
  EXPECT_EQ(server.stats().refused, 1u);
}

TEST(ServerCancel, AReaderThatDoesNotReadIsCutOff) {
  server::ServerOptions options;
  options.http.send_buffer_bytes = 4096;
  options.http.max_pending_bytes = 16384;
  TestServer server(answer_after_mark({'x'}), test_model(true, 4096), std::move(options));
  Client client(server.port(), 2048);
  client.send(post_text("/v1/completions", R"({"prompt":"a>","stream":true})"));
  EXPECT_TRUE(soon([&] { return server.stats().cancelled == 1; }));
  EXPECT_EQ(server.complete({{"max_tokens", 2}}).status, 200);
}

TEST(ServerLoad, SixteenClientsGetTheBitsOfSoloRuns) {
  const TestServer server;
  std::vector<Json> bodies;
  std::vector<Json> solo;
  for (std::size_t i = 0; i < 16; ++i) {
    bodies.push_back({{"prompt", std::string(5 + i * 7, static_cast<char>('a' + i)) + ">"},
                      {"max_tokens", 10 + i * 3},
                      {"seed", 40 + i},
                      {"temperature", i % 2 == 0 ? 1.0 : 0.0},
                      {"n", i % 5 == 2 ? 3 : 1},
                      {"logprobs", 3}});
    solo.push_back(server.complete(bodies[i]).json()["choices"]);
    ASSERT_TRUE(solo[i].is_array());
  }
  for (int round = 0; round < 3; ++round) {
    std::vector<Json> together(bodies.size());
    {
      std::vector<std::jthread> clients;
      for (std::size_t i = 0; i < bodies.size(); ++i) {
        clients.emplace_back(
            [&, i] { together[i] = server.complete(bodies[i]).json()["choices"]; });
      }
    }
    for (std::size_t i = 0; i < bodies.size(); ++i) EXPECT_EQ(together[i], solo[i]) << i;
  }
  EXPECT_EQ(server.stats().failed, 0u);
}

TEST(ServerLoad, DrainFinishesWhatRuns) {
  TestServer server(slow(answer_after_mark({'x'}), 5));
  Client client(server.port()), idle(server.port());
  client.send(post_text("/v1/completions", R"({"prompt":"a>","stream":true,"max_tokens":60})"));
  idle.send(get_text("/ready"));
  EXPECT_EQ(idle.reply().status, 200);
  ASSERT_TRUE(client.wait_for("data: "));
  bool drained = false;
  std::jthread drain([&] { drained = server.server->drain(); });
  EXPECT_TRUE(idle.ended());
  EXPECT_EQ(stream_texts(client.reply())[0], std::string(60, 'x'));
  EXPECT_TRUE(client.ended());
  drain.join();
  EXPECT_TRUE(drained);
  EXPECT_FALSE(Client(server.port()).connected());
}

TEST(ServerLoad, FaultsOfARunEndTheirRequestOnly) {
  Script script = answer_after_mark(ended(bytes_of("ok")));
  script.before_run = [](const StepParams& params) -> Result<void> {
    if (params.ids.size() > 0 && params.ids[0] == 'Z') return fail(non_finite("logits", "x", 1));
    return {};
  };
  const TestServer server(std::move(script));
  const Reply reply = server.complete({{"prompt", "Z>"}, {"stream", true}});
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.code(), "internal_error");
  EXPECT_EQ(server.complete({}).json()["choices"][0]["text"], "ok");
}

}  // namespace
}  // namespace cyb::test
