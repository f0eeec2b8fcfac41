// SplitChoice: the text of one choice into what an AnswerShape takes: content, reasoning and tool
// calls with ids.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/answer_shape.hpp"
#include "text/tools/answer_splitter.hpp"

namespace cyb::server {

class SplitChoice {
 public:
  /// `new_id`: a new text with a beginning; ids of calls are made of it.
  using NewId = std::function<std::string(std::string_view beginning)>;
  SplitChoice(const SplitOptions& options, NewId new_id);

  /// The next text; `over`: it is the last, and `reason` why.
  void push(std::string_view text, bool over, FinishReason reason);
  bool has_calls() const noexcept { return splitter_.n_calls() > 0; }

  /// What came since the last call of this, in at most one piece of each kind; valid until push().
  /// `visit` is called at least once.
  void visit(const std::function<void(AnswerPiece)>& visit);

 private:
  CallIds ids_ = CallIds::kLong;
  NewId new_id_;
  AnswerSplitter splitter_;
  std::vector<AnswerPart> parts_;
};

/// A whole choice.
Answer split_answer(const SplitOptions& options, const SplitChoice::NewId& new_id,
                    const GenerateResult& result);

}  // namespace cyb::server
