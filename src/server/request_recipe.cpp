// Lines of the canonical text stand in a fixed order and hold resolved values alone: what a client
// left out and what it spelled out is the same.
#include "server/request_recipe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include "base/hash.hpp"
#include "base/json_text.hpp"
#include "runtime/chat.hpp"
#include "runtime/overflow.hpp"

namespace cyb::server {
namespace {

std::string quoted(std::span<const std::string> texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ",") + json_quote(text);
  return "[" + out + "]";
}

std::string bias_json(std::vector<LogitBias> biases) {
  std::ranges::stable_sort(biases, {}, &LogitBias::id);
  std::string list;
  for (const LogitBias& one : biases) {
    list += fmt::format("{}[{},{}]", list.empty() ? "" : ",", one.id, one.bias);
  }
  return R"({"name":"logit_bias","bias":[)" + list + "]}";
}

std::string breakers_json(std::span<const DryBreaker> breakers) {
  std::string out;
  for (const DryBreaker& one : breakers) {
    out += fmt::format("{}[{}{}{}]", out.empty() ? "" : ",", one.head, one.tail.empty() ? "" : ",",
                       fmt::join(one.tail, ","));
  }
  return "[" + out + "]";
}

/// The values of one sampler, without braces.
std::string values_of(const SamplingConfig& c, SamplerKind kind) {
  switch (kind) {
    case SamplerKind::kPenalties:
      return fmt::format(
          R"("repetition_penalty":{},"presence_penalty":{},"frequency_penalty":{},"last_n":{})",
          c.repetition_penalty, c.presence_penalty, c.frequency_penalty, c.penalty_last_n);
    case SamplerKind::kDry:
      return fmt::format(
          R"("multiplier":{},"base":{},"allowed_length":{},"last_n":{},"breakers":{})",
          c.dry_multiplier, c.dry_base, c.dry_allowed_length, c.dry_last_n,
          breakers_json(c.dry_breakers));
    case SamplerKind::kTemperature:
      return c.temperature_range > 0
                 ? fmt::format(R"("temperature":{},"range":{},"exponent":{})", c.temperature,
                               c.temperature_range, c.temperature_exponent)
                 : fmt::format(R"("temperature":{})", c.temperature);
    case SamplerKind::kTopNSigma:
      return fmt::format(R"("top_n_sigma":{})", c.top_n_sigma);
    case SamplerKind::kTopK:
      return fmt::format(R"("top_k":{})", c.top_k);
    case SamplerKind::kTopP:
      return fmt::format(R"("top_p":{})", c.top_p);
    case SamplerKind::kMinP:
      return fmt::format(R"("min_p":{})", c.min_p);
    case SamplerKind::kTypical:
      return fmt::format(R"("typical_p":{})", c.typical_p);
    case SamplerKind::kXtc:
      return fmt::format(R"("probability":{},"threshold":{})", c.xtc_probability, c.xtc_threshold);
    case SamplerKind::kMirostat:
      return fmt::format(R"("tau":{},"eta":{})", c.mirostat_tau, c.mirostat_eta);
  }
  return {};
}

/// What acts, in its order; a bias comes before all.
std::string sampler_json(const SamplingConfig& config) {
  std::string out;
  if (!config.logit_bias.empty()) out = bias_json(config.logit_bias);
  for (const SamplerKind kind : active_samplers(config)) {
    out += fmt::format(R"({}{{"name":"{}",{}}})", out.empty() ? "" : ",", sampler_name(kind),
                       values_of(config, kind));
  }
  return "[" + out + "]";
}

/// Little-endian, 32 bits each.
std::string ids_digest(std::span<const std::int32_t> ids) {
  static_assert(std::endian::native == std::endian::little);
  return digest_text(blake3(std::as_bytes(ids)));
}

std::string template_digest(const Engine& engine, const CompletionRequest& request) {
  return request.chat && engine.chat_template() != nullptr
             ? digest_text(blake3(engine.chat_template()->source()))
             : std::string();
}

/// Tokens that the answer may have: "shift" goes on for ever where nothing else ends it.
std::string limit_text(const Engine& engine, const GenerateRequest& request) {
  const std::uint64_t most = request.options.max_tokens;
  if (request.options.overflow != Overflow::kError)
    return most == 0 ? "none" : fmt::to_string(most);
  const std::uint64_t used = request.prompt.size(), all = engine.ctx_tokens();
  const std::uint64_t room = all > used ? all - used : 0;
  return fmt::to_string(most == 0 ? room : std::min(most, room));
}

/// How the answer's text is cut into reasoning, calls and content.
std::string reading_text(const CompletionRequest& request) {
  const SplitOptions& split = request.split;
  return fmt::format(
      "{} {} {} {} {} {}", split.format == nullptr ? "none" : std::string_view(split.format->name),
      quoted(split.functions), json_quote(split.reasoning.open), json_quote(split.reasoning.close),
      split.in_reasoning ? "inside" : "outside", quoted(request.generate.options.shown));
}

/// What stands in the canonical text and in the recipe.
struct Settings {
  std::string form;  // digest of the template, or ""
  std::string samplers;
  std::uint64_t seed = 0;
};

Result<Settings> settings_of(const Engine& engine, const CompletionRequest& request) {
  CYB_ASSIGN(const SamplingConfig sampling, request_sampling(engine, request.generate.options));
  return Settings{template_digest(engine, request), sampler_json(sampling), sampling.seed};
}

std::string canonical_text(const Engine& engine, const CompletionRequest& request,
                           const Settings& settings) {
  const GenerateOptions& options = request.generate.options;
  const std::string context = options.overflow == Overflow::kError
                                  ? std::string()
                                  : fmt::format(" {}", engine.ctx_tokens());
  std::string out = "cyb-llm request 1\n";
  const auto line = [&](std::string_view name, std::string_view text) {
    out += fmt::format("{} {}\n", name, text);
  };
  line("model", engine.model_id());
  line("numerics", engine.numerics());
  line("template", settings.form.empty() ? "none" : settings.form);
  line("prompt",
       fmt::format("{} {}", request.generate.prompt.size(), ids_digest(request.generate.prompt)));
  line("seed", fmt::to_string(settings.seed));
  line("answers", fmt::to_string(request.generate.n_answers));
  line("limit", limit_text(engine, request.generate));
  line("overflow", std::string(overflow_name(options.overflow)) + context);
  line("end", options.ignore_stop_ids ? "ignored" : "heeded");
  line("sampler", settings.samplers);
  line("stop", quoted(options.stop));
  line("constraint",
       request.constraint_key.empty() ? "none" : digest_text(blake3(request.constraint_key)));
  line("reading", reading_text(request));
  return out;
}

}  // namespace

Result<std::string> canonical_request(const Engine& engine, const CompletionRequest& request) {
  CYB_ASSIGN(const Settings settings, settings_of(engine, request));
  return canonical_text(engine, request, settings);
}

std::string request_recipe(const Engine& engine, const CompletionRequest& request) {
  const auto settings = settings_of(engine, request);
  if (!settings) return {};
  return fmt::format(
      R"("request_hash":"{}","numerics":{},"kv":"{}","context_tokens":{},"template":{},"sampler":{})",
      digest_text(blake3(canonical_text(engine, request, *settings))),
      json_quote(engine.numerics()), dtype_name(engine.kv_dtype()), engine.ctx_tokens(),
      settings->form.empty() ? "null" : json_quote(settings->form), settings->samplers);
}

}  // namespace cyb::server
