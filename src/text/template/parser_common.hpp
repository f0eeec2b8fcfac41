// Shared by the two halves of the parser: the nesting guard.
#pragma once

#include <fmt/format.h>

#include "base/limits.hpp"
#include "text/template/parser.hpp"

namespace cyb::tmpl {

class Parser::Nest {
 public:
  explicit Nest(Parser& parser) : parser_(parser) {
    if (++parser_.depth_ > kMaxTemplateDepth) {
      parser_.fail(fmt::format("nested more than {} deep", kMaxTemplateDepth));
    }
  }
  ~Nest() { --parser_.depth_; }
  Nest(const Nest&) = delete;
  Nest& operator=(const Nest&) = delete;

 private:
  Parser& parser_;
};

}  // namespace cyb::tmpl
