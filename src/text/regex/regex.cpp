// The only file that knows PCRE2.
#include "text/regex/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <string>

#include "text/regex/dialect.hpp"

namespace cyb::text {
namespace {

// Steps of one match: enough for a run of one character as long as the text.
constexpr std::uint32_t kMatchSteps = 1'000'000, kStepsPerByte = 32;
constexpr std::size_t kStackBytes = std::size_t{1} << 20, kMaxStackBytes = std::size_t{1} << 27;
constexpr std::uint32_t kHeapKib = 262'144;
constexpr std::uint32_t kNestLimit = 100;

struct Free {
  void operator()(pcre2_code* p) const noexcept { pcre2_code_free(p); }
  void operator()(pcre2_compile_context* p) const noexcept { pcre2_compile_context_free(p); }
  void operator()(pcre2_match_context* p) const noexcept { pcre2_match_context_free(p); }
  void operator()(pcre2_jit_stack* p) const noexcept { pcre2_jit_stack_free(p); }
  void operator()(pcre2_match_data* p) const noexcept { pcre2_match_data_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  const int size = pcre2_get_error_message(code, text.data(), text.size());
  return size > 0 ? std::string(reinterpret_cast<const char*>(text.data())) : std::string("?");
}

}  // namespace

struct Regex::Code {
  Owned<pcre2_code> code;
  std::string pattern;
};

Result<Regex> Regex::compile(std::string_view pattern) {
  CYB_ASSIGN(const std::string text, pcre_pattern(pattern));
  const Owned<pcre2_compile_context> context(pcre2_compile_context_create(nullptr));
  auto made = std::make_shared<Code>();
  if (!context) return fail(internal_error("no memory for a regular expression"));
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), kNestLimit);
  int error = 0;
  PCRE2_SIZE offset = 0;
  constexpr std::uint32_t kOptions =
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_BACKSLASH_C;
  made->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), kOptions,
                                 &error, &offset, context.get()));
  made->pattern = pattern.substr(0, 160);
  if (!made->code) {
    return fail(
        not_built(fmt::format("regular expression \"{}\": {}", made->pattern, message_of(error))));
  }
  // Without JIT (a system that forbids it) the interpreter does the same work.
  (void)pcre2_jit_compile(made->code.get(), PCRE2_JIT_COMPLETE);
  Regex out;
  out.code_ = std::move(made);
  return out;
}

struct RegexScan::State {
  std::shared_ptr<const Regex::Code> code;
  std::string_view text;
  Owned<pcre2_match_data> data;
  Owned<pcre2_match_context> limits;
  Owned<pcre2_jit_stack> stack;  // only where the small one of the library was too small
};

RegexScan::RegexScan(const Regex& regex, std::string_view text)
    : state_(std::make_unique<State>()) {
  state_->code = regex.code_;
  state_->text = text;
  state_->data.reset(pcre2_match_data_create(1, nullptr));
  state_->limits.reset(pcre2_match_context_create(nullptr));
  if (!state_->limits) return;
  const std::size_t steps =
      kMatchSteps + std::min<std::size_t>(text.size(), 1U << 26) * kStepsPerByte;
  pcre2_set_match_limit(state_->limits.get(), static_cast<std::uint32_t>(steps));
  pcre2_set_heap_limit(state_->limits.get(), kHeapKib);
}

RegexScan::~RegexScan() = default;

Result<RegexScan::Match> RegexScan::find(std::size_t from) {
  if (!state_->data || !state_->limits)
    return fail(internal_error("no memory for a regular expression"));
  const auto match = [&](std::uint32_t options) {
    return pcre2_match(state_->code->code.get(), reinterpret_cast<PCRE2_SPTR>(state_->text.data()),
                       state_->text.size(), from, PCRE2_NO_UTF_CHECK | options, state_->data.get(),
                       state_->limits.get());
  };
  int rc = match(0);
  if (rc == PCRE2_ERROR_JIT_STACKLIMIT && !state_->stack) {
    state_->stack.reset(pcre2_jit_stack_create(kStackBytes, kMaxStackBytes, nullptr));
    if (state_->stack) {
      pcre2_jit_stack_assign(state_->limits.get(), nullptr, state_->stack.get());
      rc = match(0);
    }
  }
  if (rc == PCRE2_ERROR_NOMATCH) return Match{};
  if (rc < 0) {
    return fail(tokenizer_error(
        fmt::format("regular expression \"{}\": {}", state_->code->pattern, message_of(rc))));
  }
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(state_->data.get());
  return Match{ends[0], ends[1], true};
}

}  // namespace cyb::text
