// Contexts past the trained length: only by a rope rule, and the refusal says which.
#include "runtime/context_limit.hpp"

#include <gtest/gtest.h>

#include "support/engine_support.hpp"

namespace cyb::test {
namespace {

ConfigTable config_of(const std::string& type, double factor, std::int64_t original = 0) {
  ConfigTable rope, architecture, config;
  rope.set("type", type);
  rope.set("factor", factor);
  if (original != 0) rope.set("original_max_position_embeddings", original);
  architecture.set("rope_scaling", rope);
  config.set("architecture", architecture);
  return config;
}

TEST(ContextLimitRule, FollowsTheRopeRule) {
  EXPECT_EQ(context_limit({}, 2048).most, 2048u);
  EXPECT_EQ(context_limit(config_of("linear", 4.0), 4096).most, 16384u);
  EXPECT_EQ(context_limit(config_of("dynamic", 2.0), 2048).most, 4096u);
  EXPECT_EQ(context_limit(config_of("yarn", 4.0, 32768), 32768).most, 131072u);
  EXPECT_EQ(context_limit(config_of("yarn", 4.0, 32768), 131072).most, 131072u);
  EXPECT_EQ(context_limit(config_of("yarn", 2.0), 1024).most, 2048u);
  EXPECT_EQ(context_limit(config_of("llama3", 8.0, 8192), 131072).most, 131072u);
  EXPECT_EQ(context_limit(config_of("longrope", 32.0, 4096), 131072).most, 131072u);
  for (const double factor : {1.0, 0.5, -3.0})
    EXPECT_EQ(context_limit(config_of("linear", factor), 512).most, 512u);
  EXPECT_EQ(context_limit(config_of("linear", 1e300), 512).most, 1u << 30);
  EXPECT_NE(context_limit(config_of("yarn", 4.0, 32768), 32768).reason.find("yarn reaches 131072"),
            std::string::npos);
}

TEST(ContextLimitRule, AModelWithoutOneIsRefusedByWhatItHas) {
  EngineOptions options;
  options.ctx_tokens = 5000;
  const auto engine = Engine::load(tiny_model("qwen2"), options);
  ASSERT_FALSE(engine.has_value());
  EXPECT_NE(engine.error().text().find("it has no rope_scaling that reaches further"),
            std::string::npos)
      << engine.error().text();
}

}  // namespace
}  // namespace cyb::test
