// LiveExchange: one request of a connection and its answer on the way out. Internal to this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/http/message.hpp"

namespace cyb::http {

struct Shared;

/// Where the bytes of an answer go, from any thread.
class AnswerOutput {
 public:
  virtual ~AnswerOutput() = default;
  /// More of the answer; `bounded`: not more than the client may leave unread. False: nobody reads
  /// it.
  virtual bool queue(std::string_view text, bool bounded) = 0;
  /// The answer is complete.
  virtual void finish(std::string_view text, bool keep_alive) = 0;
  /// `idle_only`: a connection that is answering goes on.
  virtual void close_soon(bool idle_only) = 0;
  /// As Exchange::on_drained().
  virtual void on_drained(std::function<void()> callback) = 0;
  virtual const Shared& shared() const noexcept = 0;
};

class LiveExchange final : public Exchange {
 public:
  LiveExchange(std::shared_ptr<AnswerOutput> output, Request request)
      : output_(std::move(output)), request_(std::move(request)) {}
  ~LiveExchange() override;
  LiveExchange(const LiveExchange&) = delete;
  LiveExchange& operator=(const LiveExchange&) = delete;

  const Request& request() const noexcept override { return request_; }
  void respond(Response response) override;
  void begin(Response head) override;
  bool write(std::string_view piece) override;
  void end() override;
  void begin_sized(Response head, std::uint64_t size_bytes) override;
  void on_drained(std::function<void()> callback) override;
  void cut_off() override;
  void on_gone(std::function<void()> callback) override;
  /// The client is gone. The callback runs under the lock, so that on_gone({}) knows it is not
  /// running any more.
  void tell_gone();

 private:
  enum class Stage : std::uint8_t { kNew, kBegun, kOver };
  bool keep_alive() const noexcept;
  std::string framed(std::string_view piece) const;

  std::shared_ptr<AnswerOutput> output_;
  Request request_;
  bool chunked_ = false, keep_alive_ = true;
  std::optional<std::uint64_t> left_bytes_;  // of a body whose size the head says
  Stage stage_ = Stage::kNew;
  std::mutex mutex_;  // guards what follows
  std::function<void()> callback_;
  bool gone_ = false;
};

}  // namespace cyb::http
