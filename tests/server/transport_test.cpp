// The same server on a Unix socket and behind TLS.
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "server/scripted_server.hpp"
#include "support/certificate.hpp"
#include "support/process.hpp"

namespace cyb::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

server::ServerOptions on_unix(const std::string& path) {
  server::ServerOptions options;
  options.http.unix_path = path;
  return options;
}

int connect_unix(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return fd;
  ::close(fd);
  return -1;
}

Script greeting() {
  return answer_after_mark({'H', 'e', 'l', 'l', 'o', kEnd});
}

TEST(ServerUnix, AnswersAndKeepsOthersOut) {
  const TemporaryFolder folder;
  const std::string path = folder.file("s.sock");
  {
    const TestServer server(greeting(), test_model(), on_unix(path));
    EXPECT_EQ(server.server->address(), "unix:" + path);
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    for (int i = 0; i < 2; ++i) {
      Client client(Client::Socket{connect_unix(path)});
      client.send(
          post_text("/v1/chat/completions",
                    R"({"stream": true, "messages": [{"role": "user", "content": "Hi"}]})"));
      EXPECT_EQ(stream_texts(client.reply()), std::vector<std::string>{"Hello"});
    }
    const auto second = server::Server::start(server.engine, on_unix(path));
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().kind(), ErrorKind::kBusy) << second.error().text();
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(ServerUnix, OldSocketsAreReplacedAndFilesAreNot) {
  const TemporaryFolder folder;
  const std::string path = folder.file("s.sock");
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ::close(fd);  // the file stays, as after a kill
  {
    const TestServer server(greeting(), test_model(), on_unix(path));
  }
  std::ofstream(path) << "precious";
  const TestServer other(greeting());
  for (const std::string& bad :
       {path, folder.file(std::string(120, 'x')), folder.file("no/s.sock")}) {
    const auto started = server::Server::start(other.engine, on_unix(bad));
    ASSERT_FALSE(started.has_value()) << bad;
    EXPECT_NE(started.error().text().find(bad), std::string::npos) << started.error().text();
  }
  EXPECT_EQ(fs::file_size(path), 8u);
}

/// One TLS connection that trusts `certificate` alone.
class TlsClient {
 public:
  TlsClient(std::uint16_t port, const std::string& certificate, int most_version = 0)
      : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_load_verify_locations(context_.get(), certificate.c_str(), nullptr);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    if (most_version != 0) SSL_CTX_set_max_proto_version(context_.get(), most_version);
    bio_.reset(BIO_new_ssl_connect(context_.get()));
    BIO_set_conn_hostname(bio_.get(), ("127.0.0.1:" + std::to_string(port)).c_str());
    connected_ = BIO_do_connect(bio_.get()) == 1;
  }
  bool connected() const { return connected_; }
  /// Everything up to the end of the stream.
  std::string ask(const std::string& text) {
    BIO_write(bio_.get(), text.data(), static_cast<int>(text.size()));
    std::string out;
    std::array<char, 4096> bytes;
    for (int n = 0; (n = BIO_read(bio_.get(), bytes.data(), bytes.size())) > 0;) {
      out.append(bytes.data(), static_cast<std::size_t>(n));
    }
    return out;
  }

 private:
  std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context_;
  std::unique_ptr<BIO, Freed<BIO_free_all>> bio_;
  bool connected_ = false;
};

class ServerTls : public ::testing::Test {
 protected:
  void SetUp() override { write_certificate(certificate_, key_); }
  server::ServerOptions options() const {
    server::ServerOptions out;
    out.http.tls_certificate = certificate_;
    out.http.tls_key = key_;
    return out;
  }
  TemporaryFolder folder_;
  std::string certificate_ = folder_.file("cert.pem"), key_ = folder_.file("key.pem");
};

TEST_F(ServerTls, StreamsAndCloses) {
  const TestServer server(greeting(), test_model(), options());
  EXPECT_TRUE(server.server->address().starts_with("https://127.0.0.1:"));
  for (int i = 0; i < 3; ++i) {
    TlsClient client(server.port(), certificate_);
    ASSERT_TRUE(client.connected());
    const std::string got =
        client.ask(post_text("/v1/chat/completions",
                             R"({"stream": true, "messages": [{"role": "user", "content": "Hi"}]})",
                             "Connection: close\r\n"));
    EXPECT_TRUE(got.starts_with("HTTP/1.1 200 OK\r\n")) << got;
    EXPECT_NE(got.find("data: [DONE]\n\n"), std::string::npos) << got;
    EXPECT_TRUE(got.ends_with("\r\n0\r\n\r\n")) << got;
  }
}

TEST_F(ServerTls, OldVersionsPlainTextAndSilenceAreCutOff) {
  server::ServerOptions quick = options();
  quick.http.header_timeout = std::chrono::milliseconds(300);
  const TestServer server(greeting(), test_model(), std::move(quick));
  EXPECT_FALSE(TlsClient(server.port(), certificate_, TLS1_1_VERSION).connected());
  Client plain(server.port());
  plain.send(get_text("/health"));
  EXPECT_TRUE(plain.ended());
  Client silent(server.port());
  EXPECT_TRUE(silent.ended());
  EXPECT_TRUE(TlsClient(server.port(), certificate_).connected());
}

TEST_F(ServerTls, BadFilesAreNamed) {
  const TestServer other(greeting());
  const std::string not_pem = folder_.file("x.pem"), second = folder_.file("second.pem");
  std::ofstream(not_pem) << "no PEM";
  write_certificate(folder_.file("unused.pem"), second);
  const auto refused = [&](const std::string& certificate, const std::string& key,
                           const std::string& named) {
    server::ServerOptions bad;
    bad.http.tls_certificate = certificate;
    bad.http.tls_key = key;
    const auto started = server::Server::start(other.engine, std::move(bad));
    ASSERT_FALSE(started.has_value());
    EXPECT_NE(started.error().text().find(named), std::string::npos) << started.error().text();
  };
  refused(not_pem, key_, "x.pem");
  refused(folder_.file("missing.pem"), key_, "missing.pem");
  refused(certificate_, not_pem, "x.pem");
  refused(certificate_, second, "second.pem");
}

}  // namespace
}  // namespace cyb::test
