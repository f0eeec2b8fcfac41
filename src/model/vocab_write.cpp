// Canonical writer of the vocab part.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/utf8.hpp"
#include "model/format_error.hpp"
#include "model/toml_cursor.hpp"
#include "model/vocab_text.hpp"

namespace cyb {
namespace {

Error size_error(std::string_view what, std::size_t have, std::size_t want) {
  return format_error("F34", fmt::format("vocab: {} {}, {} tokens", have, what, want));
}

void append_number(std::string& out, std::size_t value) {
  std::array<char, 24> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  out.append(buffer.data(), end);
}

/// Shortest digits that read back as the same f32, with a point or an exponent.
void append_score(std::string& out, float value) {
  std::array<char, 40> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

Result<void> check(const VocabData& vocab) {
  const std::size_t n = vocab.tokens.size();
  if (!vocab.scores.empty() && vocab.scores.size() != n) {
    return fail(size_error("scores", vocab.scores.size(), n));
  }
  if (!vocab.types.empty() && vocab.types.size() != n) {
    return fail(size_error("types", vocab.types.size(), n));
  }
  if (vocab.merges.size() % 2 != 0) return fail(internal_error("a merge needs two strings"));
  for (std::size_t i = 0; i < n; ++i) {
    if (utf8_find_invalid(vocab.tokens[i]) != std::string_view::npos) {
      return fail(format_error("F05", fmt::format("vocab: token {}: invalid UTF-8", i)));
    }
  }
  for (std::size_t i = 0; i < vocab.merges.size(); ++i) {
    if (utf8_find_invalid(vocab.merges[i]) != std::string_view::npos) {
      return fail(format_error("F05", fmt::format("vocab: merge {}: invalid UTF-8", i / 2)));
    }
  }
  for (std::size_t i = 0; i < vocab.scores.size(); ++i) {
    if (!std::isfinite(vocab.scores[i])) {
      return fail(format_error("F34", fmt::format("vocab: score of id {} is not finite", i)));
    }
  }
  return {};
}

/// `[name]` and, for i in 0..n-1, `i = <value>`.
template <class Value>
void append_section(std::string& out, std::string_view name, std::size_t n, Value value) {
  if (n == 0) return;
  if (!out.empty()) out += '\n';
  out.append("[").append(name).append("]\n");
  for (std::size_t i = 0; i < n; ++i) {
    append_number(out, i);
    out += " = ";
    value(i);
    out += '\n';
  }
}

/// Only what is not normal: nearly every token of a big vocabulary is.
void append_types(std::string& out, const std::vector<TokenType>& types) {
  if (types.empty()) return;
  if (!out.empty()) out += '\n';
  out += "[types]\n";
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == TokenType::kNormal) continue;
    append_number(out, i);
    out += " = ";
    append_number(out, static_cast<std::size_t>(types[i]));
    out += '\n';
  }
}

}  // namespace

Result<std::string> write_vocab(const VocabData& vocab) {
  CYB_TRY(check(vocab));
  std::string out;
  append_section(out, "tokens", vocab.tokens.size(),
                 [&](std::size_t i) { append_toml_string(out, vocab.tokens[i], true); });
  append_section(out, "merges", vocab.merges.size() / 2, [&](std::size_t i) {
    out += '[';
    append_toml_string(out, vocab.merges[2 * i], true);
    out += ", ";
    append_toml_string(out, vocab.merges[2 * i + 1], true);
    out += ']';
  });
  append_section(out, "scores", vocab.scores.size(),
                 [&](std::size_t i) { append_score(out, vocab.scores[i]); });
  append_types(out, vocab.types);
  if (!vocab.special.empty()) {
    if (!out.empty()) out += '\n';
    out += fmt::format("[special]\nids = [{}]\n", fmt::join(vocab.special, ", "));
  }
  if (!vocab.particles_tensor.empty()) {
    if (!out.empty()) out += '\n';
    out += "[particles]\ntensor = ";
    append_toml_string(out, vocab.particles_tensor, true);
    out += '\n';
  }
  return out;
}

}  // namespace cyb
