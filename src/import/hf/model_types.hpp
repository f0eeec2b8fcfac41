// ModelType: a model_type of config.json with the defaults of its config class.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace cyb::hf {

/// Which layers slide: none, all, Qwen's from a layer on, all but every n-th, those without rope.
enum class Window : std::uint8_t { kNone, kAll, kQwen, kPattern, kNoRope };

/// Classes with keys of their own.
enum class Kind : std::uint8_t {
  kPlain,
  kGemma,
  kGemma2,
  kGemma3,
  kSmolLM3,
  kPhi,
  kPhi3,
  kStarcoder2,
  kGpt2,
  kGranite,
  kInternLM2,
  kMiMo
};

struct ModelType {
  std::string_view model_type, class_name;
  std::string_view table;  // name table (names.hpp)
  std::int64_t vocab = 0, hidden = 0, ffn = 0, layers = 0, heads = 0;
  std::int64_t kv_heads = 0;  // 0: heads
  std::int64_t head_dim = 0;  // 0: hidden / heads
  std::int64_t positions = 0;
  bool tied = false;
  Kind kind = Kind::kPlain;
  Window window = Window::kNone;
  std::int64_t pattern = 0;         // of Window::kPattern
  std::int64_t default_window = 0;  // where sliding_window is absent; 0: none
  std::string_view eps_key = "rms_norm_eps";
  double eps = 1e-6;
  std::string_view activation = "silu", activation_key = "hidden_act";
  double theta = 10000.0, partial = 1.0;
  bool any_partial = false;  // partial_rotary_factor is looked at
  std::optional<std::int64_t> bos = {}, eos = {}, pad = {};
  bool bias_switch = false;      // attention_bias is looked at
  bool mlp_bias_switch = false;  // mlp_bias is looked at
  bool qkv_bias = false;         // always

  bool layer_norm() const { return eps_key != "rms_norm_eps"; }
  bool is_gemma() const {
    return kind == Kind::kGemma || kind == Kind::kGemma2 || kind == Kind::kGemma3;
  }
};

/// Errors: NotBuilt with the list of those that are known.
Result<ModelType> find_model_type(std::string_view model_type);

}  // namespace cyb::hf
