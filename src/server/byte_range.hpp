// Range and If-Range of a request (RFC 9110, 14): which bytes of a file are to be sent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/http/message.hpp"

namespace cyb::server {

struct ByteRange {
  unsigned status = 200;  // 200: the whole; 206; 416: no byte of the file
  std::uint64_t first = 0, size = 0;
};

/// Of a file of `size_bytes` with that strong `etag`. Several ranges, another unit and what cannot
/// be read count as no Range, as does any where If-Range names another file.
ByteRange byte_range(const http::RequestHead& head, std::uint64_t size_bytes,
                     std::string_view etag);

/// "bytes 0-9/100", "bytes */100".
std::string content_range(const ByteRange& range, std::uint64_t size_bytes);

}  // namespace cyb::server
