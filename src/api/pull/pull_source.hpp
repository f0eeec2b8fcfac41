// What `cyb-llm pull` is told to fetch: a repository of a hub, or one address.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "net/url.hpp"

namespace cyb::api {

struct HubSource {
  std::string repository;         // ORG/NAME
  std::string revision = "main";  // branch, tag or commit
  std::string wanted;  // a file, part of a file's name, or a pattern with * and ?; "": the model
};

struct ServerSource {
  std::string base;  // http or https, host and port, without a '/' behind it
  std::string name;  // of a model there, or its content id
};

struct PullSource {
  std::optional<HubSource> hub;
  std::optional<ServerSource> server;
  std::optional<net::Url> url;
};

/// ORG/NAME[@REV][:FILE], or an address that ends in .gguf, .model, .safetensors or .onnx, or
/// cyb://HOST[:PORT]/NAME: a model of another server, by TLS unless HOST is this machine
/// (cyb+http:// and cyb+https:// say it; the port is 8080). Errors: InvalidInput; N11 for a pickle.
Result<PullSource> parse_pull_source(std::string_view text);

/// .bin, .pt, .pth, .ckpt, .pkl, .pickle.
bool is_pickle_name(std::string_view name);

}  // namespace cyb::api
