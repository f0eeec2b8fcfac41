// The grammar of SOURCE.
#include "api/pull/pull_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "net/net_error.hpp"

namespace cyb::api {
namespace {

constexpr std::size_t kMaxPart = 96;
constexpr std::size_t kMaxServerName = 512;
constexpr std::string_view kForms =
    "write ORG/NAME, ORG/NAME:FILE, ORG/NAME@REVISION, an https:// address of a file or "
    "cyb://HOST/NAME of another server";

bool is_part(std::string_view text, std::string_view more) {
  const auto plain = [&](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           more.find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kMaxPart && std::ranges::all_of(text, plain) &&
         text.front() != '.' && text.front() != '-' && text.find("..") == std::string_view::npos;
}

Result<PullSource> parse_address(std::string_view text) {
  PullSource out;
  CYB_ASSIGN(out.url, net::parse_url(text));
  const std::string& path = out.url->path;
  if (is_pickle_name(path))
    return fail(net::net_error(
        net::kPickle, fmt::format("{} is a pickle file, which is never read", out.url->shown())));
  for (const std::string_view end : {".gguf", ".model", ".safetensors", ".onnx"})
    if (path.ends_with(end)) return out;
  return fail(invalid_input(fmt::format(
      "{} does not end in .gguf, .model, .safetensors or .onnx; a repository of a hub is ORG/NAME",
      out.url->shown())));
}

/// HOST[:PORT]/NAME behind the scheme; `tls` not stated: everywhere but on this machine.
Result<PullSource> parse_server(std::string_view text, std::optional<bool> tls) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const std::string host(text.substr(0, slash));
  const bool has_port = host.rfind(':') != std::string::npos &&
                        (host.rfind(']') == std::string::npos || host.rfind(']') < host.rfind(':'));
  auto url = net::parse_url("https://" + host + (has_port ? "/" : ":8080/"));
  if (!url || url->path != "/" || host.find_first_of("?#@%\\") != std::string::npos)
    return fail(invalid_input(fmt::format("\"{}\" is no HOST or HOST:PORT", host.substr(0, 200))));
  ServerSource out;
  const bool secure = tls.value_or(!url->is_loopback());
  out.base = fmt::format("{}://{}:{}", secure ? "https" : "http", url->host, url->port);
  out.name = net::unescape_url(text.substr(std::min(slash + 1, text.size())));
  if (out.name.size() > kMaxServerName) return fail(invalid_input("the model's name is too long"));
  return PullSource{.hub = {}, .server = std::move(out), .url = {}};
}

}  // namespace

bool is_pickle_name(std::string_view name) {
  constexpr std::array<std::string_view, 6> kEndings = {".bin",  ".pt",  ".pth",
                                                        ".ckpt", ".pkl", ".pickle"};
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return name.ends_with(end); });
}

Result<PullSource> parse_pull_source(std::string_view text) {
  constexpr std::string_view kServer = "cyb://", kPlain = "cyb+http://", kTls = "cyb+https://";
  if (text.starts_with(kServer)) return parse_server(text.substr(kServer.size()), {});
  if (text.starts_with(kPlain)) return parse_server(text.substr(kPlain.size()), false);
  if (text.starts_with(kTls)) return parse_server(text.substr(kTls.size()), true);
  if (text.find("://") != std::string_view::npos) return parse_address(text);
  HubSource hub;
  std::string_view left = text.substr(0, text.find(':'));
  if (left.size() < text.size()) {
    hub.wanted = text.substr(left.size() + 1);
    if (hub.wanted.empty()) return fail(invalid_input("nothing stands behind the colon"));
  }
  const std::size_t at = left.find('@');
  if (at != std::string_view::npos) {
    hub.revision = left.substr(at + 1);
    left = left.substr(0, at);
    if (!is_part(hub.revision, "._-/"))
      return fail(invalid_input(fmt::format("\"{}\" is no revision", hub.revision)));
  }
  const std::size_t slash = left.find('/');
  if (slash == std::string_view::npos || !is_part(left.substr(0, slash), "._-") ||
      !is_part(left.substr(slash + 1), "._-"))
    return fail(invalid_input(fmt::format("\"{}\" is no source: {}", text.substr(0, 200), kForms)));
  if (is_pickle_name(hub.wanted))
    return fail(net::net_error(
        net::kPickle, fmt::format("{} is a pickle file, which is never read", hub.wanted)));
  hub.repository = left;
  return PullSource{.hub = std::move(hub), .server = {}, .url = {}};
}

}  // namespace cyb::api
