// The files of served models, offered for download.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "server/models_server.hpp"
#include "support/process.hpp"

namespace cyb::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string read_all(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(stream)), {});
}

/// A model file of its own in a folder, behind a server.
class ServerRegistry : public testing::Test {
 protected:
  /// `n_tokens` make it large.
  void start(server::ServerOptions options = {}, int n_tokens = 0, bool shared = true) {
    TextModelOptions model = test_model();
    for (int i = 0; i < n_tokens; ++i) model.tokens.push_back({"token " + std::to_string(i)});
    fs::copy_file(text_model(model)->path(), path_);
    bytes_ = read_all(path_);
    options.service.share_models = shared;
    ShelfModel file = scripted("m", says("hello"));
    file.open = [path = path_](const std::stop_token&, const ShelfModel::Progress&) {
      return Model::open(path);
    };
    std::vector<ShelfModel> models;
    models.push_back(std::move(file));
    models.push_back(scripted("m:adapter"));
    models[1].parent = "m";
    models[1].open = models[0].open;
    models.push_back(scripted("unopened"));
    server_ = std::make_unique<ModelsServer>(std::move(models), ShelfOptions{}, std::move(options));
    CYB_EXPECT_OK(server_->server->service().shelf().describe(0));
    CYB_EXPECT_OK(server_->server->service().shelf().describe(1));
  }
  Reply get(const std::string& path, const std::string& headers = "") const {
    return ask(server_->port(), get_text(path, headers));
  }
  Json list() const { return get("/v1/registry/models").json()["data"]; }
  std::string blob() const {
    return "/v1/registry/blobs/" + list()[0]["digest"].get<std::string>();
  }

  TemporaryFolder folder_;
  std::string path_ = folder_.file("m.model"), bytes_;
  std::unique_ptr<ModelsServer> server_;
};

TEST_F(ServerRegistry, SharesNothingUnlessItIsAsked) {
  start({}, 0, false);
  for (const char* path : {"/v1/registry/models", "/v1/registry/blobs/x"}) {
    EXPECT_EQ(get(path).status, 403);
    EXPECT_EQ(get(path).code(), "sharing_off");
  }
}

