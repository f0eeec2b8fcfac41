// Field numbers are those of sentencepiece_model.proto. Fields of the trainer that say how the
// model came to be change no id and are passed over.
#include "import/sentencepiece_file.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

#include "base/limits.hpp"
#include "import/onnx/wire.hpp"

namespace cyb {
namespace {

using onnx::WireField;
using onnx::WireReader;

Error wire_error(const Error& error) {
  return Error(ErrorKind::kFormat, fmt::format("sentencepiece model: {}", error.text()));
}

/// Calls `take(field)` for each field of a message.
template <class Take>
Result<void> each_field(std::span<const std::byte> message, const Take& take) {
  WireReader reader(message);
  while (!reader.done()) {
    const auto field = reader.next();
    if (!field) return fail(wire_error(field.error()));
    CYB_TRY(take(*field));
  }
  return {};
}

template <class T, class Read>
Result<void> set(const WireField& field, Read read, T& out) {
  auto value = read(field);
  if (!value) return fail(wire_error(value.error()));
  out = static_cast<T>(*value);
  return {};
}

Result<void> set_flag(const WireField& field, bool& out) {
  std::int64_t value = 0;
  CYB_TRY(set(field, onnx::as_int, value));
  out = value != 0;
  return {};
}

Result<void> read_piece(std::span<const std::byte> message, SentencePieceSource& out) {
  if (out.pieces.size() >= kMaxVocab) {
    return fail(Error(ErrorKind::kFormat, "F34",
                      fmt::format("vocab: more than {} pieces", std::uint64_t{kMaxVocab})));
  }
  SentencePieceEntry piece;
  CYB_TRY(each_field(message, [&](const WireField& field) -> Result<void> {
    if (field.number == 1) return set(field, onnx::as_text, piece.text);
    if (field.number == 2) return set(field, onnx::as_float, piece.score);
    if (field.number == 3) return set(field, onnx::as_small, piece.type);
    return {};
  }));
  out.pieces.push_back(piece);
  return {};
}

Result<void> read_trainer(std::span<const std::byte> message, SentencePieceSource& out) {
  return each_field(message, [&](const WireField& field) -> Result<void> {
    switch (field.number) {
      case 3:
        return set(field, onnx::as_small, out.model_type);
      case 24:
        return set_flag(field, out.treat_whitespace_as_suffix);
      case 35:
        return set_flag(field, out.byte_fallback);
      case 46:
        return set(field, onnx::as_text, out.bos_piece);
      case 47:
        return set(field, onnx::as_text, out.eos_piece);
      case 48:
        return set(field, onnx::as_text, out.pad_piece);
      default:
        return {};
    }
  });
}

Result<void> set_bytes(const WireField& field, std::string_view& out) {
  const auto bytes = onnx::as_bytes(field);
  if (!bytes) return fail(wire_error(bytes.error()));
  out = std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  return {};
}

Result<void> read_normalizer(std::span<const std::byte> message, SentencePieceSource& out) {
  return each_field(message, [&](const WireField& field) -> Result<void> {
    switch (field.number) {
      case 1:  // the name, and (6) the rules that the map was compiled from
      case 6:
        return {};
      case 2:
        return set_bytes(field, out.charsmap);
      case 3:
        return set_flag(field, out.add_dummy_prefix);
      case 4:
        return set_flag(field, out.remove_extra_whitespaces);
      case 5:
        return set_flag(field, out.escape_whitespaces);
      default:
        return fail(not_built(
            fmt::format("sentencepiece model: field {} of the normalizer", field.number)));
    }
  });
}

Result<void> read_denormalizer(std::span<const std::byte> message, SentencePieceSource& out) {
  return each_field(message, [&](const WireField& field) -> Result<void> {
    std::string_view map;
    if (field.number != 2) return {};
    CYB_TRY(set_bytes(field, map));
    out.has_denormalizer = !map.empty();
    return {};
  });
}

}  // namespace

Result<SentencePieceSource> read_sentencepiece(std::span<const std::byte> bytes) {
  SentencePieceSource out;
  CYB_TRY(each_field(bytes, [&](const WireField& field) -> Result<void> {
    if (field.number == 4) return {};  // samples for the model's own test
    if (field.number < 1 || field.number > 5) {
      return fail(not_built(fmt::format("sentencepiece model: field {}", field.number)));
    }
    const auto message = onnx::as_bytes(field);
    if (!message) return fail(wire_error(message.error()));
    switch (field.number) {
      case 1:
        return read_piece(*message, out);
      case 2:
        return read_trainer(*message, out);
      case 3:
        return read_normalizer(*message, out);
      default:
        return read_denormalizer(*message, out);
    }
  }));
  if (out.pieces.empty()) {
    return fail(Error(ErrorKind::kFormat, "sentencepiece model: it has no pieces"));
  }
  return out;
}

}  // namespace cyb
