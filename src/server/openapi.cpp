// Requests come from the field tables; what an operation answers stands in kOperations and
// openapi_schemas.inc.
#include "server/openapi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "server/completion_fields.hpp"
#include "server/model_fields.hpp"
#include "server/ollama_request.hpp"
#include "server/responses_input.hpp"
#include "server/responses_request.hpp"
#include "server/service.hpp"
#include "server/text_fields.hpp"

namespace cyb::server {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchemas =
#include "server/openapi_schemas.inc"
    ;

/// What the route list does not say of a route.
struct Operation {
  std::string_view route, summary;
  FieldTable fields = nullptr;  // of the body
  std::string_view answer{};    // schema of a 200; empty: never one
  std::string_view stream{};    // the other type of a 200
};

constexpr std::string_view kEvents = "text/event-stream", kLines = "application/x-ndjson";
constexpr std::string_view kBytes = "application/octet-stream";

constexpr Operation kOperations[] = {
    {"chat", "Answers messages", chat_fields, "ChatCompletion", kEvents},
    {"completions", "Goes on with a text", completion_fields, "Completion", kEvents},
    {"responses", "Answers messages, as OpenAI's later API", responses_fields, "Response", kEvents},
    {"embeddings", "Not built"},
    {"rerank", "Not built"},
    {"models", "The models that are served", nullptr, "ModelList"},
    {"model", "One of them, by name or id", nullptr, "Model"},
    {"load_model", "Loads a model; an admin's", load_model_fields, "Model"},
    {"unload_model", "Unloads a model once nobody uses it; an admin's", unload_model_fields,
     "Model"},
    {"pull_model", "Fetches a model into the store and serves it; an admin's", pull_model_fields,
     "Model", kEvents},
    {"registry_models", "Files of the served models (serve --share-models)", nullptr,
     "RegistryList"},
    {"registry_blob", "A file by its digest, or a range of it", nullptr, "", kBytes},
    {"tokenize", "Text to token ids", tokenize_fields, "Tokens"},
    {"detokenize", "Token ids to text", detokenize_fields, "Text"},
    {"apply_template", "Messages to the model's prompt", apply_template_fields, "RenderedPrompt"},
    {"health", "The process lives", nullptr, "Status"},
    {"ready", "It takes requests", nullptr, "Status"},
    {"metrics", "Counters and histograms for Prometheus"},
    {"openapi", "This file", nullptr, "Document"},
    {"ollama_chat", "Answers messages", ollama_chat_fields, "OllamaAnswer", kLines},
    {"ollama_generate", "Answers a prompt", ollama_generate_fields, "OllamaAnswer", kLines},
    {"ollama_show", "What the model is", ollama_show_fields, "OllamaModel"},
    {"ollama_embed", "Not built"},
    {"ollama_embeddings", "Not built"},
    {"ollama_tags", "The models that are served", nullptr, "OllamaModels"},
    {"ollama_ps", "Those that are loaded", nullptr, "OllamaModels"},
    {"ollama_version", "Of this program", nullptr, "OllamaVersion"},
};

/// For browsers, no part of the API.
constexpr std::string_view kPageRoutes[] = {"page", "page_asset"};

constexpr Route kListed[] = {
#define CYB_ROUTE(name, method, path, open) {#name, method, path, open, nullptr},
#include "server/route_list.inc"
#undef CYB_ROUTE
};

Json reference(std::string_view schema) {
  return {{"$ref", "#/components/schemas/" + std::string(schema)}};
}

Json object_schema(std::span<const Field> table);

/// Values that kOnly fields take: JSON texts with | between them.
Json listed_values(std::string_view list) {
  Json out = Json::array();
  while (true) {
    const std::size_t at = list.find('|');
    const std::string_view one = list.substr(0, at);
    out.push_back(Json::parse(one, nullptr, false));
    if (at == std::string_view::npos) return out;
    list.remove_prefix(at + 1);
  }
}

Json number_schema(const Field& field, const char* type) {
  Json out = {{"type", type}};
  if (field.type == FieldType::kInteger) {
    out["minimum"] = static_cast<std::int64_t>(field.min);
    out["maximum"] = static_cast<std::int64_t>(field.max);
  } else {
    out["minimum"] = field.min;
    out["maximum"] = field.max;
  }
  return out;
}

Json list_schema(const Field& field) {
  Json out = {{"type", "array"}};
  if (field.min > 0) out["minItems"] = static_cast<std::int64_t>(field.min);
  out["maxItems"] = static_cast<std::int64_t>(field.max);
  if (field.type == FieldType::kStrings) out["items"] = {{"type", "string"}};
  if (!field.schema.empty()) out["items"] = reference(field.schema);
  return out;
}

/// Without null, which every field takes as "not given".
Json value_schema(const Field& field) {
  switch (field.type) {
    case FieldType::kBool:
      return {{"type", "boolean"}};
    case FieldType::kInteger:
      return number_schema(field, "integer");
    case FieldType::kNumber:
      return number_schema(field, "number");
    case FieldType::kString:
      return {{"type", "string"},
              {"minLength", static_cast<std::int64_t>(field.min)},
              {"maxLength", static_cast<std::int64_t>(field.max)}};
    case FieldType::kStrings:
      return {{"anyOf", Json::array({Json{{"type", "string"}}, list_schema(field)})}};
    case FieldType::kList:
      return list_schema(field);
    case FieldType::kObject:
      if (field.members != nullptr) return object_schema(field.members());
      if (!field.schema.empty()) return reference(field.schema);
      return {{"type", "object"}, {"maxProperties", static_cast<std::int64_t>(field.max)}};
    default:
      return field.schema.empty() ? Json::object() : reference(field.schema);
  }
}

Json field_schema(const Field& field) {
  Json out;
  if (field.state == FieldState::kOnly) {
    Json values = listed_values(field.fallback);
    values.push_back(nullptr);
    out["enum"] = std::move(values);
  } else if (field.required) {
    out = value_schema(field);
  } else {
    out["anyOf"] = Json::array({value_schema(field), Json{{"type", "null"}}});
  }
  std::string text(field.note);
  if (field.state == FieldState::kBuilt && !field.fallback.empty()) {
    const Json value = Json::parse(field.fallback, nullptr, false);
    if (!value.is_discarded()) {
      out["default"] = value;
    } else {
      text += fmt::format("{}default: {}", text.empty() ? "" : "; ", field.fallback);
    }
  }
  if (!text.empty() && !out.contains("$ref")) out["description"] = text;
  return out;
}

/// Fields that are refused do not exist there.
Json object_schema(std::span<const Field> table) {
  Json out = {{"type", "object"}, {"properties", Json::object()}, {"additionalProperties", false}};
  Json required = Json::array();
  for (const Field& field : table) {
    if (field.state == FieldState::kRefused) continue;
    out["properties"][std::string(field.name)] = field_schema(field);
    if (field.required) required.push_back(field.name);
  }
  if (!required.empty()) out["required"] = std::move(required);
  return out;
}

Json response(std::string_view text, std::string_view type, Json schema) {
  Json content = Json::object();
  content[std::string(type)] = {{"schema", std::move(schema)}};
  return {{"description", text},
          {"headers", {{"X-Request-Id", {{"schema", {{"type", "string"}}}}}}},
          {"content", std::move(content)}};
}

Json success(const Operation& operation) {
  if (operation.stream == kBytes) return response("The file", kBytes, Json::object());
  if (operation.answer.empty()) return response("Text", "text/plain", {{"type", "string"}});
  Json out = response("The answer", "application/json", reference(operation.answer));
  if (!operation.stream.empty()) {
    out["content"][std::string(operation.stream)] = {
        {"schema", {{"type", "string"}, {"description", "with stream: true"}}}};
  }
  return out;
}

Json responses_of(const Operation& operation, const Route& route) {
  struct Status {
    const char *code, *text;
    bool body;  // of requests that have one
  };
  static constexpr Status kStatuses[] = {
      {"400", "The request is wrong; the code says how", false},
      {"401", "A key is needed", false},
      {"403", "Not for this host, origin or key", false},
      {"404", "No such model, or nothing at this path", false},
      {"405", "Another method", false},
      {"408", "The request did not come in time", true},
      {"409", "The model is pinned", true},
      {"413", "The body is too large", true},
      {"415", "The body is not application/json", true},
      {"429", "This key has too many requests open", true},
      {"431", "The header is too large", false},
      {"500", "The server failed", false},
      {"503", "Too much to do, or shutting down", false},
      {"507", "The model does not fit into the memory that models may take", true},
  };
  const bool post = route.method == "POST";
  const bool built = !post || operation.fields != nullptr;
  Json out = Json::object();
  if (built) out["200"] = success(operation);
  const Json schema =
      reference(error_shape(route.path) == ErrorShape::kOllama ? "OllamaError" : "Error");
  if (operation.stream == kBytes) {
    out["206"] = response("The range", kBytes, Json::object());
    out["416"] = response("No byte of the file", "application/json", schema);
  }
  if (operation.route == "pull_model") {
    out["202"] =
        response("It is being pulled; with detach: true", "application/json", reference("Pulling"));
    out["502"] = response("The source failed", "application/json", schema);
  }
  for (const Status& status : kStatuses) {
    if (post || !status.body) {
      out[status.code] = response(status.text, "application/json", schema);
    }
  }
  if (!built) out["501"] = response("Not built", "application/json", schema);
  return out;
}

Json operation_json(const Operation& operation, const Route& route) {
  Json out = {{"operationId", route.name}, {"summary", operation.summary}};
  if (route.path.ends_with('/')) {
    out["parameters"] = Json::array({{{"name", "name"},
                                      {"in", "path"},
                                      {"required", true},
                                      {"schema", {{"type", "string"}, {"minLength", 1}}}}});
  }
  if (route.method == "POST") {
    Json schema =
        operation.fields == nullptr ? Json{{"type", "object"}} : object_schema(operation.fields());
    out["requestBody"] = {{"required", true},
                          {"content", {{"application/json", {{"schema", std::move(schema)}}}}}};
  }
  if (!route.open) out["security"] = Json::array({Json::object(), {{"key", Json::array()}}});
  out["responses"] = responses_of(operation, route);
  return out;
}

Json components() {
  Json schemas = Json::parse(kSchemas);
  schemas["ResponsesMessage"] = object_schema(responses_message_fields());
  schemas["ResponsesCall"] = object_schema(responses_call_fields());
  schemas["ResponsesCallOutput"] = object_schema(responses_output_fields());
  schemas["ResponsesReasoning"] = object_schema(responses_reasoning_fields());
  schemas["ResponsesTool"] = object_schema(responses_tool_fields());
  schemas["ResponsesPart"] = object_schema(responses_part_fields());
  schemas["OllamaCall"] = object_schema(ollama_call_fields());
  schemas["OllamaMessage"] = object_schema(ollama_message_fields());
  return {{"schemas", std::move(schemas)},
          {"securitySchemes", {{"key", {{"type", "http"}, {"scheme", "bearer"}}}}}};
}

}  // namespace

std::string openapi_json(std::string_view version) {
  Json paths = Json::object();
  for (const Route& route : kListed) {
    const auto operation = std::ranges::find(kOperations, route.name, &Operation::route);
    if (operation == std::end(kOperations)) continue;
    std::string path(route.path);
    if (path.ends_with('/')) path += "{name}";
    std::string method(route.method);
    std::ranges::transform(method, method.begin(),
                           [](char c) { return static_cast<char>(c | 0x20); });
    paths[path][method] = operation_json(*operation, route);
  }
  const Json out = {{"openapi", "3.1.0"},
                    {"info",
                     {{"title", "cyb-llm"},
                      {"version", version},
                      {"description", "Models behind the APIs of OpenAI and Ollama."},
                      {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
                    {"paths", std::move(paths)},
                    {"components", components()}};
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string_view> undescribed_routes() {
  std::vector<std::string_view> out;
  for (const Route& route : kListed) {
    if (std::ranges::find(kPageRoutes, route.name) != std::end(kPageRoutes)) continue;
    if (std::ranges::find(kOperations, route.name, &Operation::route) == std::end(kOperations)) {
      out.push_back(route.name);
    }
  }
  return out;
}

}  // namespace cyb::server
