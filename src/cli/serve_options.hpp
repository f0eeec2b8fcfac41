// What `serve` is told: one struct that the command line fills, with the checks between its
// members, and the server's options made of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/model_flags.hpp"
#include "server/server.hpp"

namespace cyb::cli {

struct ServeOptions {
  std::optional<std::string> model;  // a path, or a name or id in the store
  bool openapi = false;
  std::string host = "127.0.0.1";
  std::optional<std::string> unix_path{}, tls_certificate{}, tls_key{}, key_file{}, name{};
  std::vector<std::string> allow_hosts{};
  std::optional<std::uint64_t> port{}, slots{}, max_queue{};
  ModelFlags engine{};

  void declare(Options& options);
  /// Members against each other; nothing is read. Errors: Usage.
  Result<void> check() const;
  /// All but the log. Reads the key file. Errors: as check(), read_text() and read_keys().
  Result<server::ServerOptions> server_options(int wake_fd) const;
  /// With room for all slots.
  EngineOptions engine_options() const;
  std::uint32_t n_slots() const noexcept { return static_cast<std::uint32_t>(slots.value_or(8)); }
};

}  // namespace cyb::cli
