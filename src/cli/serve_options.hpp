// What `serve` is told: one struct that the command line fills, with the checks between its
// members, and the server's options made of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/adapter_source.hpp"
#include "cli/command.hpp"
#include "cli/model_flags.hpp"
#include "server/server.hpp"

namespace cyb::cli {

/// A model as it is served.
struct ServedModel {
  std::string name, source;  // what clients call it; a path, or a name or id in the store
};

/// An adapter of --lora.
struct ServedAdapter {
  std::string model, name;  // name empty: always on
  api::AdapterName source;
};

struct ServeOptions {
  std::vector<std::string> models{};  // [NAME=]PATH; the first is the default
  bool openapi = false, print_config = false, lazy = false, share_models = false;
  std::optional<std::string> config{};  // a TOML file
  std::string host = "127.0.0.1";
  std::optional<std::string> unix_path{}, tls_certificate{}, tls_key{}, key_file{}, name{},
      admin_key_file{}, memory{}, keep_alive{};
  std::vector<std::string> allow_hosts{}, allow_pulls{}, pins{}, adapters{};
  std::optional<std::uint64_t> port{}, slots{}, max_queue{};
  ModelFlags engine{};

  void declare(Options& options);
  /// Members against each other; nothing is read. Errors: Usage.
  Result<void> check() const;
  /// Names are different. Errors: Usage.
  Result<std::vector<ServedModel>> served_models() const;
  /// Each of one of the models. Errors: Usage.
  Result<std::vector<ServedAdapter>> served_adapters() const;
  /// Without `note` and `progress`. Errors: Usage.
  Result<ShelfOptions> shelf_options() const;
  /// All but the log. Reads the key files. Errors: as check(), read_text() and read_keys().
  Result<server::ServerOptions> server_options(int wake_fd) const;
  /// With room for all slots.
  EngineOptions engine_options() const;
  std::uint32_t n_slots() const noexcept { return static_cast<std::uint32_t>(slots.value_or(8)); }
};

/// "8G", "512M", "1000000": bytes, in powers of 1024; nullopt for what is none, and 0.
std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept;

}  // namespace cyb::cli
