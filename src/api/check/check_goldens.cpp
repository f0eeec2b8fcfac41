// What another implementation made of the original (tools/make_check.py): ids, texts, renderings,
// stops, logits and greedy answers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/check/rows.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "runtime/engine.hpp"
#include "runtime/logits.hpp"
#include "text/template/chat_json.hpp"

namespace cyb::api {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kNames = {"golden ids",   "golden texts",  "golden renderings",
                               "golden stops", "golden logits", "golden greedy"};
// Against another implementation in f32, as the tiny models are held to it; and, where the weights
// were quantised after the goldens were made, the mean divergence that is still the same model.
constexpr double kLogits = 1e-4, kDivergence = 0.25;

Error bad_goldens(const std::string& path, std::string_view why) {
  return Error(ErrorKind::kFormat, "CHECK", fmt::format("{}: {}", path, why));
}

using Ids = std::vector<std::int32_t>;

std::string ids_text(const Ids& ids) {
  std::string out;
  for (std::size_t i = 0; i < ids.size() && i < 12; ++i)
    out += fmt::format("{}{}", i == 0 ? "" : " ", ids[i]);
  return ids.size() > 12 ? out + " …" : out;
}

class Goldens {
 public:
  Goldens(const Json& json, const TextSide& side, Rows& rows)
      : json_(json), side_(side), rows_(rows) {}

  /// Json's own exceptions end in the caller.
  void ids() {
    if (!has("texts") || !needs_tokenizer()) return;
    const Json& texts = json_.at("texts");
    const Json& want = json_.at("ids");
    std::string problem;
    std::size_t n_differ = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto text = texts.at(i).get<std::string>();
      const auto expected = want.at(i).get<Ids>();
      const auto got = side_.tokenizer->encode(text, {.parse_special = true, .add_special = false});
      if (got && *got == expected) continue;
      ++n_differ;
      if (!problem.empty()) continue;
      problem = fmt::format("{}: {} instead of {}", json_quote(text.substr(0, 60)),
                            got ? ids_text(*got) : got.error().text(), ids_text(expected));
    }
    if (n_differ > 1) problem += fmt::format("; {} of {} texts differ", n_differ, texts.size());
    rows_.judge(std::move(problem), fmt::format("{} texts", texts.size()));
  }

  void decoded() {
    if (!has("decoded") || !needs_tokenizer()) return;
    const Json& want = json_.at("decoded");
    for (std::size_t i = 0; i < want.size(); ++i) {
      const auto got = side_.tokenizer->decode(json_.at("ids").at(i).get<Ids>());
      if (!got) return rows_.fail(got.error().text());
      const std::string problem =
          text_difference(fmt::format("text {}", i), *got, want.at(i).get<std::string>());
      if (!problem.empty()) return rows_.fail(problem);
    }
    rows_.pass(fmt::format("{} lists of ids as texts", want.size()));
  }

  void renderings() {
    if (!has("renderings")) return;
    if (side_.chat == nullptr) {
      return rows_.fail(side_.chat_problem.empty() ? "the model has no chat template"
                                                   : side_.chat_problem);
    }
    std::size_t n = 0;
    for (const Json& one : json_.at("renderings")) {
      ChatInput input;
      const auto messages = parse_chat_json(one.at("messages").dump(), "messages");
      if (!messages) return rows_.fail(messages.error().text());
      input.messages = messages->items;
      if (one.contains("tools") && !one.at("tools").is_null()) {
        const auto tools = parse_chat_json(one.at("tools").dump(), "tools");
        if (!tools) return rows_.fail(tools.error().text());
        input.tools = *tools;
      }
      input.add_generation_prompt = one.at("add_generation_prompt").get<bool>();
      const std::string name = fmt::format("conversation {}", ++n);
      const auto got = side_.chat->render(input);
      if (!one.contains("text")) {
        if (got) return rows_.fail(name + ": it is rendered, but jinja2 refuses it");
        continue;
      }
      if (!got) return rows_.fail(fmt::format("{}: {}", name, got.error().text()));
      const std::string problem =
          text_difference(name, joined_text(*got), one.at("text").get<std::string>());
      if (!problem.empty()) return rows_.fail(problem);
    }
    rows_.pass(fmt::format("{} conversations, byte for byte", n));
  }

