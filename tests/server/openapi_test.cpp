// The OpenAPI file: complete, whole, and of the tables.
#include "server/openapi.hpp"

#include <gtest/gtest.h>

#include "server/completion_fields.hpp"
#include "server/scripted_server.hpp"

namespace cyb::test {
namespace {

using Json = nlohmann::json;

/// Counts the references of `json` and expects each to lead somewhere.
std::size_t check_references(const Json& json, const Json& document) {
  std::size_t n = 0;
  std::vector<const Json*> open{&json};
  while (!open.empty()) {
    const Json& at = *open.back();
    open.pop_back();
    for (const auto& [key, value] : at.items()) {
      if (at.is_object() && key == "$ref" && value.is_string()) {
        const std::string path = value.get<std::string>();
        EXPECT_TRUE(document.contains(Json::json_pointer(path.substr(1)))) << path;
        ++n;
      }
      if (value.is_structured()) open.push_back(&value);
    }
  }
  return n;
}

TEST(ServerOpenApi, SaysWhatTheTablesSay) {
  EXPECT_TRUE(server::undescribed_routes().empty());
  const Json document = Json::parse(server::openapi_json("1.2.3"));
  EXPECT_EQ(document["openapi"], "3.1.0");
  EXPECT_EQ(document["info"]["version"], "1.2.3");
  EXPECT_GT(check_references(document, document), 40u);
  const Json& chat = document["paths"]["/v1/chat/completions"]["post"];
  const Json& body = chat["requestBody"]["content"]["application/json"]["schema"];
  EXPECT_EQ(body["additionalProperties"], false);
  EXPECT_EQ(body["required"], Json::array({"messages"}));
  for (const server::Field& field : server::chat_fields()) {
    const bool refused = field.state == server::FieldState::kRefused;
    EXPECT_EQ(body["properties"].contains(field.name), !refused) << field.name;
  }
  const Json& top = body["properties"]["top_logprobs"]["anyOf"][0];
  EXPECT_EQ(top["type"], "integer");
  EXPECT_EQ(top["maximum"], server::kMaxTopLogprobs);
  EXPECT_EQ(body["properties"]["top_logprobs"]["default"], 0);
  EXPECT_EQ(body["properties"]["store"]["enum"], Json::array({false, nullptr}));
  EXPECT_TRUE(chat["responses"]["200"]["content"].contains("text/event-stream"));
  const Json& embeddings = document["paths"]["/v1/embeddings"]["post"]["responses"];
  EXPECT_TRUE(embeddings.contains("501") && !embeddings.contains("200"));
  EXPECT_TRUE(document["paths"].contains("/v1/models/{name}"));
  // Every route that takes tools says so.
  const auto tools_of = [&](const char* path) {
    const Json& fields = document["paths"][path]["post"]["requestBody"]["content"]
                                 ["application/json"]["schema"]["properties"];
    return fields["tools"]["anyOf"][0]["items"]["$ref"].get<std::string>();
  };
  const std::string schemas = "#/components/schemas/";
  for (const char* path : {"/v1/chat/completions", "/api/chat", "/apply-template"}) {
    EXPECT_EQ(tools_of(path), schemas + "Tool") << path;
  }
  EXPECT_EQ(tools_of("/v1/responses"), schemas + "ResponsesTool");
}

TEST(ServerOpenApi, IsServed) {
  const TestServer server(answer_after_mark({'o', 'k', kEnd}));
  const Reply reply = ask(server.port(), get_text("/openapi.json"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, server::openapi_json(""));
}

}  // namespace
}  // namespace cyb::test
