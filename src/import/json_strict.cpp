// Two passes: a SAX pass that refuses depth and duplicate keys before any value is built, then the
// document.
#include "import/json_strict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/limits.hpp"

namespace cyb {
namespace {

class StrictCheck {
 public:
  using Json = nlohmann::json;
  std::string problem;

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(Json::number_integer_t) { return true; }
  bool number_unsigned(Json::number_unsigned_t) { return true; }
  bool number_float(Json::number_float_t, const std::string&) { return true; }
  bool string(std::string& text) { return check_size(text); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(std::size_t) { return open(); }
  bool end_object() { return close(); }
  bool start_array(std::size_t) { return open(); }
  bool end_array() { return close(); }

  bool key(std::string& text) {
    if (!check_size(text)) return false;
    if (keys_.back().insert(text).second) return true;
    problem = fmt::format("duplicate key {}", json_quote(text));
    return false;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) {
    problem = fmt::format("syntax error at byte {}", position);
    return false;
  }

 private:
  bool open() {
    keys_.emplace_back();
    if (keys_.size() <= kMaxJsonDepth) return true;
    problem = fmt::format("nesting exceeds the limit of {}", kMaxJsonDepth);
    return false;
  }
  bool close() {
    keys_.pop_back();
    return true;
  }
  bool check_size(const std::string& text) {
    if (text.size() <= kMaxStringBytes) return true;
    problem =
        fmt::format("a string of {} bytes exceeds the limit of {}", text.size(), kMaxStringBytes);
    return false;
  }

  std::vector<std::set<std::string>> keys_;
};

}  // namespace

Error json_error(std::string_view what, std::string_view problem) {
  return Error(ErrorKind::kFormat, "JSON", fmt::format("{}: {}", what, problem));
}

Result<nlohmann::json> parse_json(std::string_view text, std::string_view what) {
  if (text.find('\0') != std::string_view::npos) return fail(json_error(what, "has a NUL byte"));
  StrictCheck check;
  if (!nlohmann::json::sax_parse(text, &check)) {
    return fail(json_error(what, check.problem.empty() ? "syntax error" : check.problem));
  }
  nlohmann::json out = nlohmann::json::parse(text, nullptr, false);
  if (out.is_discarded()) return fail(json_error(what, "syntax error"));
  return out;
}

Result<nlohmann::json> read_json_file(const std::string& path) {
  CYB_ASSIGN(const std::string text, read_text_file(path, kMaxHeaderBytes));
  return parse_json(text, path);
}

}  // namespace cyb
