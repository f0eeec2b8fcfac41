// GET /v1/models and /v1/models/{name or id}; POST /v1/models/load, /v1/models/unload and
// /v1/models/pull.
#include <fmt/format.h>

#include <charconv>

#include "base/json_text.hpp"
#include "model/store_index.hpp"
#include "server/model_fields.hpp"
#include "server/model_wait.hpp"
#include "server/pull_job.hpp"
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

struct Pull {
  PullOrder order;
  PullManner manner;
};

ApiResult<Pull> read_pull(Service& service, const Call& call) {
  if (auto refused = service.access().check_admin(call.request())) {
    return refuse(*std::move(refused));
  }
  if (service.pulls() == nullptr) {
    return refuse({403, "This server pulls no models (serve --allow-pull ORIGIN).", "pull_off"});
  }
  CYB_API_ASSIGN(const ChatValue body, parse_body(call.request().body));
  CYB_API_ASSIGN(const Fields fields, check_fields(body, pull_model_fields()));
  Pull out;
  out.order.source = *fields.text("source");
  out.order.name = fields.text("name").value_or("");
  out.order.sha256 = fields.text("sha256").value_or("");
  out.manner = {.stream = fields.is_true("stream"), .detach = fields.is_true("detach")};
  if (!out.order.name.empty() && !is_store_name(out.order.name)) {
    return refuse(bad_value("name", "must be of A-Z a-z 0-9 . _ -, not starting with . or -"));
  }
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

void pull_model_route(Service& service, const std::shared_ptr<Call>& call) {
  auto asked = read_pull(service, *call);
  if (!asked) return service.respond(*call, asked.error());
  start_pull(service, call, std::move(asked->order), asked->manner, [&service](std::size_t model) {
    return model_json(service, service.shelf().view(model));
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
