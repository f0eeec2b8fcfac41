// PNG by libpng. Its errors jump: a frame that libpng may jump over holds nothing with a
// destructor, what must be freed lives in the caller.
#include <png.h>

#include <cstring>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "media/media_error.hpp"
#include "media/picture.hpp"

namespace cyb::media {
namespace {

constexpr png_alloc_size_t kMaxChunkBytes = png_alloc_size_t{16} << 20;  // text, profiles

/// All that outlives a jump.
struct Decoder {
  std::span<const std::byte> bytes;
  std::size_t at = 0;
  char message[128] = "";
  png_structp png = nullptr;
  png_infop info = nullptr;
  png_uint_32 width = 0, height = 0;
  int channels = 0, depth = 0;
  Picture picture;
  std::vector<png_bytep> rows;

  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  auto* decoder = static_cast<Decoder*>(png_get_error_ptr(png));
  std::strncpy(decoder->message, text, sizeof decoder->message - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep out, png_size_t size) {
  auto* decoder = static_cast<Decoder*>(png_get_io_ptr(png));
  if (size > decoder->bytes.size() - decoder->at) png_error(png, "cut off");
  std::memcpy(out, decoder->bytes.data() + decoder->at, size);
  decoder->at += size;
}

/// The header up to the pixels. False after a jump.
bool read_header(Decoder& d) {
  if (setjmp(png_jmpbuf(d.png)) != 0) return false;
  png_set_read_fn(d.png, &d, on_read);
  png_set_user_limits(d.png, 0x7FFFFFFF, 0x7FFFFFFF);  // ours are checked below, with a code
  png_set_chunk_malloc_max(d.png, kMaxChunkBytes);
  png_set_chunk_cache_max(d.png, 64);
  png_read_info(d.png, d.info);
  d.width = png_get_image_width(d.png, d.info);
  d.height = png_get_image_height(d.png, d.info);
  return true;
}

/// How pixels come out: 1 to 4 channels of 8 or 16 bits.
bool choose_form(Decoder& d) {
  if (setjmp(png_jmpbuf(d.png)) != 0) return false;
  png_set_expand(d.png);
  if (png_get_bit_depth(d.png, d.info) == 16) png_set_swap(d.png);
  png_set_interlace_handling(d.png);
  png_read_update_info(d.png, d.info);
  d.channels = png_get_channels(d.png, d.info);
  d.depth = png_get_bit_depth(d.png, d.info);
  return true;
}

bool read_pixels(Decoder& d) {
  if (setjmp(png_jmpbuf(d.png)) != 0) return false;
  png_read_image(d.png, d.rows.data());
  png_read_end(d.png, nullptr);
  return true;
}

/// Bytes of 8 bits were read into the front of the values: spreads them, last first.
void widen(std::vector<std::uint16_t>& values) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  for (std::size_t i = values.size(); i-- > 0;) values[i] = bytes[i];
}

}  // namespace

Result<Picture> decode_png(std::span<const std::byte> bytes) {
  Decoder d;
  d.bytes = bytes;
  d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
  if (d.png != nullptr) d.info = png_create_info_struct(d.png);
  if (d.info == nullptr) return fail(out_of_memory("media", 0, 0));
  const auto broken = [&] { return fail(damaged(fmt::format("PNG: {}", d.message))); };
  if (!read_header(d)) return broken();
  CYB_TRY(check_picture_size(d.width, d.height));
  if (!choose_form(d)) return broken();
  const bool wide = d.depth == 16;
  CYB_ASSIGN(d.picture, blank_picture(d.width, d.height, static_cast<std::uint32_t>(d.channels),
                                      wide ? 65535 : 255));
  const std::size_t row = std::size_t{d.width} * d.picture.channels * (wide ? 2 : 1);
  d.rows.resize(d.height);
  auto* front = reinterpret_cast<png_bytep>(d.picture.values.data());
  for (std::size_t y = 0; y < d.height; ++y) d.rows[y] = front + y * row;
  if (!read_pixels(d)) return broken();
  if (!wide) widen(d.picture.values);
  return std::move(d.picture);
}

}  // namespace cyb::media
