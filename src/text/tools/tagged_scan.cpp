// A tag has '<' as its first character only: what breaks a match off can begin a new one, and
// nothing else can.
#include "text/tools/tagged_scan.hpp"

#include <utility>

namespace cyb::text {

void TaggedScan::reset(const ToolTags& tags, const ArgumentTypes* types) {
  *this = {};
  tags_ = &tags;
  types_ = types;
}

ScanStep TaggedScan::push(char c, std::string& json) {
  switch (at_) {
    case At::kBetween:
      return between(c, json);
    case At::kKey:
      return key(c, json);
    case At::kGap:
      return gap(c, json);
    default:
      return value(c, json);
  }
}

ScanStep TaggedScan::between(char c, std::string& json) {
  if (word_.empty() && is_json_space(c)) return ScanStep::kMore;
  word_ += c;
  if (word_ == tags_->end) {
    json += open_ ? "}" : "{}";
    return ScanStep::kDone;
  }
  if (word_ == tags_->key) {
    word_.clear();
    at_ = At::kKey;
    return ScanStep::kMore;
  }
  const bool begins = tags_->end.starts_with(word_) || tags_->key.starts_with(word_);
  return begins ? ScanStep::kMore : ScanStep::kFailed;
}

ScanStep TaggedScan::key(char c, std::string& json) {
  if (c == '\n' || word_.size() == kLongestKey + tags_->key_end.size()) return ScanStep::kFailed;
  word_ += c;
  if (!word_.ends_with(tags_->key_end)) return ScanStep::kMore;
  word_.resize(word_.size() - tags_->key_end.size());
  key_ = std::exchange(word_, {});
  if (key_.empty() || key_.find('<') != std::string::npos) return ScanStep::kFailed;
  if (tags_->value.empty()) return begin_value(json);
  at_ = At::kGap;
  return ScanStep::kMore;
}

ScanStep TaggedScan::gap(char c, std::string& json) {
  if (word_.empty() && is_json_space(c)) return ScanStep::kMore;
  word_ += c;
  if (word_ == tags_->value) return begin_value(json);
  return tags_->value.starts_with(word_) ? ScanStep::kMore : ScanStep::kFailed;
}

ScanStep TaggedScan::begin_value(std::string& json) {
  at_ = At::kValue;
  word_.clear();
  held_.clear();
  matched_ = 0;
  line_end_ = text_ = false;
  first_ = true;
  skipped_ = !keys_.insert(key_).second;
  type_ = types_ == nullptr ? 0 : types_->of(key_);
  if (!std::exchange(open_, true)) json += '{';
  if (!skipped_ && is_plain_text(type_, *tags_)) begin_text(json);
  return ScanStep::kMore;
}

void TaggedScan::begin_text(std::string& json) {
  json += any_ ? ", \"" : "\"";
  for (const char c : key_) append_json_char(json, c);
  json += "\": \"";
  any_ = text_ = true;
}

ScanStep TaggedScan::value(char c, std::string& json) {
  const std::string_view end = tags_->value_end;
  if (c == end[matched_]) {
    if (++matched_ == end.size()) end_value(json);
    return ScanStep::kMore;
  }
  for (const char part : end.substr(0, std::exchange(matched_, 0))) take(part, json);
  if (c == end.front()) {
    matched_ = 1;
  } else {
    take(c, json);
  }
  return ScanStep::kMore;
}

/// Line breaks around a value that stands on lines of its own are not its.
void TaggedScan::take(char c, std::string& json) {
  const bool first = std::exchange(first_, false);
  if (tags_->lines && c == '\n') {
    if (first) return;
    if (std::exchange(line_end_, true)) put('\n', json);
    return;
  }
  if (std::exchange(line_end_, false)) put('\n', json);
  put(c, json);
}

void TaggedScan::put(char c, std::string& json) {
  if (skipped_) return;
  if (text_) return append_json_char(json, c);
  held_ += c;
  if (held_.size() <= kLongestValue) return;
  begin_text(json);
  for (const char part : std::exchange(held_, {})) append_json_char(json, part);
}

void TaggedScan::end_value(std::string& json) {
  at_ = At::kBetween;
  matched_ = 0;
  if (skipped_) return;
  if (text_) {
    json += '"';
    return;
  }
  begin_text(json);
  json.pop_back();
  json += typed_json(held_, type_);
}

void TaggedScan::close(std::string& json) {
  if (at_ == At::kValue) {
    const std::size_t n = std::exchange(matched_, 0);
    for (const char part : tags_->value_end.substr(0, n)) take(part, json);
    end_value(json);
  }
  json += open_ ? "}" : "{}";
}

}  // namespace cyb::text
