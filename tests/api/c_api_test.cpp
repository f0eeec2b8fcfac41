// The C ABI and the C++ API on a small model; the example programs on the real one.
#include <gtest/gtest.h>
#include <cyb/cyb.hpp>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "support/models.hpp"
#include "support/process.hpp"
#include "support/text_adapter.hpp"
#include "support/text_checkpoint.hpp"

namespace {

using cyb::test::TemporaryFolder;

/// A store of its own for the process.
class Api : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("CYB_DATA", folder.file("data").c_str(), 1);
    ::setenv("CYB_CACHE", folder.file("cache").c_str(), 1);
    ASSERT_TRUE(cyb::test::write_text_checkpoint(model_folder));
  }
  TemporaryFolder folder;
  std::string model_folder = folder.file("talker");
};

TEST_F(Api, Versions) {
  EXPECT_EQ(cyb_abi_version(), static_cast<std::uint32_t>(CYB_ABI_VERSION));
  EXPECT_EQ(cyb::version(), "0.1.0");
}

TEST_F(Api, ErrorsCarryCodeTextAndJson) {
  const auto model = cyb::Model::open("nobody");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code(), "InvalidInput");
  EXPECT_EQ(model.error().exit_code(), 1);
  EXPECT_EQ(nlohmann::json::parse(model.error().json())["kind"], "InvalidInput");
  cyb_error* error = cyb_model_open(nullptr, nullptr, nullptr);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(std::string(cyb_error_text(error)), "input: what is null");
  cyb_error_free(error);
  cyb_model_options options{};
  cyb_model* handle = nullptr;
  error = cyb_model_open("x", &options, &handle);
  ASSERT_NE(error, nullptr) << "struct_size is not set";
  cyb_error_free(error);
}

TEST_F(Api, AdaptersOfAModel) {
  const std::string adapter = folder.file("adapter"), dora = folder.file("dora");
  ASSERT_TRUE(cyb::test::write_text_adapter(adapter));
  ASSERT_TRUE(cyb::test::write_text_adapter(dora, R"("lora_alpha":1,"use_dora":true)"));
  const auto logits = [&](std::vector<std::pair<std::string, double>> adapters) {
    const auto model = cyb::Model::open(model_folder, {.adapters = std::move(adapters)});
    EXPECT_TRUE(model) << model.error().text();
    const std::vector<std::int32_t> ids = {1, 2, 3};
    return *model->logits(ids);
  };
  const std::vector<float> plain = logits({}), with = logits({{adapter, 1.0}});
  EXPECT_NE(with, plain);
  EXPECT_EQ(logits({{adapter, 0.0}}), plain);
  EXPECT_NE(logits({{adapter, 0.5}}), with);
  const auto refused = cyb::Model::open(model_folder, {.adapters = {{dora, 1.0}}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), "L05");
  cyb_model_options options;
  cyb_model_options_init(&options);
  const char* paths[] = {adapter.c_str(), nullptr};
  options.adapters = paths;
  options.n_adapters = 1;  // without weights: 1
  cyb_model* handle = nullptr;
  ASSERT_EQ(cyb_model_open(model_folder.c_str(), &options, &handle), nullptr);
  cyb_model_free(handle);
  options.n_adapters = 2;
  cyb_error* error = cyb_model_open(model_folder.c_str(), &options, &handle);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(std::string(cyb_error_code(error)), "InvalidInput");
  cyb_error_free(error);
}

