// Scanners of JSON that comes byte by byte. They find where a value ends and pick a call's name and
// arguments out of an object; what is inside of arguments is not checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cyb::text {

enum class ScanStep : std::uint8_t {
  kMore,    // the byte was taken, more is to come
  kDone,    // the byte was taken, it was the last
  kOver,    // it ended before this byte
  kFailed,  // this byte does not belong here
};

inline bool is_json_space(char c) noexcept {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/// One JSON value, whatever it is.
class JsonScan {
 public:
  ScanStep push(char c) noexcept;
  void reset() noexcept { *this = {}; }

 private:
  std::uint64_t depth_ = 0;
  bool begun_ = false, inside_ = false, escaped_ = false, scalar_ = false;
};

/// {"name": "...", "arguments": ..., "parameters": ...}, in any order; "id", "type" and "call_id"
/// are passed over, other members are no call's.
class CallScan {
 public:
  /// What a byte was a part of, besides the frame.
  enum class Part : std::uint8_t { kFrame, kArguments };
  ScanStep push(char c);
  Part part() const noexcept { return part_; }
  bool has_name() const noexcept { return has_name_; }
  const std::string& name() const noexcept { return name_; }
  bool has_arguments() const noexcept { return has_arguments_; }
  void reset() { *this = {}; }

 private:
  enum class At : std::uint8_t { kOpen, kKey, kInKey, kColon, kValue, kInValue, kComma };
  ScanStep start_value(char c);
  ScanStep value(char c);
  ScanStep after_value(char c);
  bool known_key();

  At at_ = At::kOpen;
  Part part_ = Part::kFrame;
  JsonScan scan_;
  std::string key_, name_;
  bool first_ = true, has_name_ = false, has_arguments_ = false;
};

/// (key=value, ...) with Python's literals: what push() appends to `json` is the same as a JSON
/// object.
class KeywordScan {
 public:
  /// kMore until the closing bracket. Positional arguments and tuples fail.
  ScanStep push(char c, std::string& json);
  void reset() { *this = {}; }

 private:
  enum class At : std::uint8_t { kOpen, kKey, kInKey, kEquals, kValue, kText, kWord, kNext };
  ScanStep between(char c, std::string& json);
  ScanStep key(char c, std::string& json);
  ScanStep value(char c, std::string& json);
  void text(char c, std::string& json);
  bool end_word(std::string& json);

  At at_ = At::kOpen;
  std::string word_;
  char quote_ = 0;
  bool escaped_ = false, any_ = false;
  std::uint64_t depth_ = 0;
};

/// Appends `c` as a part of a JSON string.
void append_json_char(std::string& out, char c);

}  // namespace cyb::text
