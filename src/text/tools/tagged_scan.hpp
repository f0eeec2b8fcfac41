// TaggedScan: arguments that come one by one between tags, byte by byte, as one JSON object. Texts
// go on as they come; values of other types once they are whole, as their types are read.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "text/tools/argument_types.hpp"
#include "text/tools/json_scan.hpp"
#include "text/tools/tool_format.hpp"

namespace cyb::text {

class TaggedScan {
 public:
  /// A typed value that is longer is a text.
  static constexpr std::size_t kLongestValue = 64 * 1024;
  static constexpr std::size_t kLongestKey = 128;

  /// `types` may be null: nothing is said. Both outlive the scan.
  void reset(const ToolTags& tags, const ArgumentTypes* types);
  /// What is appended to `json` is together a JSON object at kDone. Of arguments of one name the
  /// first counts. kFailed: between values came something else; close() makes an object of it.
  ScanStep push(char c, std::string& json);
  /// The answer is over, or something else follows: the object ends here.
  void close(std::string& json);
  /// In a value nothing fails, and `json` has its beginning at least.
  bool in_value() const noexcept { return at_ == At::kValue; }

 private:
  enum class At : std::uint8_t { kBetween, kKey, kGap, kValue };
  ScanStep between(char c, std::string& json);
  ScanStep key(char c, std::string& json);
  ScanStep gap(char c, std::string& json);
  ScanStep value(char c, std::string& json);
  ScanStep begin_value(std::string& json);
  void take(char c, std::string& json);
  void put(char c, std::string& json);
  void end_value(std::string& json);
  void begin_text(std::string& json);

  const ToolTags* tags_ = nullptr;
  const ArgumentTypes* types_ = nullptr;
  At at_ = At::kBetween;
  std::string word_;  // of a tag, of a key
  std::string key_;
  std::set<std::string, std::less<>> keys_;
  std::string held_;         // a value that is not typed yet
  unsigned type_ = 0;        // of it
  std::size_t matched_ = 0;  // of the tag that ends a value
  bool open_ = false;        // of the object
  bool any_ = false;         // an argument was written
  bool skipped_ = false;     // the value is of a name that was there before
  bool text_ = false;        // the value goes on as it comes
  bool first_ = false;       // nothing of the value came
  bool line_end_ = false;    // a line break that is the value's only if more follows
};

}  // namespace cyb::text
