// Keys are compared by their digests, all of them, without an early end.
#include "server/access.hpp"

#include <algorithm>
#include <utility>

namespace cyb::server {
namespace {

constexpr std::size_t kLeastKeyBytes = 16;

/// "[::1]:80" -> "::1"; nullopt where it is not host[:port].
std::optional<std::string_view> host_name(std::string_view authority) {
  std::string_view name = authority, port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    name = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
  } else if (const std::size_t at = authority.find(':'); at != std::string_view::npos) {
    name = authority.substr(0, at);
    port = authority.substr(at);
  }
  const bool digits = std::ranges::all_of(port.substr(port.empty() ? 0 : 1),
                                          [](char c) { return c >= '0' && c <= '9'; });
  if (name.empty() || (!port.empty() && port[0] != ':') || !digits) return std::nullopt;
  return name;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

bool same_digest(const Digest& a, const Digest& b) noexcept {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

/// The body is JSON in UTF-8, as it is.
std::optional<ApiError> check_body(const http::RequestHead& head) {
  const auto refused = [](const char* message) {
    return ApiError{415, message, "unsupported_media_type"};
  };
  for (const std::string_view coding : head.values("content-encoding")) {
    if (!http::same_name(trimmed(coding), "identity"))
      return refused("Content-Encoding is not decoded: send the body as it is.");
  }
  // A form on a web page cannot send this type.
  const auto types = head.values("content-type");
  const std::string_view value = types.size() == 1 ? types[0] : std::string_view();
  const std::size_t end = std::min(value.find(';'), value.size());
  if (!http::same_name(trimmed(value.substr(0, end)), "application/json"))
    return refused("Content-Type must be application/json.");
  std::string_view more = trimmed(value.substr(end));
  while (!more.empty()) {
    more.remove_prefix(1);  // ;
    const std::size_t next = std::min(more.find(';'), more.size());
    const std::string_view parameter = trimmed(more.substr(0, next));
    more.remove_prefix(next);
    if (parameter.size() < 8 || !http::same_name(parameter.substr(0, 8), "charset=")) continue;
    std::string_view charset = parameter.substr(8);
    if (charset.size() > 1 && charset.front() == '"' && charset.back() == '"')
      charset = charset.substr(1, charset.size() - 2);
    if (!http::same_name(charset, "utf-8") && !http::same_name(charset, "utf8"))
      return refused("The body must be UTF-8, whatever its charset says.");
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<Digest>> read_keys(std::string_view text, std::string_view path) {
  std::vector<Digest> keys;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view key = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (key.empty() || key.starts_with('#')) continue;
    const bool visible = std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7F; });
    if (key.size() < kLeastKeyBytes || !visible) {
      return fail(invalid_input(std::string(path) + ": line " + std::to_string(line) +
                                " is no key: at least 16 visible ASCII characters"));
    }
    keys.push_back(blake3(key));
  }
  if (keys.empty()) return fail(invalid_input(std::string(path) + " has no keys"));
  return keys;
}

Access::Access(AccessOptions options) {
  rules_ = std::make_shared<Rules>(Rules{options.host, {}, {}, {}});
  renew(std::move(options));
}

void Access::renew(AccessOptions options) {
  const std::lock_guard lock(mutex_);
  auto rules = std::make_shared<Rules>(
      Rules{rules_->host, std::move(options.more_hosts), {}, std::move(options.admin_keys)});
  for (const Digest& key : options.keys) {
    auto known = std::ranges::find(known_, key);
    if (known == known_.end()) known = known_.insert(known_.end(), key);
    rules->keys.emplace_back(key, static_cast<std::size_t>(known - known_.begin()) + 1);
  }
  rules_ = std::move(rules);
}

std::shared_ptr<const Access::Rules> Access::rules() const {
  const std::lock_guard lock(mutex_);
  return rules_;
}

bool Access::knows_host(const Rules& rules, std::string_view host, const http::RequestHead& head) {
  static constexpr std::string_view kLoopback[] = {"localhost", "127.0.0.1", "::1"};
  const auto same = [host](std::string_view name) { return http::same_name(name, host); };
  return std::ranges::any_of(kLoopback, same) || same(rules.host) || same(head.local_address) ||
         std::ranges::any_of(rules.more_hosts, same);
}

std::optional<ApiError> Access::check_host(const Rules& rules, const http::RequestHead& head) {
  const auto hosts = head.values("host");
  if (hosts.empty() && head.version == 10) return std::nullopt;
  if (hosts.size() != 1) return ApiError{400, "One Host header is needed.", "bad_host"};
  const auto name = host_name(hosts[0]);
  if (!name) return ApiError{400, "The Host header is malformed.", "bad_host"};
  if (knows_host(rules, *name, head)) return std::nullopt;
  return ApiError{403, "This server does not answer to that Host (serve --allow-host NAME).",
                  "host_not_allowed"};
}

std::optional<ApiError> Access::check_origin(const http::RequestHead& head) {
  for (std::string_view origin : head.values("origin")) {
    const ApiError refused{403, "Requests of other origins are not allowed.", "origin_not_allowed"};
    if (origin.starts_with("http://")) {
      origin.remove_prefix(7);
    } else if (origin.starts_with("https://")) {
      origin.remove_prefix(8);
    } else {
      return refused;
    }
    const auto hosts = head.values("host");
    // The same host and port as the request itself: a page that this server gave out.
    if (hosts.size() != 1 || !http::same_name(origin, hosts[0])) return refused;
  }
  return std::nullopt;
}

std::optional<Digest> Access::given_key(const http::RequestHead& head) {
  const auto values = head.values("authorization");
  if (values.size() != 1) return std::nullopt;
  const std::string_view value = values[0];
  if (value.size() < 7 || !http::same_name(value.substr(0, 7), "bearer ")) return std::nullopt;
  return blake3(trimmed(value.substr(7)));
}

std::size_t Access::key_number(const http::RequestHead& head) const {
  return key_number(*rules(), head);
}

std::size_t Access::key_number(const Rules& rules, const http::RequestHead& head) {
  const auto given = given_key(head);
  std::size_t number = 0;
  for (const auto& [key, own] : rules.keys) {
    if (given && same_digest(*given, key)) number = own;
  }
  return number;
}

std::optional<ApiError> Access::check_admin(const http::RequestHead& head) const {
  const auto rules = this->rules();
  if (rules->keys.empty()) return std::nullopt;
  const auto given = given_key(head);
  bool found = false;
  for (const Digest& key : rules->admin_keys) found |= given && same_digest(*given, key);
  if (found) return std::nullopt;
  return ApiError{403, "This needs an admin key (--admin-key-file).", "admin_key_required"};
}

std::optional<ApiError> Access::check_key(const http::RequestHead& head, bool open) const {
  return check_key(*rules(), head, open);
}

std::optional<ApiError> Access::check_key(const Rules& rules, const http::RequestHead& head,
                                          bool open) {
  if (open || rules.keys.empty() || key_number(rules, head) != 0) return std::nullopt;
  return ApiError{401, "A valid API key is needed: Authorization: Bearer KEY.", "invalid_api_key"};
}

std::optional<ApiError> Access::check(const http::RequestHead& head, bool open) const {
  const auto rules = this->rules();
  if (auto error = check_host(*rules, head)) return error;
  if (auto error = check_origin(head)) return error;
  if (auto error = check_key(*rules, head, open)) return error;
  return head.method == "POST" ? check_body(head) : std::nullopt;
}

}  // namespace cyb::server
