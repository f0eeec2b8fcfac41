// A picture as the tensor that an input takes. Nothing is resized, scaled, dropped or repeated
// unless the options say so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "media/picture.hpp"
#include "media/sound.hpp"
#include "tensor/tensor_view.hpp"

namespace cyb::media {

/// What an input takes; a dimension without a value may be any.
struct Wanted {
  DType dtype = DType::kF32;
  std::vector<std::optional<std::int64_t>> dims;
};

/// A tensor that owns its bytes.
struct MadeTensor {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::byte> bytes;
  TensorView view() const noexcept { return {dtype, shape, bytes.data()}; }
};

enum class Channels : std::uint8_t {
  kAsStored,
  kGray,  // (299 R + 587 G + 114 B) / 1000 (ITU-R BT.601); alpha is dropped
  kRgb,   // grey is repeated; alpha is dropped
  kBgr
};
enum class Layout : std::uint8_t { kFromInput, kNchw, kNhwc };

struct PictureOptions {
  struct Size {
    std::uint32_t width = 0, height = 0;
  };
  std::optional<Size> size;  // resize to it
  bool crop = false;         // cut the middle to the wanted ratio first, else both sides stretch
  Channels channels = Channels::kAsStored;
  Layout layout = Layout::kFromInput;
  /// (value · scale − mean) / deviation with values 0..255 (those of 16 bits are divided by 257);
  /// mean and deviation: none, one, or one per channel.
  double scale = 1;
  std::vector<double> mean, deviation;
};

/// [1, C, H, W] or [1, H, W, C] for an input of rank 4, without the 1 for rank 3; the layout is the
/// one whose channel dimension is 1 to 4. Numbers become f32 or f16, or u8 where they stay as
/// stored. Resizing is the triangle filter of pixel centres, wider by the factor where the picture
/// shrinks (PIL's BILINEAR, torchvision's antialias), in f32 without rounding between.
/// Errors: M03, M05, M06, M07; OutOfMemory.
Result<MadeTensor> picture_tensor(const Picture& picture, const PictureOptions& options,
                                  const Wanted& wanted);

/// [n], [1, n] or [1, 1, n] (or [.., C, n] where the input says C channels) in f32.
/// `rate`: the sample rate that the sound must have. Errors: M05, M06, M07.
Result<MadeTensor> sound_tensor(const Sound& sound, std::optional<std::uint32_t> rate,
                                const Wanted& wanted);

}  // namespace cyb::media
