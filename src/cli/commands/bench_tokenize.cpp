// Every repeat encodes all documents; a first one, not counted, warms up.
#include "cli/commands/bench_tokenize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>
#include <vector>

#include "cli/json.hpp"
#include "cli/text_input.hpp"
#include "runtime/model_text.hpp"
#include "text/tokenizer.hpp"

namespace cyb::cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Cuts that fall on starts of characters.
std::vector<std::string_view> documents_of(std::string_view text, std::uint64_t most) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = most == 0 || text.size() - at <= most ? text.size() : at + most;
    while (end < text.size() && end > at + 1 &&
           (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
      --end;
    out.push_back(text.substr(at, end - at));
    at = end;
  }
  return out;
}

Result<std::size_t> encode_all(const Tokenizer& tokenizer,
                               const std::vector<std::string_view>& documents) {
  std::size_t n_ids = 0;
  for (const std::string_view text : documents) {
    CYB_ASSIGN(const std::vector<std::int32_t> ids,
               tokenizer.encode(text, {.parse_special = true, .add_special = false}));
    n_ids += ids.size();
  }
  return n_ids;
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

Result<int> bench_tokenize(Context& context, const Model& model, const TokenizeBench& what) {
  CYB_ASSIGN(const std::string text, read_text(what.file, context.interrupts.wake_fd()));
  CYB_ASSIGN(TokenizerParts parts, tokenizer_parts(model));
  CYB_ASSIGN(const std::unique_ptr<Tokenizer> tokenizer, Tokenizer::create(std::move(parts)));
  const std::vector<std::string_view> documents = documents_of(text, what.document_bytes);
  CYB_ASSIGN(const std::size_t n_ids, encode_all(*tokenizer, documents));
  std::vector<double> seconds;
  for (std::uint64_t i = 0; i < what.n_repeats; ++i) {
    const Clock::time_point start = Clock::now();
    CYB_TRY(encode_all(*tokenizer, documents));
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  const double megabytes = static_cast<double>(text.size()) / 1e6, median = median_of(seconds);
  const double low = megabytes / std::ranges::max(seconds);
  const double high = megabytes / std::ranges::min(seconds);
  if (what.json) {
    context.output.line(Json{
        {"model", json_text(model.name())},
        {"bytes", text.size()},
        {"documents", documents.size()},
        {"n_ids", n_ids},
        {"mb_per_second", megabytes / median},
        {"mb_per_second_min", low},
        {"mb_per_second_max", high},
        {"seconds",
         seconds}}.dump());
    return kExitOk;
  }
  context.output.line(fmt::format(
      "{:.1f} MB/s  ({:.1f} .. {:.1f}, {} run{})  {:.2f} M tokens/s, {} tokens of {} bytes in {} "
      "document{}",
      megabytes / median, low, high, seconds.size(), seconds.size() == 1 ? "" : "s",
      static_cast<double>(n_ids) / median / 1e6, n_ids, text.size(), documents.size(),
      documents.size() == 1 ? "" : "s"));
  return kExitOk;
}

}  // namespace cyb::cli
