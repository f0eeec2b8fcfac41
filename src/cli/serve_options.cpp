#include "cli/serve_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "api/version.hpp"
#include "cli/text_input.hpp"
#include "cli/usage.hpp"
#include "server/model_wait.hpp"

namespace cyb::cli {
namespace {

constexpr std::uint64_t kMaxSlots = 256, kMaxQueue = 65536;

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

/// NAME=REST of what is no path itself.
std::optional<std::pair<std::string, std::string>> cut_name(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || exists(text)) return std::nullopt;
  std::string name = text.substr(0, equals);
  if (name.find('/') != std::string::npos) return std::nullopt;
  return std::pair(std::move(name), text.substr(equals + 1));
}

/// What clients can write and what has no other meaning here.
bool is_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 128 && std::ranges::all_of(name, [](char c) {
    return c > ' ' && c < 0x7F && std::string_view("/:=").find(c) == std::string_view::npos;
  });
}

Result<void> check_name(std::string_view name, std::string_view option) {
  if (is_name(name)) return {};
  return fail(usage_error(
      fmt::format("{}: \"{}\" is no name: 1 to 128 visible characters but / : =", option, name)));
}

}  // namespace

void ServeOptions::declare(Options& options) {
  options.texts(
      "MODEL", models, "",
      "A .model, a GGUF or ONNX file or a Hugging Face folder, or a name or id in the "
      "store; NAME=MODEL says what clients call it. Of several the first answers requests "
      "that name none");
  options.flag("--openapi", openapi, "Print the OpenAPI file of the server and end");
  options.optional_text("--config", config, "FILE",
                        "TOML with these options by their names; SIGHUP reads it again");
  options.flag("--print-config", print_config,
               "Print what counts as TOML, with where it comes from, and end");
  options.text("--host", host, "H", "Address to listen on (default: 127.0.0.1)");
  options.integer("--port", port, {0, 65535}, "P", "Port; 0: any that is free (default: 8080)");
  options.optional_text("--unix", unix_path, "PATH",
                        "Listen on this Unix socket (only this user may use it), on no port");
  options.optional_text("--tls-cert", tls_certificate, "FILE",
                        "Certificate chain (PEM): HTTPS instead of HTTP; needs --tls-key");
  options.optional_text("--tls-key", tls_key, "FILE", "The certificate's private key (PEM)");
  options.optional_text("--api-key-file", key_file, "FILE", "Keys that clients must have one of");
  options.texts("--allow-host", allow_hosts, "NAME",
                "A further name that clients reach this server by (may be given several times)");
  options.optional_text("--name", name, "NAME",
                        "What clients call the first model (default: its file's name)");
  options.flag("--lazy", lazy, "Open and load no model before it is asked for");
  options.optional_text(
      "--memory", memory, "BYTES",
      "What all loaded models may take, as `cyb-llm plan` counts (8G, 512M); those "
      "that nobody uses make room for others");
  options.optional_text("--keep-alive", keep_alive, "TIME",
                        "How long a model stays when nobody uses it: seconds, 5m; 0: unloaded at "
                        "once, -1: it stays (default: -1)");
  options.texts("--pin", pins, "NAME", "Never unload this model (may be given several times)");
  options.optional_text("--admin-key-file", admin_key_file, "FILE",
                        "Keys that may load and unload models; they are keys for all else too");
  options.texts("--allow-pull", allow_pulls, "ORIGIN",
                "Admins may pull models from https://HOST[:PORT] (POST /v1/models/pull); may be "
                "given several times");
  options.flag("--share-models", share_models,
               "Offer the files of the served models to `cyb-llm pull cyb://...`");
  options.texts(
      "--lora", adapters, "[MODEL:]NAME=PATH[=WEIGHT]",
      "A LoRA adapter (PEFT folder or GGUF) that requests choose as the model MODEL:NAME; "
      "without NAME it is always on; may be given again");
  options.integer("--slots", slots, {1, kMaxSlots}, "N",
                  "Answers that grow at the same time; memory is kept for a context of each "
                  "(default: 8)");
  options.integer("--max-queue", max_queue, {0, kMaxQueue}, "N",
                  "Requests that wait; one more is refused with 503 (default: 256)");
  engine.declare_context(options);
  engine.declare_engine(options, false);
  engine.declare_verify(options);
}

Result<void> ServeOptions::check() const {
  CYB_TRY(served_models());
  CYB_TRY(served_adapters());
  CYB_TRY(shelf_options());
  CYB_TRY(engine.check_kv());
  if (tls_certificate.has_value() != tls_key.has_value()) {
    return fail(usage_error("--tls-cert and --tls-key go together"));
  }
  if (unix_path && port) return fail(usage_error("--unix listens on no port: leave out --port"));
  if (unix_path && unix_path->empty()) return fail(usage_error("--unix needs a path"));
  if (!key_file && !admin_key_file && !unix_path && !http::is_loopback_host(host)) {
    return fail(usage_error(fmt::format(
        "others reach --host {}: it needs --api-key-file FILE, so that not everybody may ask",
        host)));
  }
  return {};
}

