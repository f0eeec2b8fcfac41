// Ollama's routes: POST /api/chat, /api/generate, /api/show, /api/embed, /api/embeddings, GET
// /api/tags, /api/ps, /api/version.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include "base/json_text.hpp"
#include "server/answer_job.hpp"
#include "server/ollama_request.hpp"
#include "server/ollama_shape.hpp"

namespace cyb::server {
namespace {

/// Of the model's file, or the server's start.
std::string modified_at(const Service& service) {
  std::error_code missing;
  const auto time =
      std::filesystem::last_write_time(service.served().engine.model().path(), missing);
  if (missing) return rfc3339(service.started());
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return rfc3339(std::chrono::duration_cast<std::chrono::seconds>(since).count());
}

/// The encoding that most bytes have.
std::string main_encoding(const Model& model) {
  std::map<std::string, std::uint64_t, std::less<>> bytes;
  for (const TensorEntry& tensor : model.tensors()) {
    bytes[std::string(dtype_name(tensor.dtype))] += tensor.size_bytes;
  }
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& item) { return item.second; });
  return most == bytes.end() ? "" : most->first;
}

/// An integer of the config by dotted path; 0 where there is none.
std::int64_t config_integer(const Model& model, std::string_view path) {
  const ConfigValue* value = model.config().at(path);
  return value == nullptr || value->integer() == nullptr ? 0 : *value->integer();
}

std::string details_json(const Model& model) {
  const std::string family = json_quote(model.model_type());
  return fmt::format(
      R"({{"parent_model":"","format":"model","family":{0},"families":[{0}],"parameter_size":"{1:.1f}M","quantization_level":{2}}})",
      family, static_cast<double>(config_integer(model, "parameters")) / 1e6,
      json_quote(main_encoding(model)));
}

/// What /api/tags and /api/ps say of the model, without braces.
std::string model_members(const Service& service) {
  const Served served = service.served();
  const Model& model = served.engine.model();
  return fmt::format(R"("name":{0},"model":{0},"size":{1},"digest":{2},"details":{3})",
                     json_quote(served.name), model.file_bytes(),
                     json_quote(served.engine.model_id()), details_json(model));
}

/// The template's own text; empty where the model has none.
std::string template_text(const Model& model) {
  const ConfigValue* text = model.chat() == nullptr ? nullptr : model.chat()->find("template");
  return text == nullptr || text->string() == nullptr ? "" : *text->string();
}

std::string show_json(const Service& service) {
  const Engine& engine = service.served().engine;
  const Model& model = engine.model();
  const std::string& type = model.model_type();
  std::string stops;
  for (const std::string& stop : engine.stop_strings()) stops += "stop " + json_quote(stop) + "\n";
  std::string info = fmt::format(R"("general.architecture":{},"general.parameter_count":{})",
                                 json_quote(type), config_integer(model, "parameters"));
  static constexpr std::pair<const char*, const char*> kSizes[] = {
      {"context_length", "architecture.max_position_embeddings"},
      {"embedding_length", "architecture.hidden_size"},
      {"block_count", "architecture.num_hidden_layers"},
      {"attention.head_count", "architecture.num_attention_heads"},
      {"attention.head_count_kv", "architecture.num_key_value_heads"},
      {"vocab_size", "architecture.vocab_size"}};
  for (const auto& [name, path] : kSizes) {
    info += fmt::format(",{}:{}", json_quote(type + "." + name), config_integer(model, path));
  }
  return fmt::format(
      R"({{"modified_at":"{}","template":{},"parameters":{},"details":{},"model_info":{{{}}},"capabilities":["completion"]}})",
      modified_at(service), json_quote(template_text(model)), json_quote(stops),
      details_json(model), info);
}

ApiResult<void> check_name(const Fields& fields, std::string_view field, const Service& service) {
  const auto name = fields.text(field);
  if (!name) return {};
  return check_model_name(ollama_model_name(*name), service.served());
}

using Reader = ApiResult<CompletionRequest> (*)(const Fields&, const Served&);

void answer(Service& service, const std::shared_ptr<Call>& call, std::span<const Field> table,
            Reader read) {
  const bool chat = read == read_ollama_chat;
  const auto body = parse_body(call->request().body);
  if (!body) return service.respond(*call, body.error());
  const auto fields = check_fields(*body, table);
  if (!fields) return service.respond(*call, fields.error());
  if (asks_for_load(*fields)) {
    const auto known = check_name(*fields, "model", service);
    if (!known) return service.respond(*call, known.error());
    return service.respond_json(*call, ollama_loaded(service.served().name, chat));
  }
  auto request = read(*fields, service.served());
  if (!request) return service.respond(*call, request.error());
  auto shape = ollama_shape(answer_frame(service, *request, "ollama-"), chat);
  start_answer(service, call, *std::move(request), std::move(shape));
}

const ApiError& no_embeddings() {
  static const ApiError error{501, "This server gives no embeddings.", "embeddings_not_built"};
  return error;
}

}  // namespace

void ollama_chat_route(Service& service, const std::shared_ptr<Call>& call) {
  answer(service, call, ollama_chat_fields(), read_ollama_chat);
}

void ollama_generate_route(Service& service, const std::shared_ptr<Call>& call) {
  answer(service, call, ollama_generate_fields(), read_ollama_generate);
}

void ollama_show_route(Service& service, const std::shared_ptr<Call>& call) {
  const auto body = parse_body(call->request().body);
  if (!body) return service.respond(*call, body.error());
  const auto fields = check_fields(*body, ollama_show_fields());
  if (!fields) return service.respond(*call, fields.error());
  for (const char* name : {"model", "name"}) {
    const auto known = check_name(*fields, name, service);
    if (!known) return service.respond(*call, known.error());
  }
  service.respond_json(*call, show_json(service));
}

void ollama_tags_route(Service& service, const std::shared_ptr<Call>& call) {
  service.respond_json(*call, fmt::format(R"({{"models":[{{{},"modified_at":"{}"}}]}})",
                                          model_members(service), modified_at(service)));
}

/// A model that never goes: its end is so far away that clients show it as "forever".
void ollama_ps_route(Service& service, const std::shared_ptr<Call>& call) {
  service.respond_json(
      *call,
      fmt::format(
          R"({{"models":[{{{},"expires_at":"2318-01-01T00:00:00Z","size_vram":0,"context_length":{}}}]}})",
          model_members(service), service.served().engine.ctx_tokens()));
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
