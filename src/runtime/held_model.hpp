// Which tensors a backend cannot read as they are stored: they are decoded when the model is
// loaded.
#pragma once

#include <memory>
#include <string>

#include "backends/backend.hpp"
#include "model/model.hpp"

namespace cyb {

struct HeldModel {
  std::shared_ptr<const Model> model;
  std::string note;  // "": every tensor is used as it is stored; else what is held as f32
};

/// `model` as `backend` runs it. Held as f32: tensors with a sibling scale (ternary, fp8 with one)
/// everywhere, because no kernel knows the scale, and matrices of an encoding that the backend's
/// products have no kernel for.
/// `measure`: nothing is decoded, the tensors must not be read.
HeldModel held_model(std::shared_ptr<const Model> model, const Backend& backend,
                     bool measure = false);

}  // namespace cyb
