// Error: every failure that crosses a module boundary, as one pointer. Code + structured detail +
// context frames added on the way up. The texts are those of spec tables (F, G, D codes and the
// named kinds); see docs/errors.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cyb {

enum class ErrorKind : std::uint8_t {
  kFormat,         // F codes: a .model, GGUF, safetensors, JSON or TOML file is not what it must be
  kGraph,          // G codes
  kDispatch,       // D codes
  kUnsupportedOp,  // a backend has no kernel and no fallback is allowed
  kShapeMismatch,
  kMissingTensor,
  kWeightFormat,
  kOutOfMemory,
  kBackendInit,
  kInvalidConfig,
  kTemplate,  // chat template: syntax, unsupported construct, raise_exception
  kTokenizer,
  kContextOverflow,
  kInvalidInput,
  kDeviceLost,
  kIo,
  kNonFinite,
  kSourceEncoding,
  kBusy,
  kCancelled,
  kNotBuilt,  // a named capability that does not exist yet
  kInternal,  // a broken invariant of ours: always a bug
};

/// Process exit code of a kind (0 ok; 1 usage and input; 2 format, graph, config; 3 dispatch; 4
/// memory, device, io; 5 cancelled).
int exit_code(ErrorKind kind) noexcept;

/// Stable name of a kind, used as the code where no F/G/D code exists ("InvalidInput", "Io", ...).
std::string_view kind_name(ErrorKind kind) noexcept;

class Error {
 public:
  /// `code`: stable identifier ("F11", "G08", "D1"); empty takes kind_name(kind).
  Error(ErrorKind kind, std::string code, std::string message);
  Error(ErrorKind kind, std::string message) : Error(kind, {}, std::move(message)) {}
  Error(Error&&) noexcept = default;
  Error& operator=(Error&&) noexcept = default;
  Error(const Error& other);
  Error& operator=(const Error& other);
  ~Error() = default;

  ErrorKind kind() const noexcept { return impl_->kind; }
  const std::string& code() const noexcept { return impl_->code; }
  /// The message alone, without context frames.
  const std::string& message() const noexcept { return impl_->message; }

  /// Adds a structured field ("op", "tensor", "position"); shown in JSON only.
  Error&& with(std::string key, std::string value) &&;
  /// Adds an outer frame (a file path, "layer 3", a tensor name); shown before the message,
  /// outermost first.
  Error&& in(std::string frame) &&;

  /// One line: "<outer>: <inner>: <message>".
  std::string text() const;
  /// {"code":..,"kind":..,"message":..,"context":[..],"detail":{..}}
  std::string json() const;

 private:
  struct Impl {
    ErrorKind kind;
    std::string code;
    std::string message;
    std::vector<std::string> frames;  // innermost first
    std::vector<std::pair<std::string, std::string>> detail;
  };
  std::unique_ptr<Impl> impl_;
};

// Makers for the named kinds of execution.md section 5; texts are exact.
Error io_error(std::string_view path, std::string_view operation, std::string_view reason);
Error io_errno(std::string_view path, std::string_view operation, int errno_value);
Error invalid_config(std::string_view field, std::string_view reason);
Error invalid_input(std::string_view what);
Error missing_tensor(std::string_view name, std::string_view required_by);
Error shape_mismatch(std::string_view op, std::string_view expected, std::string_view got);
Error unsupported_op(std::string_view op, std::string_view backend, std::string_view dtype);
Error out_of_memory(std::string_view backend, std::uint64_t need_bytes,
                    std::uint64_t available_bytes);
Error context_overflow(std::uint64_t position, std::uint64_t limit);
Error non_finite(std::string_view op, std::string_view tensor, std::uint64_t index);
Error busy(std::string_view what);
Error cancelled(std::uint64_t tokens_done);
Error tokenizer_error(std::string_view reason);
Error source_encoding(std::string_view tensor, std::string_view type);
Error not_built(std::string_view what);
Error internal_error(std::string_view what);

}  // namespace cyb
