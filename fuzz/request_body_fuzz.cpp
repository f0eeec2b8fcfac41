// Bodies of requests: any bytes give what the scheduler takes, or an error with a status, a code
// and a message that a client can read.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/utf8.hpp"
#include "server/completion_request.hpp"
#include "server/grammar_cache.hpp"
#include "server/ollama_request.hpp"
#include "server/responses_request.hpp"
#include "server_engine.hpp"

namespace {

using namespace cyb;
using namespace cyb::server;

void need(bool condition) {
  if (!condition) std::abort();
}

void check_error(const ApiError& error) {
  need(error.status >= 400 && error.status <= 501 && error.status != 500);
  need(!error.message.empty() && !error.code.empty());
  need(error.message.size() < 4096);
  for (const ErrorShape shape : {ErrorShape::kOpenAi, ErrorShape::kOllama}) {
    need(nlohmann::json::accept(error_json(error, shape)));
  }
}

void check_request(const CompletionRequest& request, const Engine& engine) {
  const GenerateRequest& generate = request.generate;
  need(generate.n_answers >= 1 && generate.n_answers <= 16);
  need(generate.options.stop.size() <= 16);
  need(utf8_find_invalid(request.user) == std::string_view::npos);
  // Ids of a client are checked by the scheduler; those of texts are the tokenizer's.
  if (request.chat) need(engine.check_ids(generate.prompt).has_value());
}

template <class T>
const CompletionRequest& completion_of(const T& request) {
  if constexpr (requires { request.completion; }) {
    need(nlohmann::json::accept("{" + request.echo + "}"));
    return request.completion;
  } else {
    return request;
  }
}

template <class T>
void check(const ApiResult<T>& request, const Engine& engine) {
  request ? check_request(completion_of(*request), engine) : check_error(request.error());
}

void read(unsigned api, const ChatValue& body, const Served& served) {
  const Engine& engine = served.engine;
  if (api == 0) return check(read_chat_request(body, served), engine);
  if (api == 1) return check(read_completion_request(body, served), engine);
  if (api == 2) return check(read_responses_request(body, served), engine);
  const auto table = api == 3 ? ollama_chat_fields() : ollama_generate_fields();
  const auto fields = check_fields(body, table);
  if (!fields) return check_error(fields.error());
  if (asks_for_load(*fields)) return;
  check(api == 3 ? read_ollama_chat(*fields, served) : read_ollama_generate(*fields, served),
        engine);
}

}  // namespace

/// The first byte picks the API; the rest is the body.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const Engine& engine = fuzz::server_engine();
  GrammarCache grammars;
  const Served served{engine, "test", 16, &grammars};
  const auto body = parse_body({reinterpret_cast<const char*>(data) + 1, size - 1});
  if (!body) {
    check_error(body.error());
    return 0;
  }
  read(data[0] % 5U, *body, served);
  return 0;
}
