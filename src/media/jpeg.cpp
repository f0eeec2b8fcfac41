// JPEG by libjpeg. Its errors jump: a frame that it may jump over holds nothing with a destructor,
// what must be freed lives in the caller. Its warnings are repairs, so they are errors here.
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>  // after <cstdio>, as it asks for

#include "base/limits.hpp"
#include "media/media_error.hpp"
#include "media/picture.hpp"

namespace cyb::media {
namespace {

constexpr int kMaxScans = 128;  // of a progressive file: each costs a pass over all pixels

/// All that outlives a jump.
struct Decoder {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf back{};
  char message[JMSG_LENGTH_MAX] = "";
  Picture picture;
  std::vector<JSAMPLE> row;

  ~Decoder() { jpeg_destroy_decompress(&jpeg); }
};

[[noreturn]] void stop(j_common_ptr jpeg) {
  auto* decoder = static_cast<Decoder*>(jpeg->client_data);
  jpeg->err->format_message(jpeg, decoder->message);
  std::longjmp(decoder->back, 1);
}

void on_message(j_common_ptr jpeg, int level) {
  if (level < 0 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA) stop(jpeg);
}

void on_output(j_common_ptr) {}

void on_progress(j_common_ptr jpeg) {
  auto* decoder = static_cast<Decoder*>(jpeg->client_data);
  if (decoder->jpeg.input_scan_number <= kMaxScans) return;
  std::strncpy(decoder->message, "too many scans", sizeof decoder->message - 1);
  std::longjmp(decoder->back, 1);
}

bool read_header(Decoder& d, std::span<const std::byte> bytes) {
  if (setjmp(d.back) != 0) return false;
  jpeg_create_decompress(&d.jpeg);
  d.jpeg.client_data = &d;
  d.jpeg.progress = &d.progress;
  jpeg_mem_src(&d.jpeg, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&d.jpeg, TRUE);
  return true;
}

bool read_pixels(Decoder& d) {
  if (setjmp(d.back) != 0) return false;
  d.jpeg.out_color_space = d.jpeg.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&d.jpeg);
  JSAMPROW row = d.row.data();
  std::uint16_t* out = d.picture.values.data();
  while (d.jpeg.output_scanline < d.jpeg.output_height) {
    jpeg_read_scanlines(&d.jpeg, &row, 1);
    for (std::size_t i = 0; i < d.row.size(); ++i) *out++ = row[i];
  }
  jpeg_finish_decompress(&d.jpeg);
  return true;
}

}  // namespace

Result<Picture> decode_jpeg(std::span<const std::byte> bytes) {
  Decoder d;
  d.jpeg.err = jpeg_std_error(&d.errors);
  d.errors.error_exit = stop;
  d.errors.emit_message = on_message;
  d.errors.output_message = on_output;
  d.progress.progress_monitor = on_progress;
  const auto broken = [&] { return fail(damaged(fmt::format("JPEG: {}", d.message))); };
  if (!read_header(d, bytes)) return broken();
  const int components = d.jpeg.num_components;
  if (components != 1 && components != 3) {
    return fail(unsupported(
        fmt::format("a JPEG of {} components, only grey and RGB are read", components)));
  }
  CYB_ASSIGN(d.picture, blank_picture(d.jpeg.image_width, d.jpeg.image_height,
                                      static_cast<std::uint32_t>(components), 255));
  d.row.resize(std::size_t{d.picture.width} * d.picture.channels);
  if (!read_pixels(d)) return broken();
  return std::move(d.picture);
}

}  // namespace cyb::media