TEST_F(Api, TokensLogitsAndAnswers) {
  const auto model = cyb::Model::open(model_folder);
  ASSERT_TRUE(model) << model.error().text();
  const auto ids = model->encode("the cat");
  ASSERT_TRUE(ids) << ids.error().text();
  EXPECT_TRUE(model->decode(*ids)->find("the cat") != std::string::npos);
  const auto logits = model->logits(*ids);
  ASSERT_TRUE(logits);
  EXPECT_EQ(logits->size(), ids->size() * model->vocab_size());
  for (const float value : *logits) ASSERT_TRUE(std::isfinite(value));
  const auto plain = cyb::Model::open(model_folder, {.no_fuse = true});
  ASSERT_TRUE(plain) << plain.error().text();
  const auto same = plain->logits(*ids);
  ASSERT_TRUE(same);
  ASSERT_EQ(same->size(), logits->size());
  for (std::size_t i = 0; i < same->size(); ++i) ASSERT_NEAR((*same)[i], (*logits)[i], 1e-3F);

  auto session = cyb::Session::create(*model);
  ASSERT_TRUE(session);
  std::string streamed;
  cyb::AnswerOptions options{.max_tokens = 8, .temperature = 0.7, .seed = 5};
  options.on_text = [&](std::string_view text) {
    streamed += text;
    return false;
  };
  const auto answer = session->complete("the cat", options);
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(streamed, answer->text());
  EXPECT_EQ(answer->seed(), 5u);
  EXPECT_EQ(nlohmann::json::parse(answer->json())["tokens"].size(), answer->tokens().size());
  ASSERT_TRUE(session->reset());
  const auto again = session->complete("the cat", options);
  ASSERT_TRUE(again);
  EXPECT_TRUE(std::equal(again->tokens().begin(), again->tokens().end(), answer->tokens().begin(),
                         answer->tokens().end()));
}

TEST_F(Api, TextThatIsNoneIsRefused) {
  const auto model = cyb::Model::open(model_folder);
  ASSERT_TRUE(model) << model.error().text();
  auto session = cyb::Session::create(*model);
  ASSERT_TRUE(session);
  const auto message = [&](const auto& answer) {
    return answer ? std::string("answered") : std::string(answer.error().text());
  };
  EXPECT_EQ(message(session->chat("ab\xFF", {.max_tokens = 1})),
            "input: a content is not UTF-8: byte 0xFF at offset 2");
  EXPECT_EQ(message(session->complete("\xC3", {.max_tokens = 1})),
            "input: text is not UTF-8: byte 0xC3 at offset 0");
  EXPECT_EQ(message(session->complete("a", {.max_tokens = 1, .stop = {""}})),
            "input: a stop is the empty text");
  EXPECT_EQ(message(session->complete("a", {.max_tokens = 1, .stop = {"\x80"}})),
            "input: a stop is not UTF-8: byte 0x80 at offset 0");
}

TEST_F(Api, CallbackAndOtherThreadEndAnAnswer) {
  const auto model = cyb::Model::open(model_folder);
  ASSERT_TRUE(model) << model.error().text();
  auto session = cyb::Session::create(*model);
  ASSERT_TRUE(session);
  cyb::AnswerOptions options{.temperature = 2.0, .seed = 3};
  options.on_text = [](std::string_view) { return true; };
  const auto answer = session->complete("the cat", options);
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->finish_reason(), "cancelled");
}

TEST_F(Api, HandlesMayGoInAnyOrder) {
  cyb_model* model = nullptr;
  cyb_session* session = nullptr;
  ASSERT_EQ(cyb_model_open(model_folder.c_str(), nullptr, &model), nullptr);
  ASSERT_EQ(cyb_session_new(model, &session), nullptr);
  cyb_model_free(model);
  cyb_answer_options options;
  cyb_answer_options_init(&options);
  options.max_tokens = 2;
  cyb_answer* answer = nullptr;
  ASSERT_EQ(cyb_complete(session, "a", &options, &answer), nullptr);
  cyb_session_free(session);
  EXPECT_NE(cyb_answer_text(answer), nullptr);
  cyb_answer_free(answer);
}

