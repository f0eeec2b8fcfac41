// GET /v1/models and /v1/models/{name or id}; POST /v1/models/load and /v1/models/unload.
#include <fmt/format.h>

#include <charconv>

#include "base/json_text.hpp"
#include "server/model_fields.hpp"
#include "server/model_wait.hpp"
#include "server/service.hpp"

namespace cyb::server {
namespace {

/// A text, or null where it is not known.
std::string known(const std::string& text) {
  return text.empty() ? "null" : json_quote(text);
}

std::string model_json(const Service& service, const ShelfView& view) {
  return fmt::format(
      R"({{"id":{},"object":"model","created":{},"owned_by":"cyb-llm","parent":{},"state":"{}","pinned":{},"model_id":{},"path":{},"backend":{},"context_tokens":{},"slots":{},"size_bytes":{},"memory_bytes":{}}})",
      json_quote(view.name), service.started(), known(view.parent), shelf_state_name(view.state),
      view.pinned, known(view.facts.model_id), known(view.path), known(view.backend),
      view.ctx_tokens, view.slots, view.facts.file_bytes, view.memory_bytes);
}

/// %2F and the like; what is no escape stays.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* digits = text.data() + i + 1;
    const bool escape = text[i] == '%' && i + 2 < text.size();
    if (escape && std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
      out += static_cast<char>(code);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

struct Change {
  std::size_t model = 0;
  std::optional<KeepAlive> keep;
};

ApiResult<Change> read_change(Service& service, const Call& call, std::span<const Field> table) {
  if (auto refused = service.access().check_admin(call.request())) {
    return refuse(*std::move(refused));
  }
  CYB_API_ASSIGN(const ChatValue body, parse_body(call.request().body));
  CYB_API_ASSIGN(const Fields fields, check_fields(body, table));
  Change out;
  CYB_API_ASSIGN(out.keep, read_keep_alive(fields));
  CYB_API_ASSIGN(out.model, find_model(service, *fields.text("model")));
  return out;
}

}  // namespace

void models_route(Service& service, const std::shared_ptr<Call>& call) {
  std::string out;
  for (const ShelfView& view : service.shelf().views()) {
    out += (out.empty() ? "" : ",") + model_json(service, view);
  }
  service.respond_json(*call, R"({"object":"list","data":[)" + out + "]}");
}

void model_route(Service& service, const std::shared_ptr<Call>& call) {
  const std::string name = unescaped(call->request().path().substr(call->route->path.size()));
  const auto model = find_model(service, name);
  if (!model) return service.respond(*call, model.error());
  service.respond_json(*call, model_json(service, service.shelf().view(*model)));
}

void load_model_route(Service& service, const std::shared_ptr<Call>& call) {
  const auto asked = read_change(service, *call, load_model_fields());
  if (!asked) return service.respond(*call, asked.error());
  with_model(service, call, asked->model, asked->keep, [&service, call, model = asked->model] {
    service.respond_json(*call, model_json(service, service.shelf().view(model)));
  });
}

void unload_model_route(Service& service, const std::shared_ptr<Call>& call) {
  const auto asked = read_change(service, *call, unload_model_fields());
  if (!asked) return service.respond(*call, asked.error());
  without_model(service, call, asked->model, [&service, call, model = asked->model] {
    service.respond_json(*call, model_json(service, service.shelf().view(model)));
  });
}

}  // namespace cyb::server
