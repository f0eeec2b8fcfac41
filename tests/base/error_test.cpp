// Error texts are those of the specification, to the letter; frames, JSON and exit codes.
#include "base/error.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/result.hpp"

namespace cyb {
namespace {

TEST(Error, TextsOfTheSpecification) {
  EXPECT_EQ(unsupported_op("MatMul", "cpu", "q4k").text(),
            "Op::MatMul not supported by cpu for q4k");
  EXPECT_EQ(shape_mismatch("MatMul", "[2, 3]", "[3]").text(),
            "Op::MatMul: expected [2, 3], got [3]");
  EXPECT_EQ(missing_tensor("a.b", "llama").text(), "missing tensor \"a.b\", required by llama");
  EXPECT_EQ(out_of_memory("cpu", 10, 5).text(), "cpu: out of memory: need 10 bytes, 5 available");
  EXPECT_EQ(invalid_config("rope_theta", "must be > 0").text(), "config: rope_theta: must be > 0");
  EXPECT_EQ(context_overflow(9, 8).text(), "context overflow: position 9 reaches the limit 8");
  EXPECT_EQ(invalid_input("empty prompt").text(), "input: empty prompt");
  EXPECT_EQ(non_finite("Softmax", "logits", 7).text(),
            "Op::Softmax: non-finite value in \"logits\" at 7");
  EXPECT_EQ(io_error("f", "open", "why").text(), "f: cannot open: why");
  EXPECT_EQ(io_errno("f", "open", ENOENT).text(), "f: cannot open: No such file or directory");
  EXPECT_EQ(busy("session").text(), "session is in use by another run");
  EXPECT_EQ(cancelled(12).text(), "cancelled after 12 tokens");
}

TEST(Error, ExitCodes) {
  EXPECT_EQ(exit_code(ErrorKind::kInvalidInput), 1);
  EXPECT_EQ(exit_code(ErrorKind::kTokenizer), 1);
  EXPECT_EQ(exit_code(ErrorKind::kContextOverflow), 1);
  EXPECT_EQ(exit_code(ErrorKind::kFormat), 2);
  EXPECT_EQ(exit_code(ErrorKind::kGraph), 2);
  EXPECT_EQ(exit_code(ErrorKind::kInvalidConfig), 2);
  EXPECT_EQ(exit_code(ErrorKind::kMissingTensor), 2);
  EXPECT_EQ(exit_code(ErrorKind::kTemplate), 2);
  EXPECT_EQ(exit_code(ErrorKind::kDispatch), 3);
  EXPECT_EQ(exit_code(ErrorKind::kUnsupportedOp), 3);
  EXPECT_EQ(exit_code(ErrorKind::kSourceEncoding), 3);
  EXPECT_EQ(exit_code(ErrorKind::kOutOfMemory), 4);
  EXPECT_EQ(exit_code(ErrorKind::kDeviceLost), 4);
  EXPECT_EQ(exit_code(ErrorKind::kIo), 4);
  EXPECT_EQ(exit_code(ErrorKind::kNonFinite), 4);
  EXPECT_EQ(exit_code(ErrorKind::kBusy), 4);
  EXPECT_EQ(exit_code(ErrorKind::kCancelled), 5);
  for (int kind = 0; kind <= static_cast<int>(ErrorKind::kInternal); ++kind) {
    EXPECT_FALSE(kind_name(static_cast<ErrorKind>(kind)).empty());
    EXPECT_GE(exit_code(static_cast<ErrorKind>(kind)), 1);
  }
}

TEST(Error, FramesAreShownOutermostFirst) {
  Error error =
      Error(ErrorKind::kFormat, "F25", "bad").in("tensor \"t\"").in("m.model").with("byte", "7");
  EXPECT_EQ(error.text(), "m.model: tensor \"t\": bad");
  EXPECT_EQ(error.code(), "F25");
  const Error copy = error;
  const auto json = nlohmann::json::parse(copy.json());
  EXPECT_EQ(json["code"], "F25");
  EXPECT_EQ(json["kind"], "Format");
  EXPECT_EQ(json["message"], "bad");
  EXPECT_EQ(json["context"], (nlohmann::json{"m.model", "tensor \"t\""}));
  EXPECT_EQ(json["detail"]["byte"], "7");
  EXPECT_EQ(invalid_input("x").code(), "InvalidInput");
}

TEST(Error, JsonSurvivesHostileText) {
  const Error error = io_error("a\"\\\n\x01\xff\xc3(", "open", "\xe2\x82");
  const auto json = nlohmann::json::parse(error.json());
  EXPECT_EQ(json["message"], "a\"\\\n\x01\xEF\xBF\xBD\xEF\xBF\xBD(: cannot open: \xEF\xBF\xBD");
}

Result<int> half(int x) {
  if (x % 2 != 0) return fail(invalid_input("odd"));
  return x / 2;
}

Result<int> quarter(int x) {
  CYB_ASSIGN(const int h, half(x));
  CYB_TRY(half(h));
  return h / 2;
}

TEST(Result, MacrosPassErrorsUp) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(3).error().text(), "input: odd");
  EXPECT_EQ(quarter(6).error().text(), "input: odd");
  static_assert(sizeof(Error) == sizeof(void*));
}

}  // namespace
}  // namespace cyb