  void stops() {
    if (!has("stop_ids") || !needs_tokenizer()) return;
    const Ids have = stop_ids_of(side_);
    const auto want = json_.at("stop_ids").get<Ids>();
    for (const std::int32_t id : want) {
      if (std::ranges::count(have, id) == 0)
        return rows_.fail(
            fmt::format("{} ends an answer there, not here ({})", id, ids_text(have)));
    }
    rows_.pass(fmt::format("{} end an answer", ids_text(want)));
  }

  Result<void> logits(Engine& engine, bool requantised) {
    if (!has("logits")) return {};
    double worst = 0, divergence = 0;
    std::size_t n_rows = 0;
    for (const Json& prompt : json_.at("logits")) {
      const auto ids = prompt.at("ids").get<Ids>();
      std::vector<float> all;
      CYB_TRY(all_logits(
          engine, ids,
          [&all](std::uint32_t, std::span<const float> rows) -> Result<void> {
            all.insert(all.end(), rows.begin(), rows.end());
            return {};
          },
          rows_.stop()));
      for (const Json& row : prompt.at("rows")) {
        const auto position = row.at("position").get<std::size_t>();
        if (position >= ids.size()) return fail(invalid_input("logits of no position"));
        const auto logits = std::span<const float>(all).subspan(position * engine.vocab_size(),
                                                                engine.vocab_size());
        CYB_TRY(compare_row(row, logits, worst, divergence));
        ++n_rows;
      }
    }
    divergence /= static_cast<double>(std::max<std::size_t>(n_rows, 1));
    if (requantised) {
      const std::string text = fmt::format(
          "{} positions, weights quantised since: mean divergence "
          "{:.3g} nats (limit {})",
          n_rows, divergence, kDivergence);
      rows_.judge(divergence <= kDivergence ? "" : text, text);
    } else {
      const std::string text = fmt::format(
          "{} positions: largest relative difference {:.2e} "
          "(limit {:.0e})",
          n_rows, worst, kLogits);
      rows_.judge(worst <= kLogits ? "" : text, text);
    }
    return {};
  }

  Result<void> greedy(Engine& engine, bool requantised) {
    if (!has("greedy")) return {};
    if (requantised) {
      rows_.not_run("the weights were quantised after the goldens were made");
      return {};
    }
    std::size_t n = 0;
    for (const Json& one : json_.at("greedy")) {
      const auto prompt = one.at("prompt").get<Ids>(), want = one.at("ids").get<Ids>();
      Ids got;
      CYB_TRY(continue_greedily(engine, prompt, want.size(), got));
      if (got != want) {
        rows_.fail(fmt::format("prompt {}: {} instead of {}", n, ids_text(got), ids_text(want)));
        return {};
      }
      ++n;
    }
    rows_.pass(fmt::format("{} answers, id for id", n));
    return {};
  }

 private:
  bool has(const char* key) {
    if (json_.contains(key) && json_.at(key).is_array() && !json_.at(key).empty()) return true;
    rows_.not_run(fmt::format("the goldens have no \"{}\"", key));
    return false;
  }
  bool needs_tokenizer() {
    if (side_.tokenizer != nullptr) return true;
    rows_.fail("the model has no tokenizer");
    return false;
  }

