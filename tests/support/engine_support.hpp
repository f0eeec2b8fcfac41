// Short hands for tests that need an engine.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/engine.hpp"
#include "runtime/session.hpp"
#include "support/scripted_backend.hpp"
#include "support/tiny_models.hpp"

namespace cyb::test {

/// An engine on a scripted backend (curated path).
inline std::shared_ptr<Engine> scripted_engine(std::shared_ptr<const Model> model,
                                               std::shared_ptr<ScriptedBackend> backend,
                                               EngineOptions options = {}) {
  options.path = "curated";
  auto engine = Engine::load(std::move(model), std::move(backend), options);
  if (!engine) throw std::runtime_error(engine.error().text());
  return *std::move(engine);
}

/// An engine of a tiny model; small runs keep it quick.
inline std::shared_ptr<Engine> tiny_engine(const std::string& name, EngineOptions options) {
  options.pack_cache = false;
  auto engine = Engine::load(tiny_model(name), options);
  if (!engine) throw std::runtime_error(engine.error().text());
  return *std::move(engine);
}

/// `n` ids that are all different (up to 256).
inline std::vector<std::int32_t> some_ids(std::size_t n, std::int32_t first = 7) {
  std::vector<std::int32_t> ids(n);
  for (std::size_t i = 0; i < n; ++i) {
    ids[i] = static_cast<std::int32_t>((static_cast<std::size_t>(first) + 37 * i) % 256);
  }
  return ids;
}

template <class T>
T value(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return *std::move(result);
}

}  // namespace cyb::test

#define CYB_EXPECT_OK(expr)                                             \
  do {                                                                  \
    const auto& cyb_checked = (expr);                                   \
    EXPECT_TRUE(cyb_checked.has_value()) << cyb_checked.error().text(); \
  } while (false)

#define CYB_ASSERT_OK(expr)                                             \
  do {                                                                  \
    const auto& cyb_checked = (expr);                                   \
    ASSERT_TRUE(cyb_checked.has_value()) << cyb_checked.error().text(); \
  } while (false)

#define CYB_EXPECT_ERROR(expr, wanted)                            \
  do {                                                            \
    const auto& cyb_checked = (expr);                             \
    if (cyb_checked.has_value()) {                                \
      ADD_FAILURE() << "no error";                                \
    } else {                                                      \
      EXPECT_EQ(cyb_checked.error().text(), std::string(wanted)); \
    }                                                             \
  } while (false)
