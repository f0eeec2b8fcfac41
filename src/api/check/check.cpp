// Order of the rows, and reading what the model is checked against.
#include "api/check/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "api/check/rows.hpp"
#include "import/import.hpp"
#include "runtime/model_text.hpp"

namespace cyb::api {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGoldens = "check_goldens.json";

bool has_weight_file(const std::string& folder) {
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    if (at->path().extension() == ".safetensors") return true;
  }
  return false;
}

}  // namespace

std::string_view verdict_name(Verdict verdict) noexcept {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kFail:
      return "fail";
    default:
      return "not run";
  }
}

std::size_t CheckReport::count(Verdict verdict) const noexcept {
  return static_cast<std::size_t>(std::ranges::count(rows, verdict, &CheckRow::verdict));
}

Result<void> Rows::begin(std::string_view name) {
  if (options_.stop.stop_requested()) return cyb::fail(cancelled(0));
  if (options_.progress) options_.progress(name);
  name_ = name;
  return {};
}

void Rows::judge(std::string problem, std::string good) {
  if (problem.empty()) {
    pass(std::move(good));
  } else {
    fail(std::move(problem));
  }
}

void Rows::skip(std::string_view name, std::string_view why) {
  name_ = name;
  not_run(std::string(why));
}

void Rows::add(Verdict verdict, std::string detail) {
  report_.rows.push_back({name_, verdict, std::move(detail)});
}

Result<TextSide> text_side(const ConfigTable& config, const VocabData& vocab,
                           const ConfigTable* chat) {
  TextSide out;
  CYB_ASSIGN(out.parts, tokenizer_parts(config, vocab));
  if (out.parts.config.type == TokenizerKind::kNone) return out;
  CYB_ASSIGN(TokenizerParts again, tokenizer_parts(config, vocab));
  CYB_ASSIGN(out.tokenizer, Tokenizer::create(std::move(again)));
  if (chat == nullptr) return out;
  CYB_ASSIGN(out.template_source, chat->string_or("template", ""));
  auto made = ChatTemplate::create(*chat, *out.tokenizer);
  if (!made) {
    out.chat_problem = made.error().text();
    return out;
  }
  out.chat = *std::move(made);
  out.tokenizer->guard_markers(out.chat->literals());
  return out;
}

Result<Source> read_against(const std::string& against, const std::stop_token& stop) {
  Source out;
  if (against.empty()) return out;
  std::error_code code;
  if (!fs::exists(against, code)) return fail(io_error(against, "open", "it does not exist"));
  const bool folder = fs::is_directory(against, code);
  if (!folder && against.ends_with(".json") && !against.ends_with("tokenizer.json")) {
    out.goldens = against;
    return out;
  }
  const std::string beside = against + "/" + kGoldens;
  if (folder && fs::exists(beside, code)) out.goldens = beside;
  const bool is_source = !folder || fs::exists(against + "/config.json", code) ||
                         fs::exists(against + "/tokenizer.json", code);
  if (!is_source && !out.goldens.empty()) return out;
  out.path = against;
  ImportReport report;
  ImportOptions options;
  options.stop = stop;
  const bool gguf = !folder && is_import_source(against);
  options.tokenizer_only = folder ? !has_weight_file(against) : !gguf;
  auto draft = read_source(against, report, options);
  if (!draft && gguf) {  // a GGUF file of a vocabulary alone
    options.tokenizer_only = true;
    ImportReport again;
    auto tokenizer = read_source(against, again, options);
    if (tokenizer && tokenizer->tensors.empty() && report.n_tensors == 0) {
      out.draft = *std::move(tokenizer);
      return out;
    }
  }
  if (!draft) return fail(std::move(draft).error());
  out.draft = *std::move(draft);
  out.has_weights = !options.tokenizer_only;
  return out;
}

Result<CheckReport> check_model(std::shared_ptr<const Model> model, const CheckOptions& options) {
  CheckReport report;
  Rows rows(report, options);
  CYB_ASSIGN(const Source source, read_against(options.against, options.stop));
  VocabData no_vocab;
  const VocabData* vocab = &no_vocab;
  CYB_ASSIGN(const TokenizerConfig config, read_tokenizer_config(model->config()));
  if (config.type != TokenizerKind::kNone) {
    CYB_ASSIGN(vocab, model->vocab());
  }
  CYB_ASSIGN(const TextSide side, text_side(model->config(), *vocab, model->chat()));
  std::optional<TextSide> source_side;
  if (source.draft) {
    CYB_ASSIGN(source_side, text_side(source.draft->config, source.draft->vocab,
                                      source.draft->chat ? &*source.draft->chat : nullptr));
  }
  const TextSide* other = source_side ? &*source_side : nullptr;
  CYB_TRY(check_architecture(*model, source, rows));
  CYB_TRY(check_weights(*model, source, rows));
  CYB_TRY(check_vocabulary(side, other, source, rows));
  CYB_TRY(check_encoding(side, other, rows));
  CYB_TRY(check_chat(*model, side, other, source, rows));
  CYB_TRY(check_runs(model, side, rows));
  CYB_TRY(check_goldens(model, side, source.goldens, rows));
  return report;
}

}  // namespace cyb::api
