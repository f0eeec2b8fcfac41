// The registry of another cyb-llm server (serve --share-models), as far as a download needs it.
// All that it says is hostile.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "api/pull/pull_source.hpp"
#include "base/hash.hpp"
#include "net/http.hpp"

namespace cyb::api {

struct RegistryFile {
  std::string name, model_id;  // what clients call the model; "blake3:..."
  Digest digest{};             // of the whole file
  std::uint64_t size = 0;
};

/// An answer of /v1/registry/models. Errors: JSON, N06 with the entry.
Result<std::vector<RegistryFile>> parse_registry(std::string_view text);

/// Errors: N codes, JSON, Cancelled. N03 has what the server says of its refusal.
Result<std::vector<RegistryFile>> list_registry(const ServerSource& source,
                                                const net::HttpOptions& http, std::stop_token stop);
/// The file of that name or content id. Errors: N10 that lists the choices with their sizes.
Result<RegistryFile> choose_file(const std::vector<RegistryFile>& files,
                                 const ServerSource& source);
Result<net::Url> file_url(const ServerSource& source, const RegistryFile& file);

}  // namespace cyb::api
