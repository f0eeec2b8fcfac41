// A connection of HttpServer: one strand that reads requests one after the other and writes what an
// exchange hands over. Internal to this folder.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "server/http/http_server.hpp"
#include "server/http/listener.hpp"
#include "server/http/stream.hpp"

namespace cyb::http {

class Connection;

/// What the connections of a server share.
struct Shared {
  Shared(HttpOptions o, HttpHooks h, WorkerPool& w)
      : options(std::move(o)), hooks(std::move(h)), workers(w) {}
  void answered() {
    const std::lock_guard lock(mutex);
    --n_exchanges;
    closed.notify_all();
  }

  HttpOptions options;
  HttpHooks hooks;
  WorkerPool& workers;
  boost::asio::io_context io;
  std::atomic<bool> closing{false};
  std::atomic<std::uint32_t> n_connections{0};
  std::mutex mutex;  // guards what follows
  std::condition_variable closed;
  std::uint32_t n_exchanges = 0;
  std::unordered_map<const Connection*, std::weak_ptr<Connection>> connections;
};

/// Reads its first request; it keeps itself alive until it is closed.
void start_connection(const std::shared_ptr<Shared>& shared, std::unique_ptr<Stream> stream,
                      Ends ends);

/// Closes all of them; `idle_only`: those that are answering go on.
void close_connections(Shared& shared, bool idle_only);

}  // namespace cyb::http
