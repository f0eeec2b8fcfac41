// While a request is being answered the socket is still read: that is how a client that goes away
// is seen at once.
#include "server/http/connection.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <vector>

namespace cyb::http {
namespace {

namespace asio = boost::asio;
using Code = boost::system::error_code;
using Milliseconds = std::chrono::milliseconds;

constexpr std::size_t kMaxPipelinedBytes = 64U << 10;
constexpr std::size_t kMaxDiscardedBytes = 16U << 20;
constexpr Milliseconds kLinger{2000};

std::string head_text(const Response& r, bool chunked, bool keep_alive) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", r.status, status_text(r.status));
  if (!r.content_type.empty()) out += "Content-Type: " + r.content_type + "\r\n";
  for (const Header& header : r.headers) out += header.name + ": " + header.value + "\r\n";
  if (chunked) {
    out += "Transfer-Encoding: chunked\r\n";
  }
  if (!keep_alive) out += "Connection: close\r\n";
  return out;
}

}  // namespace

class LiveExchange;

class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Shared> shared, std::unique_ptr<Stream> stream,
             std::string local_address)
      : shared_(std::move(shared)),
        stream_(std::move(stream)),
        timer_(stream_->executor()),
        reader_(shared_->options.limits),
        local_address_(std::move(local_address)) {
    ++shared_->n_connections;
  }
  ~Connection() {
    --shared_->n_connections;
    const std::lock_guard lock(shared_->mutex);
    shared_->connections.erase(this);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start() {
    arm(shared_->options.header_timeout);
    stream_->begin([self = shared_from_this()](const Code& code) {
      self->begun_ = true;
      if (self->closed_) return;
      code ? self->close() : self->read();
    });
  }
  /// From any thread. `idle_only`: a connection that is answering goes on.
  void close_soon(bool idle_only) {
    asio::post(stream_->executor(), [self = shared_from_this(), idle_only] {
      if (!idle_only || !self->handling_) self->close();
    });
  }
  const Shared& shared() const noexcept { return *shared_; }

  /// From any thread: more of the answer. False: nobody reads it.
  bool queue(std::string_view text, bool bounded) {
    {
      const std::lock_guard lock(mutex_);
      if (dead_) return false;
      if (bounded && pending_.size() + text.size() > shared_->options.max_pending_bytes) {
        dead_ = true;
      } else {
        pending_ += text;
        if (std::exchange(flushing_, true)) return true;
      }
      if (dead_) {
        close_soon(false);
        return false;
      }
    }
    asio::post(stream_->executor(), [self = shared_from_this()] { self->flush(); });
    return true;
  }
  /// From any thread: the answer is complete.
  void finish(std::string_view text, bool keep_alive) {
    {
      const std::lock_guard lock(mutex_);
      answer_over_ = true;
      keep_alive_ = keep_alive;
    }
    queue(text, false);
  }

 private:
  void arm(Milliseconds time) {
    const std::uint64_t number = ++timer_number_;
    timer_.expires_after(time);
    timer_.async_wait([self = shared_from_this(), number](const Code& code) {
      if (!code && number == self->timer_number_) self->timed_out();
    });
  }
  void disarm() {
    ++timer_number_;
    timer_.cancel();
  }
  void timed_out() {
    const bool asking = begun_ && !handling_ && !lingering_ && (head_begun_ || in_body_);
    asking ? refuse(408) : close();
  }

  void read() {
    if (reading_ || end_of_input_ || closed_) return;
    if (handling_ && input_.size() >= kMaxPipelinedBytes) return;
    reading_ = true;
    stream_->read_some(asio::buffer(bytes_),
                       [self = shared_from_this()](const Code& code, std::size_t n) {
                         self->reading_ = false;
                         self->on_read(code, n);
                       });
  }
  void on_read(const Code& code, std::size_t n) {
    if (closed_) return;
    if (code && code != asio::error::eof) return close();
    if (code) {
      end_of_input_ = true;
      if (lingering_) return close();
      return handling_ ? tell_gone() : process();
    }
    if (lingering_) {
      discarded_ += n;
      if (discarded_ > kMaxDiscardedBytes) return close();
    } else {
      input_.append(bytes_.data(), n);
      if (!handling_) process();
    }
    read();
  }

  /// Takes requests out of what was read, until one is being answered or more is needed.
  void process() {
    while (!handling_ && !closed_) {
      input_.erase(0, reader_.feed(input_));
      switch (reader_.state()) {
        case RequestReader::State::kBad:
          return refuse(reader_.status());
        case RequestReader::State::kHeadDone:
          if (!begin_body()) return;
          break;
        case RequestReader::State::kDone:
          return dispatch(reader_.take());
        default:
          if (end_of_input_) return close();
          if (!input_.empty() && !head_begun_ && !in_body_) {
            head_begun_ = true;
            arm(shared_->options.header_timeout);
          }
          return;
      }
    }
  }
  bool begin_body() {
    RequestHead head = reader_.head();
    head.local_address = local_address_;
    if (shared_->hooks.check_head) {
      if (const auto refused = shared_->hooks.check_head(head)) {
        send_refusal(*refused, head.method == "HEAD");
        return false;
      }
    }
    if (reader_.expects_continue()) queue("HTTP/1.1 100 Continue\r\n\r\n", false);
    reader_.accept_body();
    head_begun_ = false;
    in_body_ = true;
    arm(shared_->options.body_timeout);
    return true;
  }
  void refuse(unsigned status) { send_refusal(shared_->hooks.refuse(status), false); }
  void send_refusal(const Response& response, bool head_only) {
    begin_answer();
    finish(head_text(response, false, false) +
               fmt::format("Content-Length: {}\r\n\r\n", response.body.size()) +
               (head_only ? "" : response.body),
           false);
  }
  void begin_answer() {
    handling_ = true;
    head_begun_ = in_body_ = false;
    disarm();
    const std::lock_guard lock(shared_->mutex);
    ++shared_->n_exchanges;
  }
  void dispatch(Request request);

  /// Writes what is pending; at its end looks whether the answer is complete.
  void flush() {
    if (closed_) return;
    bool over = false;
    {
      const std::lock_guard lock(mutex_);
      if (pending_.empty()) {
        flushing_ = false;
        over = std::exchange(answer_over_, false);
      }
      writing_.clear();
      writing_.swap(pending_);
      written_ = 0;
    }
    if (!writing_.empty()) return write();
    if (over) return finished();
    if (handling_) disarm();
  }
  void write() {
    if (handling_) arm(shared_->options.write_timeout);
    stream_->write_some(asio::buffer(writing_.data() + written_, writing_.size() - written_),
                        [self = shared_from_this()](const Code& code, std::size_t n) {
                          if (self->closed_) return;
                          if (code) return self->close();
                          self->written_ += n;
                          self->written_ == self->writing_.size() ? self->flush() : self->write();
                        });
  }
  void finished() {
    disarm();
    current_.reset();
    handling_ = false;
    std::string().swap(writing_);
    shared_->answered();
    bool keep = false;
    {
      const std::lock_guard lock(mutex_);
      keep = keep_alive_ && !shared_->closing.load();
    }
    if (!keep) return linger();
    arm(shared_->options.idle_timeout);
    process();
    read();
  }
  /// A socket closed on unread bytes resets the connection and may take the answer with it.
  void linger() {
    stream_->end_of_output(shared_from_this());
    lingering_ = handling_ = true;
    if (end_of_input_) return close();
    input_.clear();
    arm(kLinger);
    read();
  }
  void tell_gone();
  void close() {
    if (std::exchange(closed_, true)) return;
    {
      const std::lock_guard lock(mutex_);
      dead_ = true;
    }
    disarm();
    stream_->close();
    if (handling_ && !lingering_) shared_->answered();
    tell_gone();
  }

  std::shared_ptr<Shared> shared_;  // first: the sockets live in its context
  std::unique_ptr<Stream> stream_;
  asio::steady_timer timer_;
  RequestReader reader_;
  std::weak_ptr<LiveExchange> current_;
  std::string local_address_, input_, writing_;
  std::size_t written_ = 0, discarded_ = 0;
  std::uint64_t timer_number_ = 0;
  bool begun_ = false, reading_ = false, end_of_input_ = false, closed_ = false, lingering_ = false;
  bool handling_ = false, head_begun_ = true, in_body_ = false;
  std::array<char, 4096> bytes_;

  std::mutex mutex_;  // guards what follows; the rest belongs to the strand
  std::string pending_;
  bool flushing_ = false, answer_over_ = false, keep_alive_ = false, dead_ = false;
};

