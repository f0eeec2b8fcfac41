// What the opaque handles of cyb.h are, and the guard that keeps exceptions inside.
#pragma once

#include <cyb/cyb.h>

#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <stop_token>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "runtime/engine.hpp"
#include "runtime/generation.hpp"
#include "runtime/session.hpp"

struct cyb_error {
  std::string code, text, json;
  int exit_code;
};

struct cyb_model {
  std::shared_ptr<cyb::Engine> engine;
  std::string path, backend;
};

struct cyb_session {
  explicit cyb_session(std::shared_ptr<cyb::Engine> engine) : session(std::move(engine)) {}

  cyb::Session session;
  std::mutex mutex;  // guards cancel
  std::stop_source cancel;

  /// The token of the next answer.
  std::stop_token begin() {
    const std::lock_guard lock(mutex);
    cancel = std::stop_source();
    return cancel.get_token();
  }
  void stop() {
    const std::lock_guard lock(mutex);
    cancel.request_stop();
  }
};

struct cyb_answer {
  cyb::GenerateResult result;
  std::string json;
};

namespace cyb::api {

/// Null when even the error cannot be stored is not an option: a static one stands for out of
/// memory.
cyb_error* to_handle(const Error& error) noexcept;

/// Runs `body` (which returns a Result<void>) and turns failure into a handle.
template <class Body>
cyb_error* guarded(Body&& body) noexcept {
  try {
    const Result<void> done = body();
    return done ? nullptr : to_handle(done.error());
  } catch (const std::bad_alloc&) {
    return to_handle(Error(ErrorKind::kOutOfMemory, "host: out of memory"));
  } catch (const std::exception& e) {
    return to_handle(internal_error(e.what()));
  }
}

/// Errors: InvalidInput naming the argument.
template <class T>
Result<void> need(const T* pointer, const char* name) {
  if (pointer == nullptr) return fail(invalid_input(std::string(name) + " is null"));
  return {};
}

/// The caller's options, as many bytes as the caller's struct_size says, over our defaults. Errors:
/// InvalidInput.
template <class Options>
Result<Options> read_options(const Options* given, void (*init)(Options*)) {
  Options options;
  init(&options);
  if (given == nullptr) return options;
  if (given->struct_size < sizeof(std::size_t) || given->struct_size > std::size_t{1} << 12) {
    return fail(invalid_input("options: struct_size is not set; call the init function first"));
  }
  const std::size_t size =
      given->struct_size < sizeof(Options) ? given->struct_size : sizeof(Options);
  __builtin_memcpy(&options, given, size);
  options.struct_size = sizeof(Options);
  return options;
}

}  // namespace cyb::api