  static Result<void> compare_row(const Json& row, std::span<const float> logits, double& worst,
                                  double& divergence) {
    const auto ids = row.at("ids").get<Ids>();
    const auto want = row.at("values").get<std::vector<double>>();
    const double log_sum = row.at("logsumexp").get<double>();
    double largest = 1, difference = 0, kl = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] < 0 || static_cast<std::size_t>(ids[i]) >= logits.size())
        return fail(invalid_input(fmt::format("token id {} is not in the vocabulary", ids[i])));
      const double got = logits[static_cast<std::size_t>(ids[i])];
      largest = std::max(largest, std::abs(want.at(i)));
      difference = std::max(difference, std::abs(got - want.at(i)));
      const double log_p = want.at(i) - log_sum;
      kl += std::exp(log_p) * (log_p - log_probability(logits, ids[i]));
    }
    worst = std::max(worst, difference / largest);
    divergence += kl;
    return {};
  }

  Result<void> continue_greedily(Engine& engine, const Ids& prompt, std::size_t n, Ids& out) {
    Sequence sequence = engine.new_sequence();
    Ids next = prompt;
    while (out.size() < n) {
      const SequenceStep step{&sequence, next, LogitRows::kLast,
                              static_cast<std::uint32_t>(prompt.size() + n)};
      std::int32_t best = 0;
      CYB_TRY(engine.step(
          {&step, 1},
          [&best](std::size_t, std::span<const float> row) {
            best = static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin());
          },
          rows_.stop()));
      out.push_back(best);
      next = {best};
    }
    return {};
  }

  const Json& json_;
  const TextSide& side_;
  Rows& rows_;
};

/// Rows of `run`, whose errors are the model's but for a stop.
Result<void> judged(Rows& rows, const Result<void>& done) {
  if (done) return {};
  if (done.error().kind() == ErrorKind::kCancelled) return fail(done.error());
  rows.fail(done.error().text());
  return {};
}

Result<void> run_goldens(const std::shared_ptr<const Model>& model, const TextSide& side,
                         const Json& json, Rows& rows) {
  Goldens goldens(json, side, rows);
  CYB_TRY(rows.begin(kNames[0]));
  goldens.ids();
  CYB_TRY(rows.begin(kNames[1]));
  goldens.decoded();
  CYB_TRY(rows.begin(kNames[2]));
  goldens.renderings();
  CYB_TRY(rows.begin(kNames[3]));
  goldens.stops();
  const bool needs_engine = json.contains("logits") || json.contains("greedy");
  if (!needs_engine || model->tensors().empty()) {
    for (std::size_t i = 4; i < kNames.size(); ++i)
      rows.skip(kNames[i], needs_engine ? "the model has no weights" : "the goldens have none");
    return {};
  }
  EngineOptions options;
  options.backend = "cpu";
  options.n_threads = rows.options().n_threads;
  options.exact = true;
  options.ctx_tokens = json.value("ctx_tokens", 0U);
  options.pack_cache = false;
  options.stop = rows.stop();
  CYB_TRY(rows.begin(kNames[4]));
  const auto engine = Engine::load(model, options);
  if (!engine) {
    if (engine.error().kind() == ErrorKind::kCancelled) return fail(engine.error());
    rows.fail(engine.error().text());
    rows.skip(kNames[5], "the model does not load");
    return {};
  }
  const bool blocks = std::ranges::any_of(model->tensors(), [](const TensorEntry& entry) {
    return format_info(entry.dtype).block_values > 1;
  });
  const bool requantised = blocks && !json.value("block_weights", false);
  CYB_TRY(judged(rows, goldens.logits(**engine, requantised)));
  CYB_TRY(rows.begin(kNames[5]));
  return judged(rows, goldens.greedy(**engine, requantised));
}

}  // namespace

Result<void> check_goldens(const std::shared_ptr<const Model>& model, const TextSide& side,
                           const std::string& path, Rows& rows) {
  if (path.empty()) {
    for (const char* name : kNames)
      rows.skip(name, "no goldens: tools/make_check.py makes them from the original");
    return {};
  }
  CYB_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  try {
    const Json json = Json::parse(file->text());
    if (!json.is_object() || json.value("format", 0) != 1)
      return fail(bad_goldens(path, "no goldens of tools/make_check.py (\"format\": 1)"));
    return run_goldens(model, side, json, rows);
  } catch (const nlohmann::json::exception& error) {
    return fail(bad_goldens(path, error.what()));
  }
}

}  // namespace cyb::api
