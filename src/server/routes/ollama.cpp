// Ollama's routes: POST /api/chat, /api/generate, /api/show, /api/embed, /api/embeddings, GET
// /api/tags, /api/ps, /api/version.
#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "base/json_text.hpp"
#include "server/answer_job.hpp"
#include "server/model_wait.hpp"
#include "server/ollama_request.hpp"
#include "server/ollama_shape.hpp"
#include "text/tools/tool_format.hpp"

namespace cyb::server {
namespace {

/// Of the model's file, or the server's start.
std::string modified_at(const Service& service, const ModelFacts& facts) {
  return rfc3339(facts.modified != 0 ? facts.modified : service.started());
}

std::string details_json(const ShelfView& view) {
  const ModelFacts& facts = view.facts;
  const std::string family = json_quote(facts.type);
  return fmt::format(
      R"({{"parent_model":{3},"format":"model","family":{0},"families":[{0}],"parameter_size":"{1:.1f}M","quantization_level":{2}}})",
      family, static_cast<double>(facts.parameters) / 1e6, json_quote(facts.encoding),
      json_quote(view.parent));
}

/// What /api/tags and /api/ps say of the model, without braces.
std::string model_members(const ShelfView& view) {
  return fmt::format(R"("name":{0},"model":{0},"size":{1},"digest":{2},"details":{3})",
                     json_quote(view.name), view.facts.file_bytes, json_quote(view.facts.model_id),
                     details_json(view));
}

/// What clients look for before they ask for it. Without a template there is no chat.
std::string capabilities(std::string_view source) {
  std::string out = R"("completion")";
  if (source.empty()) return out;
  if (recognise_tool_format(source) != nullptr) out += R"(,"tools")";
  if (!recognise_reasoning(source).close.empty()) out += R"(,"thinking")";
  return out;
}

std::string show_json(const Service& service, const ShelfView& view) {
  const ModelFacts& facts = view.facts;
  std::string stops;
  for (const std::string& stop : facts.stop_strings) stops += "stop " + json_quote(stop) + "\n";
  std::string info = fmt::format(R"("general.architecture":{},"general.parameter_count":{})",
                                 json_quote(facts.type), facts.parameters);
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"context_length", facts.max_positions},
      {"embedding_length", facts.hidden_size},
      {"block_count", facts.n_layers},
      {"attention.head_count", facts.n_heads},
      {"attention.head_count_kv", facts.n_kv_heads},
      {"vocab_size", facts.vocab_size}};
  for (const auto& [name, size] : sizes) {
    info += fmt::format(",{}:{}", json_quote(facts.type + "." + name), size);
  }
  return fmt::format(
      R"({{"modified_at":"{}","template":{},"parameters":{},"details":{},"model_info":{{{}}},"capabilities":[{}]}})",
      modified_at(service, facts), json_quote(facts.chat_template), json_quote(stops),
      details_json(view), info, capabilities(facts.chat_template));
}

using Reader = ApiResult<CompletionRequest> (*)(const Fields&, const Served&);

/// A request without a prompt: the model is to be loaded, or with a keep_alive of 0 to go.
void change(Service& service, const std::shared_ptr<Call>& call, std::size_t model,
            std::optional<KeepAlive> keep, bool chat) {
  const bool go = keep == KeepAlive::zero();
  const auto done = [&service, call, chat, go] {
    service.respond_json(*call, ollama_loaded(call->model_name, chat, go ? "unload" : "load"));
  };
  call->model_name = service.shelf().name(model);
  go ? without_model(service, call, model, done) : with_model(service, call, model, keep, done);
}

void answer(Service& service, const std::shared_ptr<Call>& call, FieldTable table, Reader read) {
  const bool chat = read == read_ollama_chat;
  auto parsed = parse_body(call->request().body);
  if (!parsed) return service.respond(*call, parsed.error());
  const auto body = std::make_shared<const ChatValue>(*std::move(parsed));
  const auto fields = check_fields(*body, table());
  if (!fields) return service.respond(*call, fields.error());
  const auto keep = read_keep_alive(*fields);
  if (!keep) return service.respond(*call, keep.error());
  const auto model = find_model(service, ollama_model_name(fields->text("model").value_or("")));
  if (!model) return service.respond(*call, model.error());
  if (asks_for_load(*fields)) return change(service, call, *model, *keep, chat);
  with_model(service, call, *model, *keep, [&service, call, body, read, chat] {
    auto request = read(Fields(*body), service.served(*call));
    if (!request) return service.respond(*call, request.error());
    auto shape = ollama_shape(answer_frame(service, *call, *request, "ollama-"), chat);
    start_answer(service, call, *std::move(request), std::move(shape));
  });
}

const ApiError& no_embeddings() {
  static const ApiError error{501, "This server gives no embeddings.", "embeddings_not_built"};
  return error;
}

}  // namespace

void ollama_chat_route(Service& service, const std::shared_ptr<Call>& call) {
  answer(service, call, ollama_chat_fields, read_ollama_chat);
}

void ollama_generate_route(Service& service, const std::shared_ptr<Call>& call) {
  answer(service, call, ollama_generate_fields, read_ollama_generate);
}

void ollama_show_route(Service& service, const std::shared_ptr<Call>& call) {
  const auto body = parse_body(call->request().body);
  if (!body) return service.respond(*call, body.error());
  const auto fields = check_fields(*body, ollama_show_fields());
  if (!fields) return service.respond(*call, fields.error());
  std::size_t shown = 0;
  for (const char* name : {"name", "model"}) {
    const auto given = fields->text(name);
    if (!given) continue;
    const auto known = find_model(service, ollama_model_name(*given));
    if (!known) return service.respond(*call, known.error());
    shown = *known;
  }
  service.respond_json(*call, show_json(service, service.shelf().view(shown)));
}

void ollama_tags_route(Service& service, const std::shared_ptr<Call>& call) {
  std::string out;
  for (const ShelfView& view : service.shelf().views()) {
    out += fmt::format(R"({}{{{},"modified_at":"{}"}})", out.empty() ? "" : ",",
                       model_members(view), modified_at(service, view.facts));
  }
  service.respond_json(*call, R"({"models":[)" + out + "]}");
}

/// The end of a model that stays, or is in use, is so far away that clients show it as "forever".
void ollama_ps_route(Service& service, const std::shared_ptr<Call>& call) {
  std::string out;
  for (const ShelfView& view : service.shelf().views()) {
    if (view.state != ShelfState::kLoaded) continue;
    const std::string end = view.expires ? rfc3339(std::chrono::duration_cast<std::chrono::seconds>(
                                                       view.expires->time_since_epoch())
                                                       .count())
                                         : "2318-01-01T00:00:00Z";
    out += fmt::format(R"({}{{{},"expires_at":"{}","size_vram":0,"context_length":{}}})",
                       out.empty() ? "" : ",", model_members(view), end, view.ctx_tokens);
  }
  service.respond_json(*call, R"({"models":[)" + out + "]}");
}

void ollama_version_route(Service& service, const std::shared_ptr<Call>& call) {
  service.respond_json(*call, R"({"version":)" + json_quote(service.version()) + "}");
}

void ollama_embed_route(Service& service, const std::shared_ptr<Call>& call) {
  service.respond(*call, no_embeddings());
}

void ollama_embeddings_route(Service& service, const std::shared_ptr<Call>& call) {
  service.respond(*call, no_embeddings());
}

}  // namespace cyb::server
