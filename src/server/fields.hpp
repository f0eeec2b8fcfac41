// Fields of a request: one table per route says what each must be and whether it is built. What is
// not in the table, or not built, is refused by name; nothing is ignored in silence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "server/api_error.hpp"
#include "text/template/chat_template.hpp"

namespace cyb::server {

enum class FieldType : std::uint8_t {
  kBool,
  kInteger,  // min .. max
  kNumber,   // min .. max
  kString,   // min .. max bytes
  kStrings,  // a text or a list of texts; max of them
  kList,     // min .. max items
  kObject,   // at most max members
  kAny,
};

enum class FieldState : std::uint8_t {
  kBuilt,
  kOnly,     // only the values in `fallback` ("false", "\"auto\"|\"default\""): they change nothing
  kRefused,  // known, not built
};

struct Field;
using FieldTable = std::span<const Field> (*)();

struct Field {
  std::string_view name;
  FieldType type = FieldType::kAny;
  FieldState state = FieldState::kBuilt;
  double min = 0, max = 0;
  std::string_view fallback{};  // the value where it is not given, as people read it
  std::string_view note{};      // what it does, or why it is refused
  bool required = false;
  FieldTable members = nullptr;  // of a kObject that has a table of its own
  std::string_view schema{};     // its name in the OpenAPI file: of a list's elements, of any value
};

/// A checked body. Where a field is null it counts as not given.
class Fields {
 public:
  explicit Fields(const ChatValue& body) : body_(&body) {}
  const ChatValue* find(std::string_view name) const noexcept;
  std::optional<bool> flag(std::string_view name) const noexcept;
  bool is_true(std::string_view name) const noexcept { return flag(name).value_or(false); }
  std::optional<std::int64_t> integer(std::string_view name) const noexcept;
  std::optional<double> number(std::string_view name) const noexcept;
  std::optional<std::string_view> text(std::string_view name) const noexcept;

 private:
  const ChatValue* body_;
};

/// A JSON object of at most 64 levels. Errors: 400 `invalid_json` with the place.
ApiResult<ChatValue> parse_body(std::string_view body);
/// Errors: 400 `unknown_parameter`, `unsupported_parameter`, `invalid_type`, `invalid_value`, each
/// with the field's name; `where` ("input[2]") stands before it. `body` must outlive the result.
ApiResult<Fields> check_fields(const ChatValue& body, std::span<const Field> table,
                               std::string_view where = {});

/// "an integer", ...
std::string_view type_text(FieldType type) noexcept;

}  // namespace cyb::server
