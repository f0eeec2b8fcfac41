// Scoped helpers of the interpreter: the depth of evaluation, and captured output.
#pragma once

#include "text/template/interpreter.hpp"

namespace cyb::tmpl {

class Interpreter::Deeper {
 public:
  // A level takes a few hundred bytes of stack; threads have 512 KiB at least.
  static constexpr unsigned kMaxDepth = 640;

  explicit Deeper(Interpreter& owner) : owner_(owner) {
    if (owner_.depth_ >= kMaxDepth) owner_.context_.fail("nested too deeply");
    ++owner_.depth_;
  }
  ~Deeper() { --owner_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  Interpreter& owner_;
};

class Interpreter::Captured {
 public:
  explicit Captured(Interpreter& owner) : owner_(owner), outer_(owner.buffer_) {
    owner_.buffer_ = &own_;
  }
  ~Captured() { owner_.buffer_ = outer_; }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  Value finish() { return own_.finish(owner_.context_); }

 private:
  Interpreter& owner_;
  Builder own_;
  Builder* outer_;
};

}  // namespace cyb::tmpl
