// The page that is shown at /, built from web/ and held by the program itself: nothing is read from disk.
#pragma once

#include <span>
#include <string_view>

#include "server/http/message.hpp"

namespace cyb::server {

struct PageFile {
  std::string_view path;  // "/", "/assets/index-HASH.js"
  std::string_view content_type;
  std::string_view body;
  std::string_view gzip;  // the body compressed; empty where that saves nothing
};

/// Made by cmake/web.cmake; empty in a build without the page.
std::span<const PageFile> page_files() noexcept;

/// The file at `head`'s path, with the headers that keep it from loading or being loaded by anything
/// else; 404 `not_found`, or for / 501 `page_not_built`.
http::Response page_response(std::span<const PageFile> files, const http::RequestHead& head);

}  // namespace cyb::server
