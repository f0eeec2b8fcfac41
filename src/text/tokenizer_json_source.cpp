// The streaming parse of a tokenizer.json, bounded in depth and in the number of tokens.
#include "text/tokenizer_json_source.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/limits.hpp"

namespace cyb::text {
namespace {

using nlohmann::json;

class Handler : public nlohmann::json_sax<json> {
 public:
  explicit Handler(TokenizerJson& out) : out_(out) {}

  bool null() override { return leaf(json()); }
  bool boolean(bool value) override { return leaf(value); }
  bool number_float(double value, const std::string&) override {
    return mode_ == Mode::kPieces ? score(value) : leaf(value);
  }
  bool binary(json::binary_t&) override { return refuse("binary data"); }
  bool number_integer(std::int64_t value) override { return integer(value); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(INT64_MAX)) return refuse("a number is too large");
    return integer(static_cast<std::int64_t>(value));
  }

  bool string(std::string& value) override {
    if (value.size() > kMaxStringBytes) return refuse("a string is too long");
    if (mode_ == Mode::kVocab) return refuse("model.vocab: an id is not a number");
    if (mode_ == Mode::kPieces) {
      if (depth_ != big_depth_ + 1 || ++in_pair_ != 1 || out_.tokens.size() >= kMaxVocab) {
        return refuse("model.vocab: a piece is not a text and a score");
      }
      out_.ids.push_back(static_cast<std::int64_t>(out_.tokens.size()));
      out_.tokens.add(value);
      return true;
    }
    if (mode_ != Mode::kMerges) return leaf(std::move(value));
    // "a b" texts at the first level, ["a", "b"] pairs at the second.
    const bool pair = depth_ == big_depth_ + 1;
    if (out_.merges.size() == 0) out_.merges_are_pairs = pair;
    if (pair != out_.merges_are_pairs) return refuse("model.merges: texts and pairs are mixed");
    if (pair && ++in_pair_ > 2) return refuse("model.merges: a merge has more than two texts");
    out_.merges.add(value);
    return true;
  }

  bool start_object(std::size_t) override {
    if (!deeper()) return false;
    if (mode_ != Mode::kRest) return refuse("model: an object inside vocab or merges");
    if (at_model_key("vocab")) return begin_big(Mode::kVocab);
    return open(json::object());
  }

  bool key(std::string& value) override {
    if (value.size() > kMaxStringBytes) return refuse("a key is too long");
    if (mode_ == Mode::kVocab) {
      if (out_.tokens.size() >= kMaxVocab) return refuse("model.vocab: too many tokens");
      out_.tokens.add(value);
      return true;
    }
    if (stack_.back()->contains(value)) return refuse("the key \"" + value + "\" is there twice");
    key_ = std::move(value);
    return true;
  }

  bool end_object() override { return close(); }

  bool start_array(std::size_t) override {
    if (!deeper()) return false;
    if (mode_ == Mode::kVocab) return refuse("model.vocab: an id is not a number");
    if (mode_ == Mode::kMerges || mode_ == Mode::kPieces) {
      in_pair_ = 0;
      return depth_ == big_depth_ + 1 || refuse("model: a list in a list is too deep");
    }
    if (at_model_key("merges")) return begin_big(Mode::kMerges);
    if (at_model_key("vocab")) return begin_big(Mode::kPieces);
    return open(json::array());
  }

  bool end_array() override {
    if ((mode_ == Mode::kMerges || mode_ == Mode::kPieces) && depth_ == big_depth_ + 1) {
      --depth_;
      return in_pair_ == 2 || refuse("model: a list in merges or vocab has not two entries");
    }
    return close();
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    return refuse(fmt::format("bad JSON at byte {}", position));
  }

  const std::string& error() const noexcept { return error_; }

 private:
  enum class Mode : std::uint8_t { kRest, kVocab, kMerges, kPieces };

  bool score(double value) {
    const bool good =
        depth_ == big_depth_ + 1 && ++in_pair_ == 2 && value >= -1e30 && value <= 1e30;
    if (!good) return refuse("model.vocab: a piece is not a text and a score");
    out_.scores.push_back(static_cast<float>(value));
    return true;
  }

  bool refuse(std::string why) {
    if (error_.empty()) error_ = std::move(why);
    return false;
  }

  bool deeper() { return ++depth_ <= kMaxJsonDepth || refuse("nested too deeply"); }

  bool at_model_key(std::string_view name) const {
    return depth_ == 3 && path_model_ && stack_.size() == 2 && key_ == name;
  }

  bool begin_big(Mode mode) {
    bool& seen = mode == Mode::kMerges ? seen_merges_ : seen_vocab_;
    if (seen) return refuse("model: a key is there twice");
    seen = true;
    mode_ = mode;
    big_depth_ = depth_;
    return true;
  }

  json* place(json value) {
    if (stack_.empty()) {
      out_.rest = std::move(value);
      return &out_.rest;
    }
    json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    json& slot = parent[key_];
    slot = std::move(value);
    return &slot;
  }

  bool open(json value) {
    if (stack_.size() == 1) path_model_ = key_ == "model";
    stack_.push_back(place(std::move(value)));
    return true;
  }

  bool close() {
    --depth_;
    if (mode_ != Mode::kRest && depth_ == big_depth_ - 1) {
      mode_ = Mode::kRest;
      return true;
    }
    stack_.pop_back();
    return true;
  }

  bool leaf(json value) {
    if (mode_ != Mode::kRest) return refuse("model: an unexpected value in vocab or merges");
    if (stack_.empty()) return refuse("the document is not an object");
    place(std::move(value));
    return true;
  }

  bool integer(std::int64_t value) {
    if (mode_ == Mode::kPieces) return score(static_cast<double>(value));
    if (mode_ != Mode::kVocab) return leaf(value);
    out_.ids.push_back(value);
    return true;
  }

  TokenizerJson& out_;
  std::vector<json*> stack_;
  std::string key_, error_;
  Mode mode_ = Mode::kRest;
  std::size_t depth_ = 0, big_depth_ = 0;
  unsigned in_pair_ = 0;
  bool path_model_ = false, seen_vocab_ = false, seen_merges_ = false;
};

}  // namespace

Result<TokenizerJson> parse_tokenizer_json(std::string_view text) {
  TokenizerJson out;
  Handler handler(out);
  bool ok = false;
  try {
    ok = json::sax_parse(text.begin(), text.end(), &handler);
  } catch (const std::exception& error) {
    return fail(Error(ErrorKind::kFormat, fmt::format("tokenizer.json: {}", error.what())));
  }
  if (!ok || !out.rest.is_object()) {
    return fail(Error(ErrorKind::kFormat, fmt::format("tokenizer.json: {}", handler.error())));
  }
  return out;
}

}  // namespace cyb::text
