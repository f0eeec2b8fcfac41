// Pictures and sound as --input of a model of tensors: what goes in, what is said, what is refused.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "e2e/npy_file.hpp"
#include "e2e/program.hpp"

namespace cyb::test {
namespace {

std::string media(const std::string& name) {
  return golden("media/" + name);
}

nlohmann::json media_golden() {
  std::ifstream in(media("media.json"));
  return nlohmann::json::parse(in);
}

/// The last `n` values of a .npy file.
template <class T>
std::vector<T> tail(const std::string& path, std::size_t n) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::vector<T> out(n);
  if (bytes.size() >= n * sizeof(T))
    std::memcpy(out.data(), bytes.data() + bytes.size() - n * sizeof(T), n * sizeof(T));
  return out;
}

struct Ran {
  ProcessResult result;
  std::string file;
};

Ran run(const Program& program, const std::string& model, const std::string& file,
        std::vector<std::string> more = {}) {
  const std::string out = program.file("out");
  std::vector<std::string> command = {"run",      media(model), "--input", "x=" + media(file),
                                      "--output", out,          "--force"};
  command.insert(command.end(), more.begin(), more.end());
  return {program.run(command), out + "/y.npy"};
}

TEST(MediaInput, APictureIsThePixelsInTheInputsLayout) {
  const Program program;
  const auto want = media_golden()["pictures"]["rgb.jpg"]["values"].get<std::vector<float>>();
  const Ran first = run(program, "takes_nchw.onnx", "rgb.jpg");
  ASSERT_EQ(first.result.exit_code, 0) << first.result.err;
  EXPECT_NE(first.result.err.find("13 x 9 pixels, 3 channels as \"x\" f32 [1, 3, 9, 13]"),
            std::string::npos)
      << first.result.err;
  const auto got = tail<float>(first.file, want.size());
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t i = 0; i < 117; ++i) ASSERT_EQ(got[c * 117 + i], want[i * 3 + c] + 1);
  }
  const Ran bytes = run(program, "takes_bytes.onnx", "rgb.jpg");
  ASSERT_EQ(bytes.result.exit_code, 0) << bytes.result.err;
  const auto raw = tail<std::uint8_t>(bytes.file, want.size());
  for (std::size_t i = 0; i < raw.size(); ++i) ASSERT_EQ(raw[i], want[i]);
}

TEST(MediaInput, FlagsSizeAndScale) {
  const Program program;
  const Ran done = run(program, "takes_fixed.onnx", "rgb.png",
                       {"--image-size", "5x4", "--image-scale", "1/255", "--image-mean",
                        "0.5,0.4,0.3", "--image-std", "0.25"});
  ASSERT_EQ(done.result.exit_code, 0) << done.result.err;
  const auto want = media_golden()["resized"][0]["values"].get<std::vector<double>>();
  const auto got = tail<float>(done.file, want.size());
  const double mean[] = {0.5, 0.4, 0.3};
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], (want[i] / 255 - mean[i / 20]) / 0.25 + 1, 1e-4) << i;
}

TEST(MediaInput, ASoundIsItsSamples) {
  const Program program;
  const Ran done = run(program, "takes_sound.onnx", "mono24.wav", {"--sample-rate", "16000"});
  ASSERT_EQ(done.result.exit_code, 0) << done.result.err;
  EXPECT_NE(done.result.err.find("40 samples, 16000 Hz, 1 channel as"), std::string::npos)
      << done.result.err;
  const auto want = media_golden()["sounds"]["mono24.wav"]["samples"].get<std::vector<float>>();
  const auto got = tail<float>(done.file, want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], want[i] + 1);
}

TEST(MediaInput, NothingIsDoneUnasked) {
  const Program program;
  const auto expect = [&](const char* model, const char* file, std::vector<std::string> more,
                          const std::string& code, int exit_code) {
    more.emplace_back("--json");
    const ProcessResult done = run(program, model, file, more).result;
    EXPECT_EQ(done.exit_code, exit_code) << file << ": " << done.err;
    EXPECT_EQ(Program::json(done)["error"]["code"], code) << file << ": " << done.out;
  };
  expect("takes_fixed.onnx", "rgb.png", {}, "M06", 1);
  expect("takes_nchw.onnx", "gray.png", {}, "M05", 1);
  expect("takes_nchw.onnx", "rgba.png", {}, "M05", 1);
  expect("takes_sound.onnx", "rgb.png", {}, "M07", 1);
  expect("takes_nchw.onnx", "mono8.wav", {}, "M07", 1);
  expect("takes_sound.onnx", "stereo16.wav", {}, "M05", 1);
  expect("takes_sound.onnx", "mono24.wav", {"--sample-rate", "8000"}, "M06", 1);
  expect("takes_nchw.onnx", "bomb.png", {}, "M03", 2);
  expect("takes_nchw.onnx", "text.png", {}, "M01", 2);
  expect("takes_nchw.onnx", "cut.jpg", {}, "M02", 2);
  expect("takes_nchw.onnx", "cmyk.jpg", {}, "M04", 2);
  expect("takes_sound.onnx", "alaw.wav", {}, "M04", 2);
  expect("takes_sound.onnx", "rgb.png", {"--image-size", "5x4"}, "M07", 1);
}

TEST(MediaInput, FlagsThatDoNothingAreRefused) {
  const Program program;
  const auto refused = [&](const char* model, const char* file, std::vector<std::string> more,
                           const std::string& text) {
    const ProcessResult done = run(program, model, file, more).result;
    EXPECT_EQ(done.exit_code, 1) << done.err;
    EXPECT_NE(done.err.find(text), std::string::npos) << done.err;
  };
  refused("takes_sound.onnx", "mono8.wav", {"--image-size", "4x4"}, "no input is a picture");
  refused("takes_nchw.onnx", "rgb.png", {"--sample-rate", "8000"}, "no input is a sound");
  refused("takes_nchw.onnx", "rgb.png", {"--image-crop"}, "without --image-size");
  for (const std::string bad : {"5", "x4", "5x", "0x4", "5x4x3", "99999x1", "-5x4"})
    refused("takes_nchw.onnx", "rgb.png", {"--image-size=" + bad}, "WIDTHxHEIGHT");
  refused("takes_nchw.onnx", "rgb.png", {"--image-channels", "cmyk"}, "gray, rgb, bgr");
  refused("takes_nchw.onnx", "rgb.png", {"--image-scale", "1/0"}, "no number");
  refused("takes_nchw.onnx", "rgb.png", {"--image-mean", "1,,2"}, "no number");
  refused("takes_nchw.onnx", "rgb.png", {"--image-std", "1,0,1"}, "divides nothing");
  const ProcessResult unknown =
      program.run({"run", media("takes_nchw.onnx"), "--input", "image=" + media("rgb.png")});
  EXPECT_NE(unknown.err.find("no input \"image\"; it takes: x f32"), std::string::npos)
      << unknown.err;
}

TEST(MediaInput, BenchTakesThemToo) {
  const Program program;
  const ProcessResult done = program.run({"bench", media("takes_nchw.onnx"), "--input",
                                          "x=" + media("rgb.png"), "-r", "1", "-t", "1", "--json"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
}

}  // namespace
}  // namespace cyb::test
