// The OpenAPI 3.1 file of all routes, made from the route list and the tables that check requests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cyb::server {

/// `version`: of this program.
std::string openapi_json(std::string_view version);

/// Routes of the list that the file says nothing about: a mistake.
std::vector<std::string_view> undescribed_routes();

}  // namespace cyb::server
