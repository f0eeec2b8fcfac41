// Where the real models of the tests lie: tools/fetch_models.py puts them there and checks every
// byte.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace cyb::test {

/// Folder of fetch_models.py: $CYB_MODELS, else the user's cache.
inline std::string models_folder() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text != nullptr ? text : "");
  };
  if (!value("CYB_MODELS").empty()) return value("CYB_MODELS");
  const std::string cache = value("XDG_CACHE_HOME");
  return (cache.empty() ? value("HOME") + "/.cache" : cache) + "/cyb-llm/models";
}

inline constexpr const char* kSmolLm2 = "smollm2-135m-q4_1.gguf";
inline constexpr const char* kGemma3 = "gemma3-270m-q4_k_m.gguf";
inline constexpr const char* kQwen25Coder = "qwen2.5-coder-0.5b-q4_k_m.gguf";

/// Path of a real model; a test whose model is missing fails (ASSERT on model_present) and says how
/// to get it.
inline std::string model_file(const std::string& name) {
  return models_folder() + "/" + name;
}
inline bool model_present(const std::string& name) {
  return std::filesystem::exists(model_file(name));
}
inline std::string model_hint(const std::string& name) {
  return model_file(name) + " is missing: run tools/fetch_models.py all";
}

}  // namespace cyb::test
