// Runs of the model against each other: backends, paths, and one token at a time.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "api/check/rows.hpp"
#include "runtime/engine.hpp"
#include "runtime/logits.hpp"

namespace cyb::api {
namespace {

constexpr const char* kPrompt = "The capital of France is Paris, and 2 + 2 = 4; so what is next?";
constexpr std::size_t kMaxTokens = 16;
constexpr std::uint64_t kBigModel = std::uint64_t{1} << 30;  // bytes: the reference takes minutes
// The classes of docs/ir.md for whole models in f32: a backend against the reference, and curated
// against graph (with block weights, whose products are summed in another order: the first).
constexpr double kBackends = 1e-4, kPaths = 1e-5;

using Values = std::vector<float>;

/// max|a - b| / max(1, max|b|); infinite where a value is not finite.
double error_of(const Values& a, const Values& b) {
  double largest = 1, difference = 0;
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i]))
      return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
    difference = std::max(difference, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return difference / largest;
}

EngineOptions engine_options(const Rows& rows, const char* path, const char* backend) {
  EngineOptions options;
  options.path = path;
  options.backend = backend;
  options.n_threads = rows.options().n_threads;
  options.exact = true;
  options.ctx_tokens = kMaxTokens + 1;
  options.chunk_tokens = kMaxTokens;
  options.max_outputs = kMaxTokens;
  options.pack_cache = false;
  options.stop = rows.stop();
  return options;
}

Result<Values> logits_of(const std::shared_ptr<const Model>& model, const EngineOptions& options,
                         std::span<const std::int32_t> ids, const std::stop_token& stop) {
  CYB_ASSIGN(const std::shared_ptr<Engine> engine, Engine::load(model, options));
  Values out;
  CYB_TRY(all_logits(
      *engine, ids,
      [&](std::uint32_t, std::span<const float> rows) -> Result<void> {
        out.insert(out.end(), rows.begin(), rows.end());
        return {};
      },
      stop));
  return out;
}

/// The same, one token a run.
Result<Values> stepped_logits(const std::shared_ptr<const Model>& model,
                              const EngineOptions& options, std::span<const std::int32_t> ids,
                              const std::stop_token& stop) {
  CYB_ASSIGN(const std::shared_ptr<Engine> engine, Engine::load(model, options));
  Sequence sequence = engine->new_sequence();
  Values out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const SequenceStep step{&sequence, ids.subspan(i, 1), LogitRows::kLast,
                            static_cast<std::uint32_t>(ids.size())};
    CYB_TRY(engine->step(
        {&step, 1},
        [&](std::size_t, std::span<const float> row) {
          out.insert(out.end(), row.begin(), row.end());
        },
        stop));
  }
  return out;
}

std::vector<std::int32_t> prompt_ids(const TextSide& side, std::int64_t n_vocab,
                                     std::size_t n_positions) {
  std::vector<std::int32_t> ids;
  if (side.tokenizer != nullptr) {
    if (const auto encoded = side.tokenizer->encode(kPrompt)) ids = *encoded;
  }
  for (std::int32_t i = 0; ids.size() < 8; ++i)
    ids.push_back(static_cast<std::int32_t>((7 + 13 * i) % std::max<std::int64_t>(n_vocab, 1)));
  ids.resize(std::min({ids.size(), kMaxTokens, n_positions}));
  return ids;
}

bool is_cancelled(const Error& error) {
  return error.kind() == ErrorKind::kCancelled;
}

/// A path that the model does not have is no fault of the model.
bool is_not_there(const Error& error) {
  return error.kind() == ErrorKind::kDispatch || error.kind() == ErrorKind::kNotBuilt;
}

Result<void> judge_error(Rows& rows, const Result<Values>& got, const Result<Values>& want,
                         double limit) {
  for (const Result<Values>* side : {&got, &want}) {
    if (*side) continue;
    if (is_cancelled(side->error())) return fail(side->error());
    if (is_not_there(side->error())) {
      rows.not_run(side->error().text());
    } else {
      rows.fail(side->error().text());
    }
    return {};
  }
  const double error = error_of(*got, *want);
  const std::string text = fmt::format("largest difference {:.2e} of {} logits (limit {:.0e})",
                                       error, want->size(), limit);
  if (error <= limit) {
    rows.pass(text);
  } else {
    rows.fail(text);
  }
  return {};
}

}  // namespace

Result<void> check_runs(const std::shared_ptr<const Model>& model, const TextSide& side,
                        Rows& rows) {
  constexpr const char* kBackendsRow = "reference = cpu";
  constexpr const char* kPathsRow = "curated = graph";
  constexpr const char* kStepsRow = "prefill = one by one";
  const auto n_vocab = model->config().integer_or("architecture.vocab_size", 0);
  const auto n_positions =
      model->config().integer_or("architecture.max_position_embeddings", kMaxTokens);
  const bool text_model = n_vocab && *n_vocab > 0 && !model->tensors().empty();
  if (!text_model) {
    for (const char* name : {kBackendsRow, kPathsRow, kStepsRow})
      rows.skip(name,
                model->tensors().empty() ? "the model has no weights" : "it is no language model");
    return {};
  }
  const std::vector<std::int32_t> ids =
      prompt_ids(side, *n_vocab,
                 static_cast<std::size_t>(n_positions ? std::max<std::int64_t>(*n_positions, 1)
                                                      : std::int64_t{kMaxTokens}));
  const auto run = [&](const char* path, const char* backend) {
    return logits_of(model, engine_options(rows, path, backend), ids, rows.stop());
  };
  const bool blocks = std::ranges::any_of(model->tensors(), [](const TensorEntry& entry) {
    return format_info(entry.dtype).block_values > 1;
  });
  CYB_TRY(rows.begin(kBackendsRow));
  const Result<Values> curated = run("auto", "cpu");
  if (model->weights_bytes() > kBigModel && !rows.options().all) {
    rows.not_run("the weights are bigger than 1 GiB and the reference is slow: --all runs it");
  } else {
    CYB_TRY(judge_error(rows, curated, run("auto", "reference"), kBackends));
  }
  CYB_TRY(rows.begin(kPathsRow));
  CYB_TRY(judge_error(rows, curated, run("graph", "cpu"), blocks ? kBackends : kPaths));
  CYB_TRY(rows.begin(kStepsRow));
  const auto steps = stepped_logits(model, engine_options(rows, "auto", "cpu"), ids, rows.stop());
  if (!curated || !steps) {
    const Error& error = curated ? steps.error() : curated.error();
    if (is_cancelled(error)) return fail(error);
    rows.fail(error.text());
    return {};
  }
  const bool equal =
      curated->size() == steps->size() &&
      std::memcmp(curated->data(), steps->data(), curated->size() * sizeof(float)) == 0;
  rows.judge(equal ? std::string()
                   : fmt::format("the logits differ by up to {:.2e}", error_of(*curated, *steps)),
             fmt::format("{} logits equal bit for bit", curated->size()));
  return {};
}

}  // namespace cyb::api