TEST_F(ServerRegistry, ListsFilesAndSendsThemOrRangesOfThem) {
  start();
  const Json files = list();
  ASSERT_EQ(files.size(), 1u) << files;  // an adapter has no .model, the third is not open
  EXPECT_EQ(files[0]["name"], "m");
  EXPECT_EQ(files[0]["size_bytes"], bytes_.size());
  EXPECT_EQ(files[0]["digest"], digest_text(blake3(bytes_)));
  EXPECT_EQ(files[0]["model_id"], get("/v1/models/m").json()["model_id"]);
  const std::string path = blob(), etag = '"' + files[0]["digest"].get<std::string>() + '"';
  const Reply whole = get(path);
  EXPECT_EQ(whole.status, 200);
  EXPECT_TRUE(whole.body == bytes_);
  EXPECT_NE(whole.head.find("ETag: " + etag), std::string::npos) << whole.head;
  const std::size_t size = bytes_.size();
  struct Case {
    std::string range, more;
    int status;
    std::size_t first, n;
  };
  const std::vector<Case> cases = {
      {"bytes=0-0", "", 206, 0, 1},
      {"bytes=5-99", "", 206, 5, 95},
      {"bytes=" + std::to_string(size - 7) + "-", "", 206, size - 7, 7},
      {"Bytes=-9", "", 206, size - 9, 9},
      {"bytes=-99999999999999999999", "", 206, 0, size},
      {"bytes=3-99999999999999999999", "", 206, 3, size - 3},
      {"bytes=1-2", "If-Range: " + etag + "\r\n", 206, 1, 2},
      {"bytes=1-2", "If-Range: \"another\"\r\n", 200, 0, size},
      {"bytes=1-2", "If-Range: W/" + etag + "\r\n", 200, 0, size},
      {"bytes=0-1,5-6", "", 200, 0, size},
      {"bytes=9-1", "", 200, 0, size},
      {"bytes=+1-2", "", 200, 0, size},
      {"bytes=-", "", 200, 0, size},
      {"lines=1-2", "", 200, 0, size},
  };
  for (const Case& one : cases) {
    const Reply reply = get(path, "Range: " + one.range + "\r\n" + one.more);
    EXPECT_EQ(reply.status, one.status) << one.range;
    EXPECT_TRUE(reply.body == bytes_.substr(one.first, one.n)) << one.range;
    if (one.status != 206) continue;
    const std::string said = "Content-Range: bytes " + std::to_string(one.first) + "-" +
                             std::to_string(one.first + one.n - 1) + "/" + std::to_string(size);
    EXPECT_NE(reply.head.find(said), std::string::npos) << reply.head;
  }
  for (const std::string& none : {"bytes=" + std::to_string(size) + "-", std::string("bytes=-0")}) {
    const Reply reply = get(path, "Range: " + none + "\r\n");
    EXPECT_EQ(reply.status, 416) << none;
    EXPECT_EQ(reply.code(), "range_not_satisfiable");
    EXPECT_NE(reply.head.find("Content-Range: bytes */" + std::to_string(size)), std::string::npos);
  }
  Client kept(server_->port());
  kept.send("HEAD " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Reply head = kept.reply(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_NE(head.head.find("Content-Length: " + std::to_string(size)), std::string::npos);
  kept.send(get_text(path, "Range: bytes=2-4\r\n"));  // the connection goes on
  EXPECT_EQ(kept.reply().body, bytes_.substr(2, 3));
}

TEST_F(ServerRegistry, NothingButServedFilesIsSent) {
  start();
  std::ofstream(folder_.file("other.model")) << bytes_ << "x";
  const std::string other = digest_text(blake3(bytes_ + "x"));
  for (const std::string& name :
       {other, std::string("../m.model"), std::string("..%2f..%2fetc%2fpasswd"), path_,
        std::string("m"), std::string(5000, 'a'), digest_text(Digest{})}) {
    const Reply reply = get("/v1/registry/blobs/" + name);
    EXPECT_EQ(reply.status, 404) << name.substr(0, 99);
    EXPECT_EQ(reply.code(), "file_not_shared");
  }
  EXPECT_EQ(ask(server_->port(), post_text(blob(), "{}")).status, 405);
}

TEST_F(ServerRegistry, KeysHostsAndOriginsAreAsked) {
  server::ServerOptions options;
  const std::string key = "0123456789abcdef", head = "Authorization: Bearer " + key + "\r\n";
  options.service.access.keys = value(server::read_keys(key, "f"));
  start(std::move(options));
  EXPECT_EQ(get("/v1/registry/models").status, 401);
  const Reply listed = get("/v1/registry/models", head);
  EXPECT_EQ(listed.status, 200);
  const std::string path =
      "/v1/registry/blobs/" + listed.json()["data"][0]["digest"].get<std::string>();
  EXPECT_EQ(get(path).status, 401);
  EXPECT_EQ(get(path, head + "Origin: http://evil.example\r\n").code(), "origin_not_allowed");
  EXPECT_EQ(
      ask(server_->port(), "GET " + path + " HTTP/1.1\r\nHost: evil.example\r\n" + head + "\r\n")
          .code(),
      "host_not_allowed");
  EXPECT_TRUE(get(path, head).body == bytes_);
}

TEST_F(ServerRegistry, AFileThatChangesIsCutOffAndOfferedNoMore) {
  server::ServerOptions options;
  options.http.send_buffer_bytes = 4096;
  start(std::move(options), 20000);
  const std::string path = blob();
  Client slow(server_->port(), 4096);
  slow.send(get_text(path));
  ASSERT_TRUE(slow.wait_for("\r\n\r\n"));
  fs::last_write_time(path_, fs::file_time_type::clock::now());  // the same bytes
  EXPECT_TRUE(slow.ended());
  EXPECT_FALSE(slow.wait_for(bytes_.substr(bytes_.size() - 64), 100));
  EXPECT_TRUE(get(path).body == bytes_);  // read again, and it is the same
  std::ofstream(path_, std::ios::app) << "x";
  EXPECT_EQ(get(path).code(), "file_not_shared");
  fs::remove(path_);
  fs::copy_file(text_model(test_model())->path(), path_);  // a model, but not the served one
  EXPECT_TRUE(list().empty());
}

TEST_F(ServerRegistry, ReadersThatDoNotReadCostNoAnswerAndAreBounded) {
  server::ServerOptions options;
  options.http.send_buffer_bytes = 4096;
  start(std::move(options), 20000);
  const std::string path = blob();
  std::vector<std::unique_ptr<Client>> readers;
  for (std::uint64_t i = 0; i < kMaxModelDownloads; ++i) {
    readers.push_back(std::make_unique<Client>(server_->port(), 4096));
    readers.back()->send(get_text(path));
    ASSERT_TRUE(readers.back()->wait_for("\r\n\r\n"));
  }
  const Reply refused = get(path);
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.code(), "too_many_downloads");
  EXPECT_NE(refused.head.find("Retry-After: 1"), std::string::npos);
  EXPECT_EQ(server_->text_of("m"), "hello");
  readers.back().reset();
  EXPECT_TRUE(soon([&] { return get(path, "Range: bytes=0-9\r\n").status == 206; }));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(server_->server->drain());
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(10));
  EXPECT_TRUE(readers.front()->ended());
}

}  // namespace
}  // namespace cyb::test