class LiveExchange final : public Exchange {
 public:
  LiveExchange(std::shared_ptr<Connection> connection, Request request)
      : connection_(std::move(connection)), request_(std::move(request)) {}
  ~LiveExchange() override {
    if (stage_ == Stage::kNew) respond(connection_->shared().hooks.refuse(500));
    if (stage_ == Stage::kBegun) cut_off();
  }
  LiveExchange(const LiveExchange&) = delete;
  LiveExchange& operator=(const LiveExchange&) = delete;

  const Request& request() const noexcept override { return request_; }
  void respond(Response r) override {
    if (std::exchange(stage_, Stage::kOver) != Stage::kNew) return;
    std::string text = head_text(r, false, keep_alive());
    text += fmt::format("Content-Length: {}\r\n\r\n", r.body.size());
    if (request_.method != "HEAD") text += r.body;
    connection_->finish(text, keep_alive());
  }
  void begin(Response r) override {
    if (std::exchange(stage_, Stage::kBegun) != Stage::kNew) return;
    chunked_ = request_.version == 11;
    keep_alive_ &= chunked_;
    connection_->queue(head_text(r, chunked_, keep_alive()) + "\r\n" + framed(r.body), true);
  }
  bool write(std::string_view piece) override {
    return stage_ == Stage::kBegun && connection_->queue(framed(piece), true);
  }
  void end() override {
    if (std::exchange(stage_, Stage::kOver) != Stage::kBegun) return;
    connection_->finish(chunked_ ? "0\r\n\r\n" : "", keep_alive());
  }
  void cut_off() override {
    stage_ = Stage::kOver;
    connection_->close_soon(false);
  }
  void on_gone(std::function<void()> callback) override {
    const std::lock_guard lock(mutex_);
    if (gone_ && callback) return callback();
    callback_ = std::move(callback);
  }
  /// The callback runs under the lock, so that on_gone({}) knows it is not running any more.
  void tell_gone() {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    if (callback_) std::exchange(callback_, nullptr)();
  }

