// While a request is being answered the socket is still read: that is how a client that goes away
// is seen at once. The end of its bytes alone says less: it may still read (half-closed).
#include "server/http/connection.hpp"

#include <fmt/format.h>

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <vector>

#include "server/http/live_exchange.hpp"

namespace cyb::http {
namespace {

namespace asio = boost::asio;
using Code = boost::system::error_code;
using Milliseconds = std::chrono::milliseconds;

constexpr std::size_t kMaxPipelinedBytes = 64U << 10;
constexpr std::size_t kMaxDiscardedBytes = 16U << 20;
constexpr Milliseconds kLinger{2000};
constexpr std::string_view kInterim = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

class Connection final : public AnswerOutput, public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<Shared> shared, std::unique_ptr<Stream> stream, Ends ends)
      : shared_(std::move(shared)),
        stream_(std::move(stream)),
        timer_(stream_->executor()),
        reader_(shared_->options.limits),
        ends_(std::move(ends)) {
    ++shared_->n_connections;
  }
  ~Connection() override {
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
  void close_soon(bool idle_only) override {
    asio::post(stream_->executor(), [self = shared_from_this(), idle_only] {
      if (!idle_only || !self->handling_) self->close();
    });
  }
  const Shared& shared() const noexcept override { return *shared_; }

  bool queue(std::string_view text, bool bounded) override {
    {
      const std::lock_guard lock(mutex_);
      if (dead_) return false;
      answer_begun_ = true;
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
  void on_drained(std::function<void()> callback) override {
    {
      const std::lock_guard lock(mutex_);
      if (dead_) return;
      if (flushing_) {
        drained_ = std::move(callback);
        return;
      }
    }
    callback();
  }
  void finish(std::string_view text, bool keep_alive) override {
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
      return handling_ ? half_closed() : process();
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
          return refuse(reader_.status(), reader_.why());
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
    name_ends(head);
    if (shared_->hooks.check_head) {
      if (const auto refused = shared_->hooks.check_head(head)) {
        send_refusal(*refused, head.method == "HEAD");
        return false;
      }
    }
    if (reader_.expects_continue()) queue(kInterim, false);
    reader_.accept_body();
    head_begun_ = false;
    in_body_ = true;
    arm(shared_->options.body_timeout);
    return true;
  }
  void refuse(unsigned status, std::string_view why = {}) {
    send_refusal(shared_->hooks.refuse(status, why, ends_.peer), false);
  }
  void name_ends(RequestHead& head) const {
    head.local_address = ends_.local;
    head.peer = ends_.peer;
  }
  void send_refusal(const Response& response, bool head_only) {
    begin_answer();
    finish(response_head(response, false, false) +
               fmt::format("Content-Length: {}\r\n\r\n", response.body.size()) +
               (head_only ? "" : response.body),
           false);
  }
  void begin_answer() {
    handling_ = true;
    head_begun_ = in_body_ = false;
    disarm();
    {
      const std::lock_guard lock(mutex_);
      answer_begun_ = false;
    }
    const std::lock_guard lock(shared_->mutex);
    ++shared_->n_exchanges;
  }
  void dispatch(Request request);
  void half_closed();
  /// A client that only reads skips an interim answer (RFC 9110, 15.2), one that is gone resets the
  /// connection. After the answer's head its own bytes do the same.
  void probe() {
    if (!std::exchange(watching_, true)) {
      stream_->wait_broken([self = shared_from_this()](const Code& code) {
        if (!code && !self->closed_) self->close();
      });
    }
    {
      const std::lock_guard lock(mutex_);
      if (answer_begun_ || dead_) return;
      pending_ += kInterim;
      if (std::exchange(flushing_, true)) return;
    }
    flush();
  }

  /// Writes what is pending; at its end looks whether the answer is complete.
  void flush() {
    if (closed_) return;
    bool over = false;
    std::function<void()> drained;
    {
      const std::lock_guard lock(mutex_);
      if (pending_.empty()) {
        flushing_ = false;
        drained = std::exchange(drained_, nullptr);
        over = std::exchange(answer_over_, false);
      }
      writing_.clear();
      writing_.swap(pending_);
      written_ = 0;
    }
    if (!writing_.empty()) return write();
    if (over) return finished();
    if (handling_) disarm();
    if (drained) drained();
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
    std::function<void()> drained;  // may own the exchange: it goes without the lock
    {
      const std::lock_guard lock(mutex_);
      dead_ = true;
      drained = std::exchange(drained_, nullptr);
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
  Ends ends_;
  std::string input_, writing_;
  std::size_t written_ = 0, discarded_ = 0;
  std::uint64_t timer_number_ = 0;
  bool begun_ = false, reading_ = false, end_of_input_ = false, closed_ = false, lingering_ = false;
  bool watching_ = false;
  bool handling_ = false, head_begun_ = true, in_body_ = false;
  std::array<char, 4096> bytes_;

  std::mutex mutex_;  // guards what follows; the rest belongs to the strand
  std::string pending_;
  std::function<void()> drained_;
  bool flushing_ = false, answer_begun_ = false, answer_over_ = false, keep_alive_ = false,
       dead_ = false;
};

void Connection::dispatch(Request request) {
  name_ends(request);
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
  if (!taken) exchange->respond(shared_->hooks.refuse(503, "", ends_.peer));
  if (end_of_input_) half_closed();
}

/// To HTTP/1.0 nothing can be said before the answer: such a client counts as gone.
void Connection::half_closed() {
  const auto exchange = current_.lock();
  if (exchange && exchange->request().version == 10) return exchange->tell_gone();
  probe();
}

void Connection::tell_gone() {
  if (const auto exchange = current_.lock()) exchange->tell_gone();
}

void start_connection(const std::shared_ptr<Shared>& shared, std::unique_ptr<Stream> stream,
                      Ends ends) {
  const auto executor = stream->executor();
  auto connection = std::make_shared<Connection>(shared, std::move(stream), std::move(ends));
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
