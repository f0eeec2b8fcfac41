#include "cli/serve_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "api/version.hpp"
#include "cli/text_input.hpp"
#include "cli/usage.hpp"

namespace cyb::cli {
namespace {

constexpr std::uint64_t kMaxSlots = 256, kMaxQueue = 65536;

}  // namespace

void ServeOptions::declare(Options& options) {
  options.optional_positional("MODEL", model,
                              "A .model, a GGUF or ONNX file or a Hugging Face folder, or a name "
                              "or id in the store");
  options.flag("--openapi", openapi, "Print the OpenAPI file of the server and end");
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
                        "What clients call the model (default: its file's name)");
  options.integer("--slots", slots, {1, kMaxSlots}, "N",
                  "Answers that grow at the same time; memory is kept for a context of each "
                  "(default: 8)");
  options.integer("--max-queue", max_queue, {0, kMaxQueue}, "N",
                  "Requests that wait; one more is refused with 503 (default: 256)");
  engine.declare_context(options);
  engine.declare_engine(options);
  engine.declare_verify(options);
}

Result<void> ServeOptions::check() const {
  if (model.value_or("").empty()) return fail(usage_error("MODEL is missing"));
  CYB_TRY(engine.check_kv());
  if (tls_certificate.has_value() != tls_key.has_value()) {
    return fail(usage_error("--tls-cert and --tls-key go together"));
  }
  if (unix_path && port) return fail(usage_error("--unix listens on no port: leave out --port"));
  if (unix_path && unix_path->empty()) return fail(usage_error("--unix needs a path"));
  if (!key_file && !unix_path && !http::is_loopback_host(host)) {
    return fail(usage_error(fmt::format(
        "others reach --host {}: it needs --api-key-file FILE, so that not everybody may ask",
        host)));
  }
  return {};
}

Result<server::ServerOptions> ServeOptions::server_options(int wake_fd) const {
  CYB_TRY(check());
  server::ServerOptions out;
  out.http.host = host;
  out.http.port = static_cast<std::uint16_t>(port.value_or(8080));
  out.http.unix_path = unix_path.value_or("");
  out.http.tls_certificate = tls_certificate.value_or("");
  out.http.tls_key = tls_key.value_or("");
  out.service.model_name = name.value_or(std::filesystem::path(*model).stem().string());
  if (out.service.model_name.empty()) out.service.model_name = "model";
  out.service.version = api::kVersion;
  out.service.scheduler.max_running = n_slots();
  out.service.scheduler.max_waiting = static_cast<std::uint32_t>(max_queue.value_or(256));
  out.service.access.more_hosts = allow_hosts;
  if (key_file) {
    CYB_ASSIGN(const std::string text, read_text(*key_file, wake_fd));
    CYB_ASSIGN(out.service.access.keys, server::read_keys(text, *key_file));
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