TEST_F(Api, SamplersAnswersAndGuesses) {
  const auto model = cyb::Model::open(model_folder, {.max_sessions = 3, .max_guesses = 6});
  ASSERT_TRUE(model) << model.error().text();
  const auto ask = [&](cyb::AnswerOptions options) {
    auto session = cyb::Session::create(*model);
    options.max_tokens = 12;
    options.seed = 9;
    auto answer = session->complete("the cat sat on the cat", options);
    EXPECT_TRUE(answer) << answer.error().text();
    const auto ids = answer->tokens();
    return std::vector<std::int32_t>(ids.begin(), ids.end());
  };
  const auto plain = ask({.temperature = 1.0});
  EXPECT_NE(ask({.temperature = 1.0, .row = 1}), plain);
  EXPECT_EQ(ask({.temperature = 1.0, .lookup_tokens = 5}), plain);
  EXPECT_EQ(ask({.temperature = 1.0, .draft = *model, .draft_tokens = 3}), plain);
  EXPECT_EQ(ask({.temperature = 1.0, .samplers = "temperature"}), plain);
  EXPECT_NE(ask({.temperature = 1.0, .presence_penalty = 5.0}), plain);
  const auto forced = ask({.logit_bias = {{70, 1000.0}}});
  EXPECT_EQ(forced, std::vector<std::int32_t>(12, 70));
  auto session = cyb::Session::create(*model);
  const auto refused = [&](cyb::AnswerOptions options) {
    const auto answer = session->complete("a", options);
    return answer ? std::string() : std::string(answer.error().code());
  };
  EXPECT_EQ(refused({.samplers = "top_q"}), "InvalidInput");
  EXPECT_EQ(refused({.top_p = 0.5, .samplers = "temperature"}), "InvalidInput");
  EXPECT_EQ(refused({.typical_p = 1.5}), "InvalidConfig");
  EXPECT_EQ(refused({.overflow = "fall"}), "InvalidInput");
  EXPECT_EQ(refused({.lookup_tokens = 60}), "InvalidInput");
  EXPECT_FALSE(cyb::Model::open(model_folder, {.kv_type = "q5"}));
}

TEST_F(Api, ASessionIsSavedAndRestored) {
  const auto model = cyb::Model::open(model_folder, {.max_sessions = 2, .kv_type = "q8"});
  ASSERT_TRUE(model) << model.error().text();
  const std::string text = "one two three four five six seven eight nine ten eleven twelve";
  auto first = cyb::Session::create(*model), second = cyb::Session::create(*model);
  const auto before = first->complete(text, {.max_tokens = 8});
  ASSERT_TRUE(before) << before.error().text();
  const std::string path = folder.file("kept.chat");
  ASSERT_TRUE(first->save(path));
  const auto restored = second->restore(path);
  ASSERT_TRUE(restored) << restored.error().text();
  EXPECT_GE(*restored, 16u);
  const auto after = second->complete(text, {.max_tokens = 8});
  EXPECT_EQ(after->text(), before->text());
  EXPECT_GE(nlohmann::json::parse(after->json())["reused_tokens"].get<int>(), 16);
  const auto other = cyb::Model::open(model_folder, {.kv_type = "f16"});
  auto third = cyb::Session::create(*other);
  const auto refused = third->restore(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), "K03");
}

TEST_F(Api, ImportGivesAReport) {
  const auto report = cyb::import_model(model_folder, folder.file("m.model"), "by-api");
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(nlohmann::json::parse(*report)["name"], "by-api");
  EXPECT_TRUE(cyb::Model::open(folder.file("m.model")));
}

TEST_F(Api, ExamplesRun) {
  ASSERT_TRUE(cyb::test::model_present(cyb::test::kSmolLm2))
      << cyb::test::model_hint(cyb::test::kSmolLm2);
  const std::string model = cyb::test::model_file(cyb::test::kSmolLm2);
  const auto c = cyb::test::run_process({cyb::test::built_program("examples/example_c"), model,
                                         "What is the capital city of Japan?"});
  EXPECT_EQ(c.exit_code, 0) << c.err;
  EXPECT_NE(c.out.find("Tokyo"), std::string::npos) << c.out;
  const auto cpp =
      cyb::test::run_process({cyb::test::built_program("examples/example_cpp"), model});
  EXPECT_EQ(cpp.exit_code, 0) << cpp.err;
  EXPECT_NE(cpp.out.find("Gravity"), std::string::npos) << cpp.out;
  EXPECT_NE(cpp.out.find("log p(last token) = -"), std::string::npos) << cpp.out;
}

}  // namespace
