// POST /v1/models/pull with a puller that a test holds.
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "server/models_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

/// A puller that waits until it is let go, or stopped.
class Gate {
 public:
  server::Puller puller(const std::string& name = "pulled") {
    return [this, name](const server::PullOrder& order) -> Result<ShelfModel> {
      ++n_begun;
      if (order.progress) order.progress(1, 2, "file");
      std::unique_lock lock(mutex_);
      open_wake_.wait(lock, order.stop, [this] { return open_; });
      if (order.stop.stop_requested()) {
        ++n_stopped;
        return fail(cancelled(0));
      }
      if (order.source == "bad") return fail(Error(ErrorKind::kFormat, "N07", "other bytes"));
      return scripted(order.name.empty() ? name : order.name, says("pulled"));
    };
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    open_wake_.notify_all();
  }
  std::atomic<int> n_begun{0}, n_stopped{0};

 private:
  std::mutex mutex_;
  std::condition_variable_any open_wake_;
  bool open_ = false;
};

server::ServerOptions with(server::Puller puller) {
  server::ServerOptions out;
  out.service.puller = std::move(puller);
  return out;
}

std::string order_text(const Json& body) {
  return post_text("/v1/models/pull", body.dump());
}

TEST(ServerPull, IsOffAndAnAdmins) {
  const ModelsServer off(three());
  EXPECT_EQ(post(off.port(), "/v1/models/pull", {{"source", "a/b"}}).code(), "pull_off");
  Gate gate;
  server::ServerOptions options = with(gate.puller());
  options.service.access.keys = value(server::read_keys("0123456789abcdef", "f"));
  const ModelsServer on(three(), {}, std::move(options));
  EXPECT_EQ(ask(on.port(), order_text({{"source", "a"}})).status, 401);
  const std::string head = "Authorization: Bearer 0123456789abcdef\r\n";
  EXPECT_EQ(ask(on.port(), post_text("/v1/models/pull", R"({"source":"a"})", head)).code(),
            "admin_key_required");
  EXPECT_EQ(gate.n_begun, 0);
}

TEST(ServerPull, AModelIsServedAfterwards) {
  Gate gate;
  gate.open();
  const ModelsServer server(three(), {}, with(gate.puller()));
  const Reply reply = post(server.port(), "/v1/models/pull", {{"source", "x"}});
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.json()["id"], "pulled");
  EXPECT_EQ(reply.json()["state"], "unloaded");
  EXPECT_EQ(server.states(), "unloaded unloaded unloaded unloaded");
  EXPECT_EQ(server.text_of("pulled"), "pulled");
  // The same model under its name is that one; where another has the name it is refused.
  EXPECT_EQ(post(server.port(), "/v1/models/pull", {{"source", "x"}}).json()["state"], "loaded");
  EXPECT_EQ(server.server->service().shelf().size(), 4u);
  for (const Json& bad : {Json{{"source", ""}}, Json{{"name", "a"}}, Json{{"source", 1}},
                          Json{{"source", "x"}, {"name", "../a"}}, Json{{"sourc", "x"}},
                          Json{{"source", "x"}, {"sha256", "00"}}})
    EXPECT_EQ(post(server.port(), "/v1/models/pull", bad).status, 400) << bad;
  const Reply failed = post(server.port(), "/v1/models/pull", {{"source", "bad"}});
  EXPECT_EQ(failed.status, 502);
  EXPECT_EQ(failed.code(), "pull_failed");
}

TEST(ServerPull, OneAtATimeOfASourceAndFewAtOnce) {
  Gate gate;
  const ModelsServer server(three(), {}, with(gate.puller()));
  Client a(server.port()), b(server.port());
  a.send(order_text({{"source", "a"}, {"name", "x"}}));
  ASSERT_TRUE(soon([&] { return gate.n_begun == 1; }));
  EXPECT_EQ(post(server.port(), "/v1/models/pull", {{"source", "a"}}).code(), "pull_running");
  b.send(order_text({{"source", "b"}, {"name", "y"}, {"stream", true}}));
  ASSERT_TRUE(soon([&] { return gate.n_begun == 2; }));
  const Reply third = post(server.port(), "/v1/models/pull", {{"source", "c"}});
  EXPECT_EQ(third.status, 503);
  EXPECT_EQ(third.code(), "too_many_pulls");
  gate.open();
  EXPECT_EQ(a.reply().status, 200);
  const auto events = b.reply().events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(Json::parse(events[0])["status"], "pulling");
  EXPECT_EQ(Json::parse(events[0])["total_bytes"], 2);
  EXPECT_EQ(Json::parse(events[1])["model"]["id"], "y");
  EXPECT_EQ(events[2], "[DONE]");
}

TEST(ServerPull, AClientThatGoesStopsItUnlessItIsDetached) {
  Gate gate;
  const ModelsServer server(three(), {}, with(gate.puller()));
  Client gone(server.port());
  gone.send(order_text({{"source", "a"}, {"stream", true}}));
  ASSERT_TRUE(gone.wait_for("pulling"));
  gone.reset();
  EXPECT_TRUE(soon([&] { return gate.n_stopped == 1; }));
  const Reply left =
      post(server.port(), "/v1/models/pull", {{"source", "b"}, {"detach", true}, {"name", "x"}});
  EXPECT_EQ(left.status, 202);
  EXPECT_EQ(left.json()["status"], "pulling");
  ASSERT_TRUE(soon([&] { return gate.n_begun == 2; }));
  gate.open();
  EXPECT_TRUE(soon([&] { return server.server->service().shelf().find("x").has_value(); }));
  EXPECT_EQ(gate.n_stopped, 1);
}

TEST(ServerPull, TheEndOfTheServerStopsIt) {
  Gate gate;
  const ModelsServer server(three(), {}, with(gate.puller()));
  Client client(server.port());
  client.send(order_text({{"source", "a"}}));
  ASSERT_TRUE(soon([&] { return gate.n_begun == 1; }));
  EXPECT_TRUE(server.server->drain());
  EXPECT_EQ(gate.n_stopped, 1);
  EXPECT_EQ(client.reply().status, 499);
}

}  // namespace
}  // namespace cyb::test
