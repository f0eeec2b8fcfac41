// Characters are read here, by poll() on the terminal and on the interrupt pipe, so that no signal
// handler is needed.
#include "cli/line_editor.hpp"

#include <fcntl.h>
#include <histedit.h>
#include <poll.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file.hpp"
#include "base/utf8.hpp"

namespace cyb::cli {
namespace {

constexpr int kHistoryLines = 1000;

}  // namespace

struct LineEditor::Impl {
  Interrupts& interrupts;
  std::string history_file, prompt;
  EditLine* editor = nullptr;
  History* history = nullptr;
  bool interrupted = false;
  bool malformed = false;                       // the line at hand had bytes that are no UTF-8
  std::optional<termios> found = std::nullopt;  // the terminal as it was, while we change it

  /// Neither echo nor line editing of the system: what is typed meanwhile stays in the queue as it
  /// came. Ctrl-C goes on to be a signal.
  void be_quiet() const;
  /// One character into `*out`; 1: read, 0: end or interrupted.
  int read_char(wchar_t* out);
  bool wait_for_input();
  void open_history();
  void remember(const std::string& line);
};

namespace {

/// The client data that el_set() stored is the only thing a callback gets.
LineEditor::Impl* impl_of(EditLine* editor) {
  void* data = nullptr;
  el_get(editor, EL_CLIENTDATA, &data);
  return static_cast<LineEditor::Impl*>(data);
}

}  // namespace

void LineEditor::Impl::be_quiet() const {
  if (!found) return;
  termios quiet = *found;
  quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | IEXTEN);
  quiet.c_cc[VMIN] = 1;
  quiet.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
}

bool LineEditor::Impl::wait_for_input() {
  while (true) {
    std::array<pollfd, 2> ready = {pollfd{STDIN_FILENO, POLLIN, 0},
                                   pollfd{interrupts.wake_fd(), POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return false;
    if (ready[1].revents != 0) {
      interrupts.clear_wake();
      interrupted = true;
      return false;
    }
    if (ready[0].revents != 0) return true;
  }
}

int LineEditor::Impl::read_char(wchar_t* out) {
  std::string bytes;
  while (true) {
    if (!wait_for_input()) return 0;
    char byte = 0;
    if (::read(STDIN_FILENO, &byte, 1) != 1) return 0;
    bytes += byte;
    const Utf8Char c = utf8_next(bytes, 0);
    if (c.truncated) continue;
    if (!c.valid) malformed = true;
    *out = static_cast<wchar_t>(c.code_point);
    return 1;
  }
}

void LineEditor::Impl::open_history() {
  HistEvent event;
  history = history_init();
  ::history(history, &event, H_SETSIZE, kHistoryLines);
  ::history(history, &event, H_SETUNIQUE, 1);
  el_set(editor, EL_HIST, ::history, history);
  const std::size_t slash = history_file.rfind('/');
  if (slash != std::string::npos && !make_folders(history_file.substr(0, slash))) return;
  // What people type is theirs alone: the file exists with mode 0600 before anything is written to
  // it.
  const int fd = ::open(history_file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
  ::history(history, &event, H_LOAD, history_file.c_str());
}

void LineEditor::Impl::remember(const std::string& line) {
  HistEvent event;
  ::history(history, &event, H_ENTER, line.c_str());
  ::history(history, &event, H_SAVE, history_file.c_str());
}

LineEditor::LineEditor(Interrupts& interrupts, std::string history_file)
    : impl_(std::make_unique<Impl>(Impl{interrupts, std::move(history_file), {}})) {
  if (termios found{}; ::tcgetattr(STDIN_FILENO, &found) == 0) {
    impl_->found = found;
    interrupts.set_cleanup([found] { ::tcsetattr(STDIN_FILENO, TCSANOW, &found); });
  }
  impl_->editor = el_init("cyb-llm", stdin, stdout, stderr);
  if (impl_->editor == nullptr) return;
  el_set(impl_->editor, EL_CLIENTDATA, impl_.get());
  el_set(impl_->editor, EL_EDITOR, "emacs");
  el_set(impl_->editor, EL_SIGNAL, 0);
  // As be_quiet(), from the first moment that libedit leaves the terminal to the system.
  el_set(impl_->editor, EL_SETTY, "-x", "-echo", "-icanon", "-iexten", nullptr);
  el_set(impl_->editor, EL_PROMPT,
         static_cast<char* (*)(EditLine*)>([](EditLine* e) { return impl_of(e)->prompt.data(); }));
  el_set(impl_->editor, EL_GETCFN,
         static_cast<int (*)(EditLine*, wchar_t*)>(
             [](EditLine* e, wchar_t* c) { return impl_of(e)->read_char(c); }));
  impl_->open_history();
}

LineEditor::~LineEditor() {
  if (impl_->history != nullptr) history_end(impl_->history);
  if (impl_->editor != nullptr) el_end(impl_->editor);
  if (!impl_->found) return;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &*impl_->found);
  impl_->interrupts.set_cleanup({});
}

LineEditor::Line LineEditor::read(const std::string& prompt) {
  if (impl_->editor == nullptr) return {};
  impl_->prompt = prompt;
  impl_->interrupted = false;
  impl_->malformed = false;
  impl_->interrupts.clear_wake();
  int n = 0;
  const char* text = el_gets(impl_->editor, &n);
  impl_->be_quiet();
  if (impl_->interrupted || text == nullptr || n <= 0) {
    [[maybe_unused]] const ssize_t written = ::write(STDOUT_FILENO, "\n", 1);
    const bool end = !impl_->interrupted || impl_->interrupts.terminating();
    return {end ? Kind::kEnd : Kind::kInterrupted, {}};
  }
  if (impl_->malformed) return {Kind::kMalformed, {}};
  std::string line(text, static_cast<std::size_t>(n));
  while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
  if (!line.empty()) impl_->remember(line);
  return {Kind::kText, std::move(line)};
}

}  // namespace cyb::cli
