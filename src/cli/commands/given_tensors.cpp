// One file, one tensor.
#include "cli/commands/given_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/file.hpp"
#include "cli/usage.hpp"
#include "media/media_error.hpp"
#include "media/sound.hpp"
#include "tensor/npy.hpp"

namespace cyb::cli {
namespace {

bool is_npy(std::span<const std::byte> bytes) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

struct Reader {
  const MediaFlags& flags;
  const TensorSession& session;
  Output& output;
  media::PictureOptions options;
  bool any_picture = false, any_sound = false;

  Result<media::Wanted> wanted(const std::string& name) const {
    const auto input = std::ranges::find(session.inputs(), name, &GraphInput::name);
    if (input == session.inputs().end()) {
      std::string all;
      for (const GraphInput& there : session.inputs())
        all += (all.empty() ? "" : "; ") + input_text(there, session.symbols());
      return fail(
          invalid_input(fmt::format("the model has no input \"{}\"; it takes: {}", name, all)));
    }
    media::Wanted out{input->spec.dtype, {}};
    for (const Dim& dim : input->spec.dims) {
      out.dims.push_back(dim.is_constant() ? std::optional(dim.constant()) : std::nullopt);
    }
    return out;
  }

  void note(const std::string& path, const std::string& was, const std::string& name,
            const media::MadeTensor& made) const {
    output.note(fmt::format("{}: {} as \"{}\" {} {}", path, was, name, dtype_name(made.dtype),
                            made.shape.text()));
  }

  /// A tensor made of the bytes; null for a .npy file.
  Result<std::unique_ptr<media::MadeTensor>> make(const std::string& name, const std::string& path,
                                                  std::span<const std::byte> bytes) {
    std::string was;
    auto made = std::make_unique<media::MadeTensor>();
    if (media::is_picture(bytes)) {
      CYB_ASSIGN(const media::Picture picture, media::decode_picture(bytes));
      CYB_ASSIGN(const media::Wanted want, wanted(name));
      CYB_ASSIGN(*made, media::picture_tensor(picture, options, want));
      was = fmt::format("{} x {} pixels, {} channel{}", picture.width, picture.height,
                        picture.channels, picture.channels == 1 ? "" : "s");
      any_picture = true;
    } else if (media::is_sound(bytes)) {
      CYB_ASSIGN(const media::Sound sound, media::decode_wav(bytes));
      CYB_ASSIGN(const media::Wanted want, wanted(name));
      CYB_ASSIGN(*made, media::sound_tensor(sound, flags.rate(), want));
      was = fmt::format("{} samples, {} Hz, {} channel{}", sound.length(), sound.rate,
                        sound.channels, sound.channels == 1 ? "" : "s");
      any_sound = true;
    } else if (!path.ends_with(".npy") && !is_npy(bytes)) {
      return fail(media::unknown_kind("not a NumPy, PNG, JPEG or WAV file"));
    } else {
      return std::unique_ptr<media::MadeTensor>();
    }
    note(path, was, name, *made);
    return made;
  }

  Result<void> check_used() const {
    const std::string flag = any_picture ? "" : flags.image_flag();
    const std::string other = any_sound ? "" : flags.sound_flag();
    if (flag.empty() && other.empty()) return {};
    return fail(usage_error(flag.empty() ? other + " has no effect: no input is a sound"
                                         : flag + " has no effect: no input is a picture"));
  }
};

}  // namespace

Result<GivenTensors> read_tensors(const std::vector<std::string>& inputs, const MediaFlags& media,
                                  const TensorSession& session, Output& output) {
  Reader reader{media, session, output, {}};
  CYB_ASSIGN(reader.options, media.picture_options());
  GivenTensors given;
  for (const std::string& input : inputs) {
    const auto named = split_named(input);
    if (!named || named->second.empty()) {
      return fail(usage_error(
          fmt::format("--input {}: write NAME=FILE (.npy, .png, .jpg or .wav)", input)));
    }
    const std::string name(named->first), path(named->second);
    CYB_ASSIGN(std::shared_ptr<const MappedFile> file, MappedFile::open(path));
    auto made = reader.make(name, path, file->bytes());
    if (!made) return fail(std::move(made).error().in(path));
    if (*made) {
      given.tensors.push_back({name, (*made)->view()});
      given.made.push_back(std::move(*made));
      continue;
    }
    auto tensor = parse_npy(file->bytes());
    if (!tensor) return fail(std::move(tensor).error().in(path));
    given.tensors.push_back({name, *tensor});
    given.files.push_back(std::move(file));
  }
  CYB_TRY(reader.check_used());
  return given;
}

}  // namespace cyb::cli
