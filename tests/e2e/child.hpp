// Programs that run beside a test, and files.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace cyb::test {

inline std::string read_all(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(stream)), {});
}

inline void write_all(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// A child that reads its standard input to the end and is gone with this object.
class Child {
 public:
  Child(std::vector<std::string> command, const std::vector<std::string>& environment) {
    std::array<int, 2> in{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], 0);
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, 1);
      ::dup2(null, 2);
      for (const std::string& entry : environment)
        ::setenv(entry.substr(0, entry.find('=')).c_str(),
                 entry.substr(entry.find('=') + 1).c_str(), 1);
      std::vector<char*> words;
      for (std::string& word : command) words.push_back(word.data());
      words.push_back(nullptr);
      ::execvp(words[0], words.data());
      ::_exit(127);
    }
    ::close(in[0]);
    in_ = in[1];
  }
  ~Child() {
    ::close(in_);
    end(SIGKILL);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int end(int signal) {
    if (pid_ <= 0) return -1;
    int status = 0;
    if (signal != 0) ::kill(pid_, signal);
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int in_ = -1;
};

/// The text of a file as soon as it has some; "" after 30 seconds without.
inline std::string wait_for_text(const std::string& path) {
  for (int i = 0; i < 1500; ++i) {
    if (std::string text = read_all(path); !text.empty()) return text;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return {};
}

}  // namespace cyb::test
