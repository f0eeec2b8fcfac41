// A byte is looked at in one of two ways: in text (is it the beginning of a trigger?) or by the
// step of a format's program. What turns out to be something else is put back and looked at again;
// a step puts back at most one marker, so that the work stays linear.
#include "text/tools/answer_splitter.hpp"

#include <algorithm>
#include <utility>

namespace cyb {
namespace {

constexpr std::size_t kMostSpace = 1024;   // of white space that may belong to what follows
constexpr std::size_t kMostHeader = 512;   // of a channel
constexpr std::size_t kLongestName = 128;  // of a function

bool is_name(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

}  // namespace

AnswerSplitter::AnswerSplitter(SplitOptions options) : options_(std::move(options)) {
  const ReasoningMarks& marks = options_.reasoning;
  const ToolFormat* format = options_.format;
  if (format != nullptr) {
    for (const ToolTrigger& trigger : format->triggers) triggers_.push_back({trigger});
    const bool channels = format->channels;
    const auto first = std::ranges::find(format->triggers, format->starts_with, &ToolTrigger::text);
    if (first != format->triggers.end()) enter(first->op);
    if (channels) return;
  }
  if (!marks.close.empty()) {
    triggers_.push_back({{marks.open, ToolPlace::kStart}, Kind::kReasoning});
    triggers_.push_back({{marks.close, ToolPlace::kReasoning}, Kind::kContent});
  }
  if (options_.in_reasoning) {
    in_program_ = false;
    kind_ = Kind::kReasoning;
    drop_space_ = true;
  }
}

void AnswerSplitter::push(std::string_view text, std::vector<AnswerPart>& out) {
  out_ = &out;
  if (options_.nothing()) return emit(Kind::kContent, text);
  for (const char c : text) {
    todo_ += c;
    while (!todo_.empty()) {
      const char next = todo_.back();
      todo_.pop_back();
      feed(next);
    }
  }
}

void AnswerSplitter::finish(bool complete, std::vector<AnswerPart>& out) {
  out_ = &out;
  if (in_program_) {
    const ToolStep step = options_.format->ops[op_].step;
    if (begun_ && complete && step == ToolStep::kCode) add_arguments("\"}");
    if (begun_ && complete && step == ToolStep::kTagged) {
      tagged_.close(json_);
      add_arguments(json_);
    }
    const bool header = step == ToolStep::kHeader && word_.find("<|") != std::string::npos;
    if (!begun_ && !closing_ && !header && !(step == ToolStep::kEnd && may_end())) {
      in_program_ = false;
      for (const char c : raw_) write(c);
    }
  }
  for (const char c : held_) write(c);
  if (!drop_space_) flush_space();
  held_.clear();
  raw_.clear();
}

void AnswerSplitter::feed(char c) {
  if (in_program_) {
    run(c);
  } else {
    look(c);
  }
}

void AnswerSplitter::unread(std::string_view text) {
  todo_.append(text.rbegin(), text.rend());
}

void AnswerSplitter::emit(Kind kind, std::string_view text) {
  if (text.empty()) return;
  const std::uint32_t call = kind == Kind::kArguments ? n_calls_ - 1 : 0;
  if (out_->empty() || out_->back().kind != kind || out_->back().call != call) {
    out_->push_back({kind, call, {}});
  }
  out_->back().text += text;
}

bool AnswerSplitter::active(const ToolTrigger& trigger) const noexcept {
  switch (trigger.place) {
    case ToolPlace::kContent:
      return kind_ == Kind::kContent;
    case ToolPlace::kStart:
      return kind_ == Kind::kContent && start_;
    case ToolPlace::kReasoning:
      return kind_ == Kind::kReasoning;
    default:
      return true;
  }
}

void AnswerSplitter::look(char c) {
  held_ += c;
  while (!held_.empty()) {
    bool may_become = false;
    for (const Trigger& trigger : triggers_) {
      if (!trigger.what.text.starts_with(held_) || !active(trigger.what)) continue;
      if (trigger.what.text.size() == held_.size()) return fire(trigger);
      may_become = true;
    }
    if (may_become) return;
    write(held_.front());
    held_.erase(0, 1);
  }
}

void AnswerSplitter::fire(const Trigger& trigger) {
  const std::string text = std::exchange(held_, {});
  if (trigger.starts) {
    space_.clear();
    kind_ = *trigger.starts;
    drop_space_ = true;
    return;
  }
  enter(trigger.what.op);
  if (trigger.what.taken) {
    raw_ = text;
  } else {
    unread(text);
  }
}

void AnswerSplitter::write(char c) {
  if (text::is_json_space(c)) {
    if (drop_space_) return;
    space_ += c;
    if (space_.size() > kMostSpace) flush_space();
    return;
  }
  flush_space();
  drop_space_ = false;
  start_ = start_ && kind_ != Kind::kContent;
  emit(kind_, std::string_view(&c, 1));
}

void AnswerSplitter::flush_space() {
  emit(kind_, space_);
  space_.clear();
}

void AnswerSplitter::enter(std::uint8_t op) {
  in_program_ = true;
  begun_ = closing_ = called_ = false;
  raw_.clear();
  word_.clear();
  go(op);
}

AnswerSplitter::Next AnswerSplitter::go(std::uint8_t op) {
  op_ = op;
  matched_ = 0;
  const ToolStep step = options_.format->ops[op].step;
  const bool reads_call = step == ToolStep::kObject || step == ToolStep::kName;
  closing_ = closing_ && !reads_call;
  if (step == ToolStep::kName) name_.clear();
  if (step == ToolStep::kName || step == ToolStep::kWord || step == ToolStep::kHeader) {
    word_.clear();
  }
  json_.clear();
  scan_.reset();
  call_.reset();
  keywords_.reset();
  if (step == ToolStep::kTagged) {
    const auto types = std::ranges::find(options_.types, name_, &ArgumentTypes::function);
    tagged_.reset(*options_.format->tags, types == options_.types.end() ? nullptr : &*types);
  }
  return Next::kAgain;
}

void AnswerSplitter::run(char c) {
  raw_ += c;
  if (raw_.size() > kMostHeld) {
    give_up();
    return;
  }
  while (step(options_.format->ops[op_], c) == Next::kAgain) {
  }
}

AnswerSplitter::Next AnswerSplitter::step(const ToolOp& op, char c) {
  const std::uint8_t after = static_cast<std::uint8_t>(op_ + 1);
  switch (op.step) {
    case ToolStep::kSpace:
      return text::is_json_space(c) ? Next::kTaken : go(after);
    case ToolStep::kText:
    case ToolStep::kTry:
      return text(op, c);
    case ToolStep::kPeek:
      return go(c == op.text.front() ? op.next : op.other);
    case ToolStep::kName:
    case ToolStep::kWord:
      return word(op, c);
    case ToolStep::kArguments:
      return arguments(c);
    case ToolStep::kObject:
      return object(c);
    case ToolStep::kKeywords:
      return keywords(c);
    case ToolStep::kTagged:
      return tagged(c);
    case ToolStep::kIfCode:
      return go(std::ranges::any_of(options_.functions, takes_code) ? op.next : op.other);
    case ToolStep::kCode:
      return code(c);
    case ToolStep::kGo:
      return go(op.next);
    case ToolStep::kHeader:
      return header(op, c);
    default:
      return leave();
  }
}

AnswerSplitter::Next AnswerSplitter::text(const ToolOp& op, char c) {
  const bool tries = op.step == ToolStep::kTry;
  if (op.text[matched_] == c) {
    if (++matched_ == op.text.size()) go(tries ? op.next : static_cast<std::uint8_t>(op_ + 1));
    return Next::kTaken;
  }
  if (!tries) return give_up();
  const std::size_t back = raw_.size() - matched_ - 1;
  const std::string again = raw_.substr(back);
  raw_.resize(back);
  unread(again);
  go(op.other);
  return Next::kLeft;
}

AnswerSplitter::Next AnswerSplitter::word(const ToolOp& op, char c) {
  if (is_name(c)) {
    if (word_.size() == kLongestName) return give_up();
    word_ += c;
    return Next::kTaken;
  }
  if (word_.empty()) return give_up();
  if (op.step == ToolStep::kName) name_ = word_;
  return go(static_cast<std::uint8_t>(op_ + 1));
}

bool AnswerSplitter::offered(std::string_view function) const {
  return std::ranges::find(options_.functions, function) != options_.functions.end();
}

void AnswerSplitter::begin(std::string_view function) {
  space_.clear();
  begun_ = called_ = true;
  out_->push_back({Kind::kCall, n_calls_++, std::string(function)});
}

void AnswerSplitter::add_arguments(std::string_view text) {
  emit(Kind::kArguments, text);
  raw_.clear();
}

void AnswerSplitter::end_call() {
  begun_ = false;
  closing_ = true;
  start_ = drop_space_ = true;
  raw_.clear();
  go(static_cast<std::uint8_t>(op_ + 1));
}

AnswerSplitter::Next AnswerSplitter::arguments(char c) {
  if (!begun_ && (c != '{' || !offered(name_))) return give_up();
  if (!begun_) begin(name_);
  const text::ScanStep step = scan_.push(c);
  add_arguments(std::string_view(&c, 1));
  if (step == text::ScanStep::kDone) end_call();
  return Next::kTaken;
}

AnswerSplitter::Next AnswerSplitter::object(char c) {
  const text::ScanStep step = call_.push(c);
  const bool other = call_.has_name() && !offered(call_.name());
  if (step == text::ScanStep::kFailed || (other && !begun_)) return give_up();
  if (call_.part() == text::CallScan::Part::kArguments) json_ += c;
  const bool done = step == text::ScanStep::kDone;
  if (call_.has_name() && (!json_.empty() || (done && !call_.has_arguments()))) {
    if (!begun_) begin(call_.name());
    add_arguments(json_.empty() ? "{}" : json_);
    json_.clear();
  }
  if (done) end_call();
  return Next::kTaken;
}

AnswerSplitter::Next AnswerSplitter::keywords(char c) {
  const text::ScanStep step = keywords_.push(c, json_);
  if (step == text::ScanStep::kFailed || (!begun_ && !offered(name_))) return give_up();
  if (!json_.empty()) {
    if (!begun_) begin(name_);
    add_arguments(json_);
    json_.clear();
  }
  if (step == text::ScanStep::kDone) end_call();
  return Next::kTaken;
}

AnswerSplitter::Next AnswerSplitter::tagged(char c) {
  if (!begun_ && !offered(name_)) return give_up();
  const text::ScanStep step = tagged_.push(c, json_);
  if (step == text::ScanStep::kFailed) return give_up();
  if (!json_.empty()) {
    if (!begun_) begin(name_);
    add_arguments(json_);
    json_.clear();
  }
  if (tagged_.in_value()) raw_.clear();  // it cannot become content any more
  if (step == text::ScanStep::kDone) end_call();
  return Next::kTaken;
}

AnswerSplitter::Next AnswerSplitter::code(char c) {
  if (!begun_) {
    const auto function = std::ranges::find_if(options_.functions, takes_code);
    if (function == options_.functions.end()) return give_up();
    begin(*function);
    add_arguments("{\"code\": \"");
  }
  text::append_json_char(json_, c);
  add_arguments(json_);
  json_.clear();
  return Next::kTaken;
}

AnswerSplitter::Next AnswerSplitter::header(const ToolOp& op, char c) {
  static constexpr std::string_view kTo = "to=functions.", kChannel = "<|channel|>";
  word_ += c;
  if (word_.size() > kMostHeader) return give_up();
  if (!word_.ends_with(op.text)) return Next::kTaken;
  if (const std::size_t to = word_.find(kTo); to != std::string::npos) {
    const std::string_view rest = std::string_view(word_).substr(to + kTo.size());
    name_ = rest.substr(
        0, static_cast<std::size_t>(std::ranges::find_if_not(rest, is_name) - rest.begin()));
    if (offered(name_)) {
      go(op.next);
      return Next::kTaken;
    }
  }
  const std::size_t channel = word_.find(kChannel);
  const bool analysis =
      channel != std::string::npos &&
      std::string_view(word_).substr(channel + kChannel.size()).starts_with("analysis");
  raw_.clear();
  in_program_ = false;
  if (!drop_space_) flush_space();
  kind_ = analysis ? Kind::kReasoning : Kind::kContent;
  drop_space_ = true;
  return Next::kLeft;
}

/// A program that came to its end without a call has read marks of channels, or nothing.
bool AnswerSplitter::may_end() const {
  return called_ || options_.format->channels || !options_.format->starts_with.empty();
}

/// The byte is not the program's any more.
AnswerSplitter::Next AnswerSplitter::leave() {
  if (!may_end()) return give_up();
  const char c = raw_.back();
  raw_.clear();
  in_program_ = false;
  kind_ = Kind::kContent;
  drop_space_ = true;
  unread(std::string_view(&c, 1));
  return Next::kLeft;
}

/// It was no call: what came of it is content, and its last byte is looked at again. A call between
/// tags stays, with the arguments that it has.
AnswerSplitter::Next AnswerSplitter::give_up() {
  if (begun_ && options_.format->ops[op_].step == ToolStep::kTagged) {
    tagged_.close(json_);
    emit(Kind::kArguments, json_);
  }
  const std::string text = std::exchange(raw_, {});
  in_program_ = begun_ = false;
  const std::size_t n = std::max<std::size_t>(text.size(), 2) - 1;
  for (const char c : std::string_view(text).substr(0, n)) write(c);
  unread(std::string_view(text).substr(std::min(n, text.size())));
  return Next::kLeft;
}

SplitAnswer join_parts(const std::vector<AnswerPart>& parts) {
  SplitAnswer out;
  for (const AnswerPart& part : parts) {
    switch (part.kind) {
      case AnswerPart::Kind::kContent:
        out.content += part.text;
        break;
      case AnswerPart::Kind::kReasoning:
        out.reasoning += part.text;
        break;
      case AnswerPart::Kind::kCall:
        out.calls.push_back({part.text, {}});
        break;
      case AnswerPart::Kind::kArguments:
        out.calls[part.call].arguments += part.text;
        break;
    }
  }
  return out;
}

}  // namespace cyb
