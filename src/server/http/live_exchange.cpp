// HTTP/1.1 gets chunks, HTTP/1.0 a body that ends with the connection.
#include "server/http/live_exchange.hpp"

#include <fmt/format.h>

#include "server/http/connection.hpp"

namespace cyb::http {

LiveExchange::~LiveExchange() {
  if (stage_ == Stage::kNew) respond(output_->shared().hooks.refuse(500, "", request_.peer));
  if (stage_ == Stage::kBegun) cut_off();
}

void LiveExchange::respond(Response r) {
  if (std::exchange(stage_, Stage::kOver) != Stage::kNew) return;
  std::string text = response_head(r, false, keep_alive());
  text += fmt::format("Content-Length: {}\r\n\r\n", r.body.size());
  if (request_.method != "HEAD") text += r.body;
  output_->finish(text, keep_alive());
}

void LiveExchange::begin(Response r) {
  if (std::exchange(stage_, Stage::kBegun) != Stage::kNew) return;
  chunked_ = request_.version == 11;
  keep_alive_ &= chunked_;
  output_->queue(response_head(r, chunked_, keep_alive()) + "\r\n" + framed(r.body), true);
}

void LiveExchange::begin_sized(Response r, std::uint64_t size_bytes) {
  if (std::exchange(stage_, Stage::kBegun) != Stage::kNew) return;
  left_bytes_ = request_.method == "HEAD" ? 0 : size_bytes;
  output_->queue(
      response_head(r, false, keep_alive()) + fmt::format("Content-Length: {}\r\n\r\n", size_bytes),
      true);
}

bool LiveExchange::write(std::string_view piece) {
  if (stage_ != Stage::kBegun || (left_bytes_ && piece.size() > *left_bytes_)) return false;
  if (left_bytes_) *left_bytes_ -= piece.size();
  return output_->queue(framed(piece), true);
}

void LiveExchange::on_drained(std::function<void()> callback) {
  output_->on_drained(std::move(callback));
}

void LiveExchange::end() {
  if (stage_ == Stage::kBegun && left_bytes_.value_or(0) != 0) return cut_off();
  if (std::exchange(stage_, Stage::kOver) != Stage::kBegun) return;
  output_->finish(chunked_ ? "0\r\n\r\n" : "", keep_alive());
}

void LiveExchange::cut_off() {
  stage_ = Stage::kOver;
  output_->close_soon(false);
}

void LiveExchange::on_gone(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  if (gone_ && callback) return callback();
  callback_ = std::move(callback);
}

void LiveExchange::tell_gone() {
  const std::lock_guard lock(mutex_);
  gone_ = true;
  if (callback_) std::exchange(callback_, nullptr)();
}

bool LiveExchange::keep_alive() const noexcept {
  return keep_alive_ && request_.keep_alive && !output_->shared().closing.load();
}

std::string LiveExchange::framed(std::string_view piece) const {
  if (!chunked_ || piece.empty()) return std::string(piece);
  return fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
}

}  // namespace cyb::http
