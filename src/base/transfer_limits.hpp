// The rows of the limit table (base/limits.hpp) of what comes and goes over the network.
#pragma once

#include <cstdint>

// CYB_LIMIT(constant, name, value, unit, what)
#define CYB_TRANSFER_LIMITS(CYB_LIMIT)                                                             \
  CYB_LIMIT(kMaxDownloadBytes, "download", 17592186044416, "bytes", "one file that is pulled")     \
  CYB_LIMIT(kMaxHubBytes, "hub_list", 16777216, "bytes", "said of a repository or by a registry")  \
  CYB_LIMIT(kMaxHubFiles, "hub_files", 100000, "files", "in a repository of a hub, or a registry") \
  CYB_LIMIT(kMaxHubPages, "hub_pages", 1000, "pages", "of a hub's list of files")                  \
  CYB_LIMIT(kMaxUrlBytes, "url", 8192, "bytes", "an address of a download")                        \
  CYB_LIMIT(kMaxRedirects, "redirects", 5, "redirects", "of one request of a download")            \
  CYB_LIMIT(kMaxAnswerHeadBytes, "answer_head", 65536, "bytes", "headers of a download's answer")  \
  CYB_LIMIT(kMaxModelDownloads, "model_downloads", 32, "downloads",                                \
            "of served models at once (serve --share-models)")

namespace cyb {

#define CYB_LIMIT_CONSTANT(constant, name, value, unit, what) \
  inline constexpr std::uint64_t constant = value;
CYB_TRANSFER_LIMITS(CYB_LIMIT_CONSTANT)
#undef CYB_LIMIT_CONSTANT

}  // namespace cyb
