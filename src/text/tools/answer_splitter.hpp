// AnswerSplitter: what a model writes, as it comes, into content, reasoning and tool calls. One
// state machine over bytes: however the text is cut, the parts are the same. Text that becomes no
// call comes out as content, byte for byte; white space beside calls and marks of reasoning belongs
// to them. Linear in the text; holds at most kMostHeld bytes back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tools/argument_types.hpp"
#include "text/tools/json_scan.hpp"
#include "text/tools/tagged_scan.hpp"
#include "text/tools/tool_format.hpp"

namespace cyb {

struct AnswerPart {
  enum class Kind : std::uint8_t {
    kContent,
    kReasoning,
    kCall,       // call `call` begins; text: the function's name
    kArguments,  // of call `call`: the next piece of the JSON text
  };
  Kind kind = Kind::kContent;
  std::uint32_t call = 0;
  std::string text{};
};

struct SplitOptions {
  const ToolFormat* format = nullptr;    // null: no calls
  std::vector<std::string> functions{};  // that may be called; others are content
  std::vector<ArgumentTypes> types{};    // of their arguments, where the format has ToolTags
  ReasoningMarks reasoning{};
  bool in_reasoning = false;  // the prompt has opened it
  bool nothing() const noexcept { return format == nullptr && reasoning.close.empty(); }
};

class AnswerSplitter {
 public:
  static constexpr std::size_t kMostHeld = 64 * 1024;  // of what may still become a call

  explicit AnswerSplitter(SplitOptions options);

  /// Appends the parts that `text` gives; neighbours of one kind are one part.
  void push(std::string_view text, std::vector<AnswerPart>& out);
  /// The answer is over. `complete` false: it was cut off; a call stays as far as it came.
  void finish(bool complete, std::vector<AnswerPart>& out);
  std::uint32_t n_calls() const noexcept { return n_calls_; }

 private:
  using Kind = AnswerPart::Kind;
  enum class Next : std::uint8_t {
    kTaken,  // the byte was a part of this step
    kAgain,  // it is the next step's
    kLeft,   // all that was to do with it is done
  };
  struct Trigger {
    ToolTrigger what;
    std::optional<Kind> starts{};  // empty: a program
  };

  void feed(char c);
  void unread(std::string_view text);
  void emit(Kind kind, std::string_view text);
  // Text: content and reasoning.
  bool active(const ToolTrigger& trigger) const noexcept;
  void look(char c);
  void fire(const Trigger& trigger);
  void write(char c);
  void flush_space();
  // Programs.
  void enter(std::uint8_t op);
  void run(char c);
  Next step(const ToolOp& op, char c);
  Next text(const ToolOp& op, char c);
  Next word(const ToolOp& op, char c);
  Next object(char c);
  Next arguments(char c);
  Next keywords(char c);
  Next tagged(char c);
  Next code(char c);
  Next header(const ToolOp& op, char c);
  Next go(std::uint8_t op);
  Next leave();
  bool may_end() const;
  Next give_up();
  void begin(std::string_view function);
  void add_arguments(std::string_view text);
  void end_call();
  bool offered(std::string_view function) const;

  SplitOptions options_;
  std::vector<Trigger> triggers_;
  std::vector<AnswerPart>* out_ = nullptr;
  std::string todo_;  // bytes to look at, the next one last
  Kind kind_ = Kind::kContent;
  bool start_ = true;         // nothing but white space and calls in the content so far
  bool drop_space_ = false;   // white space that comes next belongs to what came before
  std::string space_, held_;  // white space and the beginning of a trigger, not yet written
  // Of a program.
  bool in_program_ = false, begun_ = false, closing_ = false, called_ = false;
  std::uint8_t op_ = 0;
  std::size_t matched_ = 0;
  std::string raw_;  // what is content if no call comes of it
  std::string name_, word_, json_;
  text::JsonScan scan_;
  text::CallScan call_;
  text::KeywordScan keywords_;
  text::TaggedScan tagged_;
  std::uint32_t n_calls_ = 0;
};

/// All parts of one kind joined, calls apart.
struct SplitAnswer {
  struct Call {
    std::string name, arguments;
  };
  std::string content, reasoning;
  std::vector<Call> calls;
};
SplitAnswer join_parts(const std::vector<AnswerPart>& parts);

}  // namespace cyb