 private:
  enum class Stage : std::uint8_t { kNew, kBegun, kOver };
  bool keep_alive() const noexcept {
    return keep_alive_ && request_.keep_alive && !connection_->shared().closing.load();
  }
  std::string framed(std::string_view piece) const {
    if (!chunked_ || piece.empty()) return std::string(piece);
    return fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
  }

  std::shared_ptr<Connection> connection_;
  Request request_;
  bool chunked_ = false, keep_alive_ = true;
  Stage stage_ = Stage::kNew;
  std::mutex mutex_;  // guards what follows
  std::function<void()> callback_;
  bool gone_ = false;
};

void Connection::dispatch(Request request) {
  request.local_address = local_address_;
  begin_answer();
  auto exchange = std::make_shared<LiveExchange>(shared_from_this(), std::move(request));
  current_ = exchange;
  const bool taken = shared_->workers.post([exchange, shared = shared_] {
    try {
      shared->hooks.handle(exchange);
    } catch (const std::exception&) {
      // The exchange answers 500 when it is dropped.
    }
  });
  if (!taken) exchange->respond(shared_->hooks.refuse(503));
  if (end_of_input_) tell_gone();
}

void Connection::tell_gone() {
  if (const auto exchange = current_.lock()) exchange->tell_gone();
}

void start_connection(const std::shared_ptr<Shared>& shared, std::unique_ptr<Stream> stream,
                      std::string local_address) {
  const auto executor = stream->executor();
  auto connection =
      std::make_shared<Connection>(shared, std::move(stream), std::move(local_address));
  {
    const std::lock_guard lock(shared->mutex);
    shared->connections.emplace(connection.get(), connection);
  }
  asio::post(executor, [connection] { connection->start(); });
}

void close_connections(Shared& shared, bool idle_only) {
  std::vector<std::shared_ptr<Connection>> open;
  {
    const std::lock_guard lock(shared.mutex);
    for (const auto& [key, weak] : shared.connections) {
      if (auto connection = weak.lock()) open.push_back(std::move(connection));
    }
  }
  for (const auto& connection : open) connection->close_soon(idle_only);
}

}  // namespace cyb::http
