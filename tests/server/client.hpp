// A client on a plain socket that can do everything wrong: cut requests anywhere, not read, vanish.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace cyb::test {

struct Reply {
  int status = 0;  // 0: the connection ended without one
  std::string head, body;
  std::vector<std::string> chunks;  // where the body was chunked
  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
  std::string code() const {
    const auto value = json();
    return value.is_object() && value.contains("error") ? value["error"]["code"].get<std::string>()
                                                        : "";
  }
  /// Payloads of server-sent events.
  std::vector<std::string> events() const {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < body.size();) {
      const std::size_t end = body.find("\n\n", at);
      if (end == std::string::npos || body.compare(at, 6, "data: ") != 0) return {"malformed"};
      out.push_back(body.substr(at + 6, end - at - 6));
      at = end + 2;
    }
    return out;
  }
};

class Client {
 public:
  struct Socket {
    int fd;
  };
  explicit Client(Socket socket) : fd_(socket.fd), connected_(socket.fd >= 0) {}
  explicit Client(std::uint16_t port, int receive_buffer = 0) {
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer > 0) {
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Client() { close(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  /// Ends with a reset instead of an orderly end.
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close();
  }
  void close_sending() { ::shutdown(fd_, SHUT_WR); }

  /// Reads until `text` was seen, or the end. False: the end.
  bool wait_for(std::string_view text, int timeout_ms = 20000) {
    while (input_.find(text) == std::string::npos) {
      if (!fill(timeout_ms)) return false;
    }
    return true;
  }
  /// True once the server has closed the connection.
  bool ended(int timeout_ms = 20000) {
    while (fill(timeout_ms)) {
    }
    return end_;
  }
  Reply reply(bool head_only = false) {
    Reply out;
    if (!wait_for("\r\n\r\n")) return out;
    const std::size_t end = input_.find("\r\n\r\n") + 4;
    out.head = input_.substr(0, end);
    input_.erase(0, end);
    out.status = std::atoi(out.head.c_str() + 9);
    if (head_only || out.status == 100) return out;
    if (out.head.find("Transfer-Encoding: chunked") != std::string::npos) {
      read_chunks(out);
    } else if (const auto at = out.head.find("Content-Length: "); at != std::string::npos) {
      const auto size = static_cast<std::size_t>(std::atoll(out.head.c_str() + at + 16));
      while (input_.size() < size && fill(20000)) {
      }
      out.body = input_.substr(0, size);
      input_.erase(0, size);
    }
    return out;
  }
  /// Takes `n` bytes from the socket, and no more. False: the end.
  bool read_exactly(std::size_t n) {
    std::string bytes(n, '\0');
    return ::recv(fd_, bytes.data(), n, MSG_WAITALL) == static_cast<ssize_t>(n);
  }
  /// Past interim ones.
  Reply final_reply() {
    Reply out = reply();
    while (out.status == 100) out = reply();
    return out;
  }

 private:
  bool fill(int timeout_ms) {
    pollfd polled{fd_, POLLIN, 0};
    if (::poll(&polled, 1, timeout_ms) <= 0) return false;
    std::array<char, 16384> bytes;
    const ssize_t n = ::recv(fd_, bytes.data(), bytes.size(), 0);
    end_ |= n <= 0;
    if (n <= 0) return false;
    input_.append(bytes.data(), static_cast<std::size_t>(n));
    return true;
  }
  void read_chunks(Reply& out) {
    while (true) {
      std::size_t line = 0;
      while ((line = input_.find("\r\n")) == std::string::npos) {
        if (!fill(20000)) return;
      }
      const auto size = static_cast<std::size_t>(std::strtoull(input_.c_str(), nullptr, 16));
      while (input_.size() < line + 2 + size + 2) {
        if (!fill(20000)) return;
      }
      if (size > 0) out.chunks.push_back(input_.substr(line + 2, size));
      out.body += input_.substr(line + 2, size);
      input_.erase(0, line + 2 + size + 2);
      if (size == 0) return;
    }
  }

  int fd_ = -1;
  bool connected_ = false, end_ = false;
  std::string input_;
};

inline std::string get_text(const std::string& path, const std::string& headers = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

inline std::string post_text(const std::string& path, const std::string& body,
                             const std::string& headers = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Type: application/json\r\n" +
         headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

inline Reply ask(std::uint16_t port, const std::string& text) {
  Client client(port);
  client.send(text);
  return client.reply();
}

inline Reply post(std::uint16_t port, const std::string& path, const nlohmann::json& body) {
  return ask(port, post_text(path, body.dump()));
}

/// Within `ms`, which is long: a machine may be busy with other things.
template <class F>
bool soon(const F& condition, int ms = 15000) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    ::usleep(2000);
  }
  return true;
}

}  // namespace cyb::test