Result<std::vector<ServedModel>> ServeOptions::served_models() const {
  if (models.empty()) return fail(usage_error("MODEL is missing"));
  std::vector<ServedModel> out;
  for (const std::string& text : models) {
    const auto named = cut_name(text);
    ServedModel one{named ? named->first : std::filesystem::path(text).stem().string(),
                    named ? named->second : text};
    if (named) CYB_TRY(check_name(one.name, "MODEL"));
    if (one.source.empty()) return fail(usage_error(text + ": the model's path is missing"));
    if (out.empty() && name) one.name = *name;
    if (one.name.empty()) one.name = "model";
    if (std::ranges::find(out, one.name, &ServedModel::name) != out.end()) {
      return fail(usage_error(
          fmt::format("two models have the name \"{}\": NAME=MODEL gives another", one.name)));
    }
    out.push_back(std::move(one));
  }
  for (const std::string& pin : pins) {
    if (std::ranges::find(out, pin, &ServedModel::name) == out.end()) {
      return fail(usage_error(fmt::format("--pin: there is no model \"{}\"", pin)));
    }
  }
  return out;
}

Result<std::vector<ServedAdapter>> ServeOptions::served_adapters() const {
  CYB_ASSIGN(const std::vector<ServedModel> known, served_models());
  std::vector<ServedAdapter> out;
  for (const std::string& text : adapters) {
    ServedAdapter one{known.front().name, {}, {}};
    auto named = cut_name(text);
    // PATH=WEIGHT
    if (named && exists(named->first) && parse_real(named->second)) named.reset();
    if (named) {
      const std::size_t colon = named->first.rfind(':');
      if (colon != std::string::npos) one.model = named->first.substr(0, colon);
      one.name = named->first.substr(colon == std::string::npos ? 0 : colon + 1);
      CYB_TRY(check_name(one.name, "--lora"));
      if (one.name == "latest") return fail(usage_error("--lora: latest is a tag, no name"));
    }
    if (std::ranges::find(known, one.model, &ServedModel::name) == known.end()) {
      return fail(usage_error(fmt::format("--lora: there is no model \"{}\"", one.model)));
    }
    auto source = api::adapter_name(named ? named->second : text);
    if (!source) return fail(usage_error(fmt::format("--lora: {}", source.error().message())));
    one.source = *std::move(source);
    out.push_back(std::move(one));
  }
  return out;
}

Result<ShelfOptions> ServeOptions::shelf_options() const {
  ShelfOptions out;
  out.scheduler.max_running = n_slots();
  out.scheduler.max_waiting = static_cast<std::uint32_t>(max_queue.value_or(256));
  if (memory) {
    const auto bytes = parse_bytes(*memory);
    if (!bytes) {
      return fail(usage_error(
          fmt::format("--memory: \"{}\" is no number of bytes; write 8G or 512M", *memory)));
    }
    out.memory_bytes = *bytes;
  }
  if (keep_alive) {
    const auto time = server::parse_keep_alive(*keep_alive);
    if (!time) {
      return fail(usage_error(
          fmt::format("--keep-alive: \"{}\" is no time; write seconds, 5m or -1", *keep_alive)));
    }
    out.keep_alive = *time;
  }
  return out;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept {
  static constexpr std::string_view kUnits = "KMGT";
  unsigned shift = 0;
  const std::size_t unit = text.empty() ? kUnits.npos : kUnits.find(text.back());
  if (unit != kUnits.npos) {
    shift = static_cast<unsigned>(10 * (unit + 1));
    text.remove_suffix(1);
  }
  const auto number = parse_integer(text);
  if (!number || *number == 0 || *number > (UINT64_MAX >> shift)) return std::nullopt;
  return *number << shift;
}

Result<server::ServerOptions> ServeOptions::server_options(int wake_fd) const {
  CYB_TRY(check());
  server::ServerOptions out;
  out.http.host = host;
  out.http.port = static_cast<std::uint16_t>(port.value_or(8080));
  out.http.unix_path = unix_path.value_or("");
  out.http.tls_certificate = tls_certificate.value_or("");
  out.http.tls_key = tls_key.value_or("");
  out.service.version = api::kVersion;
  out.service.share_models = share_models;
  out.service.access.more_hosts = allow_hosts;
  if (key_file) {
    CYB_ASSIGN(const std::string text, read_text(*key_file, wake_fd));
    CYB_ASSIGN(out.service.access.keys, server::read_keys(text, *key_file));
  }
  if (admin_key_file) {
    server::AccessOptions& access = out.service.access;
    CYB_ASSIGN(const std::string text, read_text(*admin_key_file, wake_fd));
    CYB_ASSIGN(access.admin_keys, server::read_keys(text, *admin_key_file));
    access.keys.insert(access.keys.end(), access.admin_keys.begin(), access.admin_keys.end());
  }
  return out;
}

EngineOptions ServeOptions::engine_options() const {
  EngineOptions out = engine.engine_options();
  out.max_sequences = n_slots();
  out.max_outputs = std::max(out.max_outputs, n_slots());
  return out;
}

}  // namespace cyb::cli
