// GET /v1/registry/models; files at /v1/registry/blobs/DIGEST: an address never means other bytes.
#include "api/pull/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/transfer_limits.hpp"
#include "base/utf8.hpp"
#include "import/json_strict.hpp"
#include "net/net_error.hpp"

namespace cyb::api {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxNameBytes = 512, kMaxListed = 20, kMaxSaidBytes = 300;

Error bad(std::string_view what) {
  return net::net_error(net::kMetadata, fmt::format("the server's list of models: {}", what));
}

const std::string* text_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get_ptr<const std::string*>() : nullptr;
}

bool is_clean(std::string_view text) {
  const bool visible = std::ranges::all_of(
      text, [](char c) { return static_cast<unsigned char>(c) >= ' ' && c != '\x7f'; });
  return visible && utf8_find_invalid(text) == std::string_view::npos;
}

Result<RegistryFile> read_file(const Json& entry) {
  const std::string* name = entry.is_object() ? text_of(entry, "name") : nullptr;
  if (name == nullptr || name->empty() || name->size() > kMaxNameBytes || !is_clean(*name))
    return fail(bad("an entry without a name"));
  const std::string* id = text_of(entry, "model_id");
  const std::string* digest = text_of(entry, "digest");
  const auto file_id = digest == nullptr ? std::nullopt : parse_digest(*digest);
  const auto model_id = id == nullptr ? std::nullopt : parse_digest(*id);
  if (!file_id || !model_id)
    return fail(bad(fmt::format("{} has no model_id or no digest", json_quote(*name))));
  const auto size = entry.find("size_bytes");
  if (size == entry.end() || !size->is_number_unsigned() ||
      size->get<std::uint64_t>() > kMaxDownloadBytes)
    return fail(bad(fmt::format("{}: its size is no number from 0 to {}", json_quote(*name),
                                kMaxDownloadBytes)));
  return RegistryFile{*name, digest_text(*model_id), *file_id, size->get<std::uint64_t>()};
}

/// What an answer with an error says itself, or "".
std::string said(std::string_view body) {
  const auto json = parse_json(body, "");
  if (!json || !json->is_object()) return {};
  const auto error = json->find("error");
  const std::string* message =
      error != json->end() && error->is_object() ? text_of(*error, "message") : nullptr;
  return message != nullptr && is_clean(*message) && message->size() <= kMaxSaidBytes ? *message
                                                                                      : "";
}

Error refusal(const net::HttpHead& head, std::string_view body) {
  std::string_view hint = "is it a cyb-llm server that shares its models (serve --share-models)?";
  if (head.status == 401) hint = "its key is missing or wrong: --token-file FILE, or CYB_TOKEN";
  if (head.status == 403) hint = "ask who runs it";
  if (head.status >= 500) hint = "try again later";
  const std::string text = said(body);
  return net::net_error(net::kStatus,
                        fmt::format("{}: the server answers {}{} ({})", head.url.shown(),
                                    head.status, text.empty() ? "" : ": " + text, hint))
      .with("status", std::to_string(head.status));
}

}  // namespace

Result<std::vector<RegistryFile>> parse_registry(std::string_view text) {
  CYB_ASSIGN(const Json answer, parse_json(text, "the server's list of models"));
  const auto data = answer.is_object() ? answer.find("data") : answer.end();
  if (!answer.is_object() || data == answer.end() || !data->is_array())
    return fail(bad("it has no data"));
  if (data->size() > kMaxHubFiles)
    return fail(bad(fmt::format("more than {} models", kMaxHubFiles)));
  std::vector<RegistryFile> out;
  for (const Json& entry : *data) {
    CYB_ASSIGN(RegistryFile file, read_file(entry));
    out.push_back(std::move(file));
  }
  return out;
}

Result<std::vector<RegistryFile>> list_registry(const ServerSource& source,
                                                const net::HttpOptions& http,
                                                std::stop_token stop) {
  CYB_ASSIGN(net::Connection connection, net::Connection::create(http));
  CYB_ASSIGN(const net::Url url, net::parse_url(source.base + "/v1/registry/models"));
  std::string body;
  net::HttpReceiver receiver;
  receiver.head = [](const net::HttpHead&) { return Result<bool>(true); };
  receiver.body = [&](std::span<const std::byte> bytes) -> Result<void> {
    if (bytes.size() > kMaxHubBytes - body.size())
      return fail(net::net_error(net::kLies,
                                 fmt::format("{}: more than {} bytes", url.shown(), kMaxHubBytes)));
    body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  };
  CYB_ASSIGN(const net::HttpHead head,
             connection.get({.url = url, .range = {}, .if_range = {}}, receiver, stop));
  if (head.status != 200) return fail(refusal(head, body));
  return parse_registry(body);
}

Result<RegistryFile> choose_file(const std::vector<RegistryFile>& files,
                                 const ServerSource& source) {
  const auto by_name = std::ranges::find(files, source.name, &RegistryFile::name);
  if (by_name != files.end()) return *by_name;
  const auto by_id = std::ranges::find(files, source.name, &RegistryFile::model_id);
  if (by_id != files.end()) return *by_id;
  std::string list;
  for (std::size_t i = 0; i < std::min(files.size(), kMaxListed); ++i)
    list += fmt::format("\n  {}  {:.1f} MiB", files[i].name,
                        static_cast<double>(files[i].size) / 1048576.0);
  if (files.size() > kMaxListed) list += fmt::format("\n  and {} more", files.size() - kMaxListed);
  return fail(net::net_error(
      net::kChoice,
      fmt::format("{} shares no model \"{}\"; {}{}", source.base, source.name,
                  files.empty() ? "it shares none that it has opened (adapters are not shared)"
                                : "it shares:",
                  list)));
}

Result<net::Url> file_url(const ServerSource& source, const RegistryFile& file) {
  return net::parse_url(source.base + "/v1/registry/blobs/" + digest_text(file.digest));
}

}  // namespace cyb::api
