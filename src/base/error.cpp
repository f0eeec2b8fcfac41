// Error rendering: the one place that turns an Error into text or JSON.
#include "base/error.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/json_text.hpp"

namespace cyb {
namespace {

struct KindRow {
  ErrorKind kind;
  std::string_view name;
  int exit_code;
};

constexpr std::array kKinds = {
    KindRow{ErrorKind::kFormat, "Format", 2},
    KindRow{ErrorKind::kGraph, "Graph", 2},
    KindRow{ErrorKind::kDispatch, "Dispatch", 3},
    KindRow{ErrorKind::kUnsupportedOp, "UnsupportedOp", 3},
    KindRow{ErrorKind::kShapeMismatch, "ShapeMismatch", 2},
    KindRow{ErrorKind::kMissingTensor, "MissingTensor", 2},
    KindRow{ErrorKind::kWeightFormat, "WeightFormatMismatch", 2},
    KindRow{ErrorKind::kOutOfMemory, "OutOfMemory", 4},
    KindRow{ErrorKind::kBackendInit, "BackendInit", 4},
    KindRow{ErrorKind::kInvalidConfig, "InvalidConfig", 2},
    KindRow{ErrorKind::kTemplate, "Template", 2},
    KindRow{ErrorKind::kTokenizer, "Tokenizer", 1},
    KindRow{ErrorKind::kContextOverflow, "ContextOverflow", 1},
    KindRow{ErrorKind::kInvalidInput, "InvalidInput", 1},
    KindRow{ErrorKind::kDeviceLost, "DeviceLost", 4},
    KindRow{ErrorKind::kIo, "Io", 4},
    KindRow{ErrorKind::kNonFinite, "NonFinite", 4},
    KindRow{ErrorKind::kSourceEncoding, "SourceEncoding", 3},
    KindRow{ErrorKind::kBusy, "Busy", 4},
    KindRow{ErrorKind::kCancelled, "Cancelled", 5},
    KindRow{ErrorKind::kNotBuilt, "NotBuilt", 3},
    KindRow{ErrorKind::kInternal, "Internal", 4},
};

const KindRow& row(ErrorKind kind) noexcept {
  return kKinds[static_cast<std::size_t>(kind)];
}

}  // namespace

int exit_code(ErrorKind kind) noexcept {
  return row(kind).exit_code;
}
std::string_view kind_name(ErrorKind kind) noexcept {
  return row(kind).name;
}

Error::Error(ErrorKind kind, std::string code, std::string message)
    : impl_(std::make_unique<Impl>()) {
  impl_->kind = kind;
  impl_->code = code.empty() ? std::string(kind_name(kind)) : std::move(code);
  impl_->message = std::move(message);
}

Error::Error(const Error& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}

Error& Error::operator=(const Error& other) {
  if (this != &other) impl_ = std::make_unique<Impl>(*other.impl_);
  return *this;
}

Error&& Error::with(std::string key, std::string value) && {
  impl_->detail.emplace_back(std::move(key), std::move(value));
  return std::move(*this);
}

Error&& Error::in(std::string frame) && {
  impl_->frames.push_back(std::move(frame));
  return std::move(*this);
}

std::string Error::text() const {
  std::string out;
  for (auto it = impl_->frames.rbegin(); it != impl_->frames.rend(); ++it) {
    out += *it;
    out += ": ";
  }
  return out + impl_->message;
}

std::string Error::json() const {
  std::string out =
      fmt::format(R"({{"code":{},"kind":{},"message":{},"context":[)", json_quote(impl_->code),
                  json_quote(kind_name(impl_->kind)), json_quote(impl_->message));
  for (auto it = impl_->frames.rbegin(); it != impl_->frames.rend(); ++it) {
    if (it != impl_->frames.rbegin()) out += ',';
    out += json_quote(*it);
  }
  out += R"(],"detail":{)";
  for (std::size_t i = 0; i < impl_->detail.size(); ++i) {
    if (i != 0) out += ',';
    out += json_quote(impl_->detail[i].first) + ":" + json_quote(impl_->detail[i].second);
  }
  return out + "}}";
}

Error io_error(std::string_view path, std::string_view operation, std::string_view reason) {
  return Error(ErrorKind::kIo, fmt::format("{}: cannot {}: {}", path, operation, reason));
}

Error io_errno(std::string_view path, std::string_view operation, int errno_value) {
  std::array<char, 256> buffer{};
  return io_error(path, operation, ::strerror_r(errno_value, buffer.data(), buffer.size()));
}

Error invalid_config(std::string_view field, std::string_view reason) {
  return Error(ErrorKind::kInvalidConfig, fmt::format("config: {}: {}", field, reason))
      .with("field", std::string(field));
}

Error invalid_input(std::string_view what) {
  return Error(ErrorKind::kInvalidInput, fmt::format("input: {}", what));
}

Error missing_tensor(std::string_view name, std::string_view required_by) {
  return Error(ErrorKind::kMissingTensor,
               fmt::format("missing tensor \"{}\", required by {}", name, required_by))
      .with("tensor", std::string(name));
}

Error shape_mismatch(std::string_view op, std::string_view expected, std::string_view got) {
  return Error(ErrorKind::kShapeMismatch,
               fmt::format("Op::{}: expected {}, got {}", op, expected, got))
      .with("op", std::string(op));
}

Error unsupported_op(std::string_view op, std::string_view backend, std::string_view dtype) {
  return Error(ErrorKind::kUnsupportedOp,
               fmt::format("Op::{} not supported by {} for {}", op, backend, dtype))
      .with("op", std::string(op));
}

Error out_of_memory(std::string_view backend, std::uint64_t need_bytes,
                    std::uint64_t available_bytes) {
  return Error(ErrorKind::kOutOfMemory,
               fmt::format("{}: out of memory: need {} bytes, {} available", backend, need_bytes,
                           available_bytes));
}

Error context_overflow(std::uint64_t position, std::uint64_t limit) {
  return Error(ErrorKind::kContextOverflow,
               fmt::format("context overflow: position {} reaches the limit {}", position, limit))
      .with("position", std::to_string(position))
      .with("limit", std::to_string(limit));
}

Error non_finite(std::string_view op, std::string_view tensor, std::uint64_t index) {
  return Error(ErrorKind::kNonFinite,
               fmt::format("Op::{}: non-finite value in \"{}\" at {}", op, tensor, index));
}

Error busy(std::string_view what) {
  return Error(ErrorKind::kBusy, fmt::format("{} is in use by another run", what));
}

Error cancelled(std::uint64_t tokens_done) {
  return Error(ErrorKind::kCancelled, fmt::format("cancelled after {} tokens", tokens_done));
}

Error tokenizer_error(std::string_view reason) {
  return Error(ErrorKind::kTokenizer, fmt::format("tokenizer: {}", reason));
}

Error source_encoding(std::string_view tensor, std::string_view type) {
  return Error(ErrorKind::kSourceEncoding,
               fmt::format("tensor \"{}\": source encoding {} is not supported", tensor, type));
}

Error not_built(std::string_view what) {
  return Error(ErrorKind::kNotBuilt, fmt::format("{} is not built yet", what));
}

Error internal_error(std::string_view what) {
  return Error(ErrorKind::kInternal, fmt::format("internal error: {}", what));
}

}  // namespace cyb
