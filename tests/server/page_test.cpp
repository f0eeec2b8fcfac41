// The page's route: what each file is sent with, and what a build without the page says.
#include "server/page_files.hpp"

#include <gtest/gtest.h>

#include "server/scripted_server.hpp"

namespace cyb::test {
namespace {

using server::PageFile;
using server::page_response;

constexpr PageFile kFiles[] = {
    {"/", "text/html; charset=utf-8", "<!doctype html>", ""},
    {"/assets/index-1.js", "text/javascript; charset=utf-8", "let x = 1;", "\x1f\x8bzipped"},
    {"/assets/icon-2.svg", "image/svg+xml", "<svg/>", ""},
};

http::RequestHead get(std::string target, std::vector<http::Header> headers = {}) {
  http::RequestHead out;
  out.method = "GET";
  out.target = std::move(target);
  out.headers = std::move(headers);
  return out;
}

std::string header(const http::Response& response, std::string_view name) {
  for (const auto& one : response.headers) {
    if (http::same_name(one.name, name)) return one.value;
  }
  return "";
}

TEST(Page, FilesHaveTheirTypesAndHeaders) {
  for (const PageFile& file : kFiles) {
    const http::Response response = page_response(kFiles, get(std::string(file.path) + "?x=1"));
    EXPECT_EQ(response.status, 200u);
    EXPECT_EQ(response.content_type, file.content_type);
    EXPECT_EQ(response.body, file.body);
    const std::string policy = header(response, "Content-Security-Policy");
    for (const char* rule :
         {"default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self'",
          "img-src 'self' data:", "base-uri 'none'", "frame-ancestors 'none'"}) {
      EXPECT_NE(policy.find(rule), std::string::npos) << policy;
    }
    EXPECT_EQ(policy.find("unsafe"), std::string::npos);
    EXPECT_EQ(header(response, "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(header(response, "Cache-Control"),
              file.path == "/" ? "no-cache" : "public, max-age=31536000, immutable");
    EXPECT_EQ(header(response, "Access-Control-Allow-Origin"), "");
  }
}

TEST(Page, GzipWhereItIsTakenAndThere) {
  const auto encoding = [](const char* accept, const char* path = "/assets/index-1.js") {
    const auto response = page_response(kFiles, get(path, {{"Accept-Encoding", accept}}));
    const std::string name = header(response, "Content-Encoding");
    EXPECT_EQ(response.body.starts_with("\x1f\x8b"), name == "gzip");
    return name;
  };
  for (const char* accept : {"gzip", "deflate, GZIP;q=0.5", "br;q=1,gzip ; q=0.001"}) {
    EXPECT_EQ(encoding(accept), "gzip") << accept;
  }
  for (const char* accept : {"", "br", "gzip;q=0", "gzip; q=0.000", "xgzip", ",;,", "identity"}) {
    EXPECT_EQ(encoding(accept), "") << accept;
  }
  EXPECT_EQ(encoding("gzip", "/"), "");
  EXPECT_EQ(header(page_response(kFiles, get("/assets/index-1.js")), "Vary"), "Accept-Encoding");
}

TEST(Page, WhatIsNotThere) {
  for (const char* path : {"/assets/other.js", "/assets/../index.html", "/assets/", "/assets"}) {
    EXPECT_EQ(page_response(kFiles, get(path)).status, 404u) << path;
  }
  const http::Response none = page_response({}, get("/"));
  EXPECT_EQ(none.status, 501u);
  EXPECT_NE(none.body.find("page_not_built"), std::string::npos);
  EXPECT_NE(none.body.find("make web"), std::string::npos);
  EXPECT_EQ(page_response({}, get("/assets/index-1.js")).status, 404u);
}

// Whatever this build has: through the server, open without a key, behind the rules of Host and Origin.
TEST(Page, IsServedByThisBuild) {
  server::ServerOptions options;
  options.service.access.keys = {blake3("sixteen-characters")};
  const TestServer server({}, test_model(), std::move(options));
  const std::uint16_t port = server.port();
  // Without a key only the page itself says what is there.
  EXPECT_EQ(ask(port, get_text("/v1/models")).status, 401);
  EXPECT_EQ(ask(port, get_text("/assets/none.js")).code(), "not_found");
  EXPECT_EQ(ask(port, get_text("/index.html")).status, 401);
  EXPECT_EQ(ask(port, post_text("/", "{}")).status, 401);
  EXPECT_EQ(ask(port, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 403);
  EXPECT_EQ(ask(port, get_text("/", "Origin: http://evil.example\r\n")).status, 403);
  const auto files = server::page_files();
  const Reply index = ask(port, get_text("/"));
  if (files.empty()) {
    EXPECT_EQ(index.status, 501);
    EXPECT_EQ(index.code(), "page_not_built");
    return;
  }
  for (const PageFile& file : files) {
    const Reply reply = ask(port, get_text(std::string(file.path)));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, file.body);
    if (file.path == "/") continue;
    EXPECT_NE(index.body.find(file.path), std::string::npos) << file.path;
  }
  EXPECT_EQ(index.body.find("://"), std::string::npos);  // nothing of another host
  Client client(port);
  client.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Reply head = client.reply(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_NE(head.head.find("Content-Length: " + std::to_string(index.body.size())),
            std::string::npos);
}

}  // namespace
}  // namespace cyb::test
