// ToolFormat: how the answers of a model write tool calls and channels: a table of texts that begin
// something (triggers) and a small program that reads what follows. One entry of tool_formats.cpp
// per format; AnswerSplitter runs it, tool_grammar writes what it reads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cyb {

enum class ToolStep : std::uint8_t {
  kSpace,      // white space, any amount
  kText,       // exactly `text`
  kTry,        // `text` if it comes: `next`, else `other`
  kPeek,       // the next byte is text[0]: `next`, else `other`; nothing is taken
  kName,       // a function's name
  kWord,       // what could be one, and says nothing
  kArguments,  // a JSON object; the call of the name begins
  kObject,     // {"name": ..., "arguments" or "parameters": {...}}
  kKeywords,   // (key=value, ...) with Python's literals; the call of the name begins
  kTagged,     // arguments between the format's tags, to the last of them; the call begins
  kIfCode,     // a function that takes code was offered: `next`, else `other`
  kCode,       // the rest of the answer is the code of such a function
  kGo,         // `next`
  kHeader,     // a channel's header up to <|message|>: content, reasoning, or `next` for a call
  kEnd,        // content follows
};

struct ToolOp {
  ToolStep step = ToolStep::kEnd;
  std::string_view text{};
  std::uint8_t next = 0, other = 0;  // of ops; all but kTry, kPeek, kIfCode, kGo and kHeader
                                     // go on with the op after them
};

/// Where a trigger counts.
enum class ToolPlace : std::uint8_t {
  kContent,    // anywhere in content
  kStart,      // in content where nothing but white space and calls came before
  kReasoning,  // in reasoning
  kAnywhere,
};

struct ToolTrigger {
  std::string_view text;
  ToolPlace place = ToolPlace::kContent;
  std::uint8_t op = 0;
  bool taken = true;  // false: the program reads the trigger too
};

/// How a format writes arguments one by one, each value as text: key NAME key_end value VALUE
/// value_end ... end. A tag has '<' as its first character only. Blanks may stand between them.
struct ToolTags {
  std::string_view key{}, key_end{};      // key_end: "</arg_key>", or ">" of key's own tag
  std::string_view value{}, value_end{};  // value: empty where the value follows the name at once
  std::string_view end{};                 // of all arguments; it is read with them
  std::string_view gap{}, after{};        // white space that a grammar writes before, after a value
  bool lines = false;                     // a value stands on lines of its own
  bool untyped_json = false;  // a value of which the schema says nothing is JSON where it can be
};

/// The way in which an answer under a grammar writes its calls: before_all, then calls with
/// `between` between them: before NAME middle ARGUMENTS after; then after_all. With `numbered`, ":"
/// and a number follow NAME.
struct ToolLayout {
  std::string_view before_all{}, before{}, middle{}, after{}, between{}, after_all{};
  bool several = true;  // more than one call in an answer
  bool numbered = false;
};

/// What the ids of calls look like.
enum class CallIds : std::uint8_t {
  kLong,   // call_...
  kShort,  // nine letters and digits
  kNamed,  // functions.NAME:INDEX, as the model itself counts calls of an answer
};

struct ToolFormat {
  std::string_view name;
  std::span<const ToolTrigger> triggers;
  std::span<const ToolOp> ops;
  ToolLayout layout;
  std::string_view starts_with{};   // not empty: an answer begins as if this trigger had come
  std::string_view free_end{};      // no text without calls has this; empty: none begins with {
  std::string_view free_end_too{};  // nor this
  bool channels = false;            // reasoning and content are the format's own business
  CallIds ids = CallIds::kLong;
  const ToolTags* tags = nullptr;               // of kTagged
  std::span<const std::string_view> markers{};  // control tokens that it is made of
  std::span<const std::string_view> stops{};    // control tokens that end an answer too
};

/// How the template of a model marks reasoning.
struct ReasoningMarks {
  std::string_view open{}, close{};  // empty: it does not
};

/// All formats, for tests.
std::span<const ToolFormat> tool_formats();
const ToolFormat* find_tool_format(std::string_view name);
/// The format that the template's own text uses: "generic" for one that knows no tools, null for
/// one whose format is not known.
const ToolFormat* recognise_tool_format(std::string_view template_source);
ReasoningMarks recognise_reasoning(std::string_view template_source);
/// Functions that take code, as models know them.
bool takes_code(std::string_view function);

}  // namespace cyb
