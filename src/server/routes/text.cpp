// POST /tokenize, /detokenize and /apply-template: the text layer alone.
#include <fmt/format.h>

#include <iterator>

#include "base/json_text.hpp"
#include "base/utf8.hpp"
#include "runtime/chat.hpp"
#include "server/model_wait.hpp"
#include "server/service.hpp"
#include "server/text_fields.hpp"
#include "server/tool_fields.hpp"
#include "text/tokenizer.hpp"

namespace cyb::server {
namespace {

ApiResult<const Tokenizer*> tokenizer_of(const Engine& engine) {
  const auto tokenizer = engine.need_tokenizer();
  if (!tokenizer) return refuse(api_error(tokenizer.error()));
  return *tokenizer;
}

/// A piece that is no whole text is shown as the numbers of its bytes.
std::string piece_json(const Tokenizer& tokenizer, std::int32_t id) {
  const std::string piece(tokenizer.piece(id));
  if (utf8_find_invalid(piece) == std::string_view::npos)
    return fmt::format(R"({{"id":{},"piece":{}}})", id, json_quote(piece));
  std::vector<unsigned> bytes;
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  return fmt::format(R"({{"id":{},"piece":[{}]}})", id, fmt::join(bytes, ","));
}

ApiResult<std::string> tokenize(const Fields& fields, const Engine& engine) {
  CYB_API_ASSIGN(const Tokenizer* tokenizer, tokenizer_of(engine));
  const auto content = fields.text("content");
  const auto ids = tokenizer->encode(*content, {.parse_special = fields.is_true("parse_special"),
                                                .add_special = fields.is_true("add_special")});
  if (!ids) return refuse(api_error(ids.error()));
  if (!fields.is_true("with_pieces")) {
    return fmt::format(R"({{"tokens":[{}],"count":{}}})", fmt::join(*ids, ","), ids->size());
  }
  std::string out = R"({"tokens":[)";
  for (std::size_t i = 0; i < ids->size(); ++i) {
    out += (i == 0 ? "" : ",") + piece_json(*tokenizer, (*ids)[i]);
  }
  return out + fmt::format(R"(],"count":{}}})", ids->size());
}

ApiResult<std::string> detokenize(const Fields& fields, const Engine& engine) {
  CYB_API_ASSIGN(const Tokenizer* tokenizer, tokenizer_of(engine));
  const ChatValue* list = fields.find("tokens");
  std::vector<std::int32_t> ids;
  for (const ChatValue& item : list->items) {
    const bool known = item.kind == ChatValue::Kind::kInt && item.integer >= 0 &&
                       item.integer < tokenizer->vocab_size();
    if (!known) return refuse(bad_value("tokens", "has an element that is no token id"));
    ids.push_back(static_cast<std::int32_t>(item.integer));
  }
  const auto text = tokenizer->decode(ids);
  if (!text) return refuse(api_error(text.error()));
  return R"({"content":)" + json_quote(*text) + "}";
}

ApiResult<std::string> apply_template(const Fields& fields, const Engine& engine) {
  CYB_API_ASSIGN(const ToolRequest tools, read_tools(fields));
  CYB_API_ASSIGN(ChatInput input, read_messages(fields, engine));
  CYB_API_TRY(put_tools(engine, tools, input));
  input.add_generation_prompt = fields.flag("add_generation_prompt").value_or(true);
  if (engine.chat_template() == nullptr) return refuse(api_error(engine.chat_error()));
  const auto segments = engine.chat_template()->render(std::move(input));
  if (!segments) return refuse(api_error(segments.error()));
  return R"({"prompt":)" + json_quote(joined_text(*segments)) + "}";
}

using Work = ApiResult<std::string> (*)(const Fields&, const Engine&);

void answer(Service& service, const std::shared_ptr<Call>& call, FieldTable table, Work work) {
  auto parsed = parse_body(call->request().body);
  if (!parsed) return service.respond(*call, parsed.error());
  const auto body = std::make_shared<const ChatValue>(*std::move(parsed));
  const auto fields = check_fields(*body, table());
  if (!fields) return service.respond(*call, fields.error());
  with_model(service, call, fields->text("model").value_or(""), {}, [&service, call, body, work] {
    auto out = work(Fields(*body), call->model.engine());
    if (!out) return service.respond(*call, out.error());
    service.respond_json(*call, *std::move(out));
  });
}

}  // namespace

void tokenize_route(Service& service, const std::shared_ptr<Call>& call) {
  answer(service, call, tokenize_fields, tokenize);
}

void detokenize_route(Service& service, const std::shared_ptr<Call>& call) {
  answer(service, call, detokenize_fields, detokenize);
}

void apply_template_route(Service& service, const std::shared_ptr<Call>& call) {
  answer(service, call, apply_template_fields, apply_template);
}

}  // namespace cyb::server
