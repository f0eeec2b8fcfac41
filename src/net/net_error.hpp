// N codes: what goes wrong with a download; docs/errors.md lists them.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace cyb::net {

inline constexpr std::string_view kNoConnection = "N01";  // name, connection, TLS; may be retried
inline constexpr std::string_view kBrokenLink = "N02";    // broke or stalled; may be retried
inline constexpr std::string_view kStatus = "N03";        // the server refuses
inline constexpr std::string_view kRedirect = "N04";      // a redirect that is not followed
inline constexpr std::string_view kLies = "N05";          // an answer that contradicts itself
inline constexpr std::string_view kMetadata = "N06";      // what the hub says of a repository
inline constexpr std::string_view kDigest = "N07";        // other bytes than were announced
inline constexpr std::string_view kNoSpace = "N08";       // disk
inline constexpr std::string_view kChanged = "N09";       // the file changes while it is fetched
inline constexpr std::string_view kChoice = "N10";        // nothing, or several things, to fetch
inline constexpr std::string_view kPickle = "N11";

/// Kind Io for N01 to N03 and N08, InvalidInput for N10, Format for the rest.
Error net_error(std::string_view code, std::string message);

/// An error that trying again may cure.
inline bool is_transient(const Error& error) noexcept {
  return error.code() == kNoConnection || error.code() == kBrokenLink;
}

}  // namespace cyb::net
