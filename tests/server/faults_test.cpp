// Clients that go, read slowly, send slowly or stop sending: only their own request is touched, and
// nothing stays behind.
#include <gtest/gtest.h>
#include <sys/un.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "server/scripted_server.hpp"
#include "support/process.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

std::size_t open_files() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

std::size_t resident_kib() {
  std::ifstream file("/proc/self/statm");
  std::size_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 1024;
}

/// Lets the engine's runs go one by one.
class Gate {
 public:
  Result<void> pass() {
    std::unique_lock lock(mutex_);
    ++n_come_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return n_let_ >= n_come_; });
    return {};
  }
  void let(std::uint64_t n) {
    const std::lock_guard lock(mutex_);
    n_let_ += n;
    changed_.notify_all();
  }
  std::uint64_t n_come() {
    const std::lock_guard lock(mutex_);
    return n_come_;
  }
  /// Run `n` stands at the gate.
  bool at(std::uint64_t n) {
    return soon([&] { return n_come() == n; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t n_come_ = 0, n_let_ = 0;
};

struct GatedServer {
  std::shared_ptr<Gate> gate = std::make_shared<Gate>();
  TestServer server;
  explicit GatedServer(std::uint32_t slots)
      : server(script(gate), test_model(true, 2048), options(slots)) {}
  ~GatedServer() { gate->let(UINT32_MAX); }
  static Script script(const std::shared_ptr<Gate>& gate) {
    Script out = answer_after_mark({'x'});
    out.before_run = [gate](const StepParams&) { return gate->pass(); };
    return out;
  }
  static server::ServerOptions options(std::uint32_t slots) {
    server::ServerOptions out;
    out.service.scheduler.max_running = slots;
    return out;
  }
  bool over(std::uint64_t n_cancelled) const {
    return soon([&] {
      const SchedulerStats stats = server.stats();
      return stats.cancelled == n_cancelled && stats.running == 0 && stats.waiting == 0;
    });
  }
};

const std::string kWhole = post_text("/v1/completions", R"({"prompt":"a>"})");
const std::string kStream = post_text("/v1/completions", R"({"prompt":"a>","stream":true})");
const std::string kLong =
    post_text("/v1/completions", Json{{"prompt", std::string(1500, 'a') + ">"}}.dump());

// V05: the run that is under way when the client goes is the last one.
TEST(ServerFaults, TheNextStepBoundaryFreesTheSlot) {
  GatedServer gated(2);
  std::uint64_t n_cancelled = 0, run = 1;
  for (const std::string& request : {kWhole, kLong}) {
    for (const bool reset : {false, true}) {
      const std::size_t files = open_files();
      Client client(gated.server.port());
      client.send(request);
      ASSERT_TRUE(gated.gate->at(run));
      gated.gate->let(1);
      ASSERT_TRUE(gated.gate->at(++run));  // a token, or a part of the prompt, later
      reset ? client.reset() : client.close();
      ASSERT_TRUE(soon([&] { return open_files() == files; })) << "the server has not seen it";
      ::usleep(20000);
      gated.gate->let(1);
      EXPECT_TRUE(gated.over(++n_cancelled)) << reset;
      EXPECT_EQ(gated.gate->n_come(), run) << "a run after the one that was under way";
      ++run;
    }
  }
}

// A stream's client that closes in good order is told from one that only reads by the next chunk.
TEST(ServerFaults, AStreamEndsOneChunkAfterItsClient) {
  GatedServer gated(2);
  const std::size_t files = open_files();
  Client client(gated.server.port());
  client.send(kStream);
  ASSERT_TRUE(gated.gate->at(1));
  gated.gate->let(1);
  ASSERT_TRUE(client.wait_for("data: "));
  ASSERT_TRUE(gated.gate->at(2));
  client.close();
  ::usleep(20000);
  gated.gate->let(1);
  ASSERT_TRUE(soon([&] { return open_files() == files; }));
  ::usleep(20000);
  gated.gate->let(1);
  EXPECT_TRUE(gated.over(1));
  EXPECT_LE(gated.gate->n_come(), 3u);
}

TEST(ServerFaults, QueuedRequestsOfGoneClientsLeaveTheQueueAtTheNextStep) {
  GatedServer gated(1);
  Client running(gated.server.port());
  running.send(kWhole);
  ASSERT_TRUE(gated.gate->at(1));
  const std::size_t files = open_files();
  Client queued(gated.server.port());
  queued.send(kWhole);
  ASSERT_TRUE(soon([&] { return open_files() == files + 2; }));
  ::usleep(50000);
  queued.close();
  ASSERT_TRUE(soon([&] { return open_files() == files; }));
  ::usleep(20000);
  gated.gate->let(2);  // the counters are those after the next run
  EXPECT_TRUE(soon([&] { return gated.server.stats().cancelled == 1; }));
  EXPECT_EQ(gated.server.stats().waiting, 0u);
  EXPECT_EQ(gated.server.stats().running, 1u);
}

/// Clients that go at every stage, `n` of them; nothing grows.
class Killer {
 public:
  Killer() : server_(slow(answer_after_mark({'x'}), 1), test_model(true, 2048), options()) {}

  void kill(std::size_t n) {
    const std::size_t each = n / 5;
    Client holder(server_.port());
    holder.send(post_text("/v1/completions", R"({"prompt":"a>","n":2})"));
    ASSERT_TRUE(soon([&] { return server_.stats().running == 2; }));
    for (std::size_t i = 0; i < each; ++i) {
      kill_one(i, kStream, [&](Client&) { return server_.stats().waiting == 1; });
    }
    holder.close();
    ASSERT_TRUE(gone(0));
    const auto runs = [&](Client&) { return server_.stats().running == 1; };
    for (std::size_t i = 0; i < each; ++i) {
      kill_one(i, kLong, runs);                                                // prefill
      kill_one(i, kStream, runs);                                              // decode
      kill_one(i, kStream, [](Client& c) { return c.wait_for("\n\n\r\n"); });  // after a chunk
      kill_one(i, kWhole, runs);
    }
  }
  void expect_flat(std::size_t n) {
    kill(n / 5);  // what is kept for reuse is made now
    const std::size_t files = open_files();
    [[maybe_unused]] const std::size_t kib = resident_kib();
    kill(n);
    EXPECT_TRUE(soon([&] { return open_files() <= files; })) << open_files() << " " << files;
#if !defined(__SANITIZE_ADDRESS__)  // which keeps what is freed
    EXPECT_LT(resident_kib(), kib + 4096) << "KiB";
#endif
    EXPECT_EQ(server_.stats().finished + server_.stats().failed + server_.stats().refused, 0u);
    EXPECT_EQ(server_.complete({{"max_tokens", 2}}).json()["choices"][0]["text"], "xx");
  }

 private:
  static server::ServerOptions options() {
    server::ServerOptions out;
    out.service.scheduler.max_running = 2;
    return out;
  }
  bool gone(std::uint32_t running) {
    ++n_cancelled_;
    return soon([&] {
      const SchedulerStats stats = server_.stats();
      return stats.cancelled == n_cancelled_ && stats.running == running && stats.waiting == 0;
    });
  }
  template <class Ready>
  void kill_one(std::size_t i, const std::string& request, const Ready& ready) {
    const std::uint32_t others = server_.stats().running;
    Client client(server_.port());
    client.send(request);
    ASSERT_TRUE(soon([&] { return ready(client); }));
    i % 2 == 0 ? client.close() : client.reset();
    ASSERT_TRUE(gone(others)) << i;
  }

  TestServer server_;
  std::uint64_t n_cancelled_ = 0;
};

TEST(ServerFaults, SixtyKilledClientsLeaveNothing) {
  Killer().expect_flat(60);
}

TEST(SlowServerFaults, FiveHundredKilledClientsLeaveNothing) {
  Killer().expect_flat(500);
}

TEST(ServerFaults, HalfClosedClientsGetTheWholeAnswer) {
  server::ServerOptions options;
  options.service.scheduler.max_running = 1;
  const TestServer server(slow(answer_after_mark({'x'}), 2), test_model(), std::move(options));
  const std::string text(40, 'x');
  const Json body = {{"prompt", "a>"}, {"max_tokens", 40}};
  Client whole(server.port());
  whole.send(post_text("/v1/completions", body.dump()));
  whole.close_sending();  // with the request
  Client queued(server.port());
  queued.send(post_text("/v1/completions", body.dump()));
  queued.close_sending();
  EXPECT_EQ(whole.final_reply().json()["choices"][0]["text"], text);
  EXPECT_EQ(queued.final_reply().json()["choices"][0]["text"], text);
  EXPECT_TRUE(whole.ended());
  Json streamed = body;
  streamed["stream"] = true;
  Client stream(server.port());
  stream.send(post_text("/v1/completions", streamed.dump()));
  ASSERT_TRUE(stream.wait_for("data: "));
  stream.close_sending();
  EXPECT_EQ(stream_texts(stream.final_reply())[0], text);
  Client early(server.port());
  early.send(post_text("/v1/completions", streamed.dump()) + get_text("/health"));
  early.close_sending();  // and what stands behind it is answered too
  EXPECT_EQ(stream_texts(early.final_reply())[0], text);
  EXPECT_EQ(early.final_reply().json()["status"], "ok");
  EXPECT_TRUE(early.ended());
  EXPECT_EQ(server.stats().cancelled, 0u);
}

TEST(ServerFaults, AUnixSocketTellsGoneFromHalfClosed) {
  const TemporaryFolder folder;
  server::ServerOptions options;
  options.http.unix_path = folder.file("s");
  const TestServer server(slow(answer_after_mark({'x'}), 2), test_model(), std::move(options));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  folder.file("s").copy(address.sun_path, sizeof(address.sun_path) - 1);
  const auto connect = [&] {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return Client::Socket{fd};
  };
  Client half(connect());
  half.send(post_text("/v1/completions", R"({"prompt":"a>","max_tokens":9})"));
  half.close_sending();
  EXPECT_EQ(half.final_reply().json()["choices"][0]["text"], "xxxxxxxxx");
  Client gone(connect());
  gone.send(kWhole);
  ASSERT_TRUE(soon([&] { return server.stats().running == 1; }));
  gone.close();
  EXPECT_TRUE(soon([&] { return server.stats().cancelled == 1; }));
}

TEST(ServerFaults, ReadersThatDoNotKeepUpAreCutOffAndOthersAreNot) {
  server::ServerOptions options;
  options.http.send_buffer_bytes = 4096;
  options.http.max_pending_bytes = 16384;
  const TestServer server(slow(answer_after_mark({'x'}), 1), test_model(true, 2048),
                          std::move(options));
  const std::string request =
      post_text("/v1/completions", R"({"prompt":"a>","stream":true,"max_tokens":600})");
  Client silent(server.port(), 2048), drop(server.port(), 2048);
  silent.send(request);
  drop.send(request);
  std::jthread reader([&](const std::stop_token& stop) {  // a few bytes a second
    for (std::size_t n = 1; !stop.stop_requested() && drop.read_exactly(n); n = 1) ::usleep(100000);
  });
  Client good(server.port());
  good.send(request);
  EXPECT_EQ(stream_texts(good.reply())[0], std::string(600, 'x'));
  EXPECT_TRUE(soon([&] { return server.stats().cancelled == 2; }));
  EXPECT_EQ(server.stats().finished, 1u);
  reader.request_stop();
}

/// Heads and bodies that come byte by byte: cut off by the time of the whole, not by silence.
TEST(ServerFaults, DrippingRequestsAreCutOffAndOthersAreAnswered) {
  server::ServerOptions options;
  options.http.header_timeout = options.http.body_timeout = milliseconds(400);
  const TestServer server(answer_after_mark({'o', 'k', kEnd}), test_model(), std::move(options));
  const std::string text = post_text("/v1/completions", R"({"prompt":"a>","user":"0123456789"})");
  const std::size_t head = text.find("\r\n\r\n") + 4;
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < 32; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    clients.back()->send(text.substr(0, i % 2 == 0 ? 10 : head));
  }
  const auto began = std::chrono::steady_clock::now();
  for (std::size_t at = 0; std::chrono::steady_clock::now() - began < milliseconds(700); ++at) {
    for (std::size_t i = 0; i < 32; ++i) {
      if (const std::size_t from = (i % 2 == 0 ? 10 : head) + at; from + 1 < text.size()) {
        clients[i]->send(text.substr(from, 1));
      }
    }
    EXPECT_EQ(server.complete({}).status, 200);
    ::usleep(30000);
  }
  for (const auto& client : clients) {
    EXPECT_EQ(client->reply().status, 408);
    EXPECT_TRUE(client->ended(5000));
  }
  clients.clear();
  EXPECT_TRUE(soon([&] { return server.server->service().n_connections() == 0; }));
  EXPECT_EQ(server.stats().submitted, server.stats().finished);
}

}  // namespace
}  // namespace cyb::test
