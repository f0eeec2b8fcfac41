// ONNX bytes: what the onnx package wrote is read as it wrote it, damaged bytes are refused, and
// external data stays inside the model's folder (cases O01 and O03).
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "import/onnx/onnx_import.hpp"
#include "import/onnx/tensor.hpp"
#include "import/onnx_support.hpp"
#include "support/peak_memory.hpp"
#include "support/tiny_checkpoint.hpp"

namespace cyb::onnx {
namespace {

using test::onnx_external;
using test::onnx_model;
using test::onnx_node;
using test::onnx_value;
using test::Proto;

const std::string kGolden = std::string(CYB_TESTS_DIR) + "/golden/onnx/";

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string error_of(const std::string& bytes) {
  ImportReport report;
  const auto draft = parse_onnx(as_bytes(bytes), "", report);
  return draft ? "" : draft.error().text();
}

TEST(OnnxFile, ReadsWhatTheOnnxPackageWrote) {
  for (const char* name : {"typed_tensors", "mlp", "functions", "outputs"}) {
    SCOPED_TRACE(name);
    const std::string bytes = test::read_file(kGolden + name + ".onnx");
    const auto expect = nlohmann::json::parse(test::read_file(kGolden + name + ".json"));
    const auto model = parse_model(as_bytes(bytes));
    ASSERT_TRUE(model.has_value()) << model.error().text();
    EXPECT_EQ(model->graph.nodes.size(), expect.at("nodes").get<std::size_t>());
    ASSERT_EQ(model->graph.initializers.size(), expect.at("initializers").size());
    for (const TensorProto& tensor : model->graph.initializers) {
      const auto& row = expect.at("initializers").at(std::string(tensor.name));
      EXPECT_EQ(tensor.type, row.at(0).get<int>());
      EXPECT_EQ(tensor.dims, row.at(1).get<std::vector<std::int64_t>>());
    }
  }
}

TEST(OnnxFile, RawAndTypedDataOfEveryTypeAreEqual) {
  const std::string bytes = test::read_file(kGolden + "typed_tensors.onnx");
  const auto model = parse_model(as_bytes(bytes));
  ASSERT_TRUE(model.has_value());
  ExternalFiles files("");
  for (std::size_t i = 0; i + 1 < model->graph.initializers.size(); i += 2) {
    const TensorProto& proto = model->graph.initializers[i];
    SCOPED_TRACE(std::string(proto.name));
    const auto raw = read_tensor(proto, files);
    const auto typed = read_tensor(model->graph.initializers[i + 1], files);
    ASSERT_TRUE(raw.has_value() && typed.has_value());
    EXPECT_TRUE(proto.raw.has_value());
    EXPECT_EQ(raw->dtype, typed->dtype);
    EXPECT_TRUE(std::ranges::equal(raw->bytes, typed->bytes));
  }
}

TEST(OnnxFile, EveryCutIsRefused) {
  for (const char* name : {"typed_tensors", "mlp", "functions"}) {
    const std::string bytes = test::read_file(kGolden + name + ".onnx");
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const std::string cut = bytes.substr(0, size);
      ImportReport report;
      // A cut between two fields of the model is a shorter model: it lacks its opset or its graph.
      EXPECT_FALSE(parse_onnx(as_bytes(cut), "", report).has_value()) << name << " " << size;
    }
  }
}

TEST(OnnxFile, BadWireBytesAreRefused) {
  const std::string start = Proto().number(1, 8).text();
  EXPECT_NE(error_of(start + std::string(11, '\xFF')).find("above 64 bits"), std::string::npos);
  EXPECT_NE(error_of(start + "\x0B").find("wire type 3"), std::string::npos);
  EXPECT_NE(error_of(start + std::string(2, '\0')).find("field number 0"), std::string::npos);
  EXPECT_NE(error_of(start + "\x3A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F").find("truncated"),
            std::string::npos);
  EXPECT_NE(error_of(start).find("no graph"), std::string::npos);
  EXPECT_NE(error_of(Proto().number(1, 8).number(7, 5).text()).find("wire type 0"),
            std::string::npos);
}

/// A graph y = Relu(x) with one more message in it.
std::string model_with(std::uint32_t field, const Proto& extra) {
  return onnx_model(Proto()
                        .message(1, onnx_node("Relu", {"x"}, "y"))
                        .message(11, onnx_value("x", {2}))
                        .message(12, onnx_value("y", {2}))
                        .message(field, extra));
}

TEST(OnnxFile, TensorsMustFitTheirShape) {
  const auto tensor = [](std::uint64_t dim, std::uint64_t type, std::string_view raw) {
    return Proto().number(1, dim).number(2, type).bytes(8, "w").bytes(9, raw);
  };
  EXPECT_EQ(error_of(model_with(5, tensor(2, 1, "12345678"))), "");
  EXPECT_NE(error_of(model_with(5, tensor(3, 1, "12345678"))).find("8 bytes"), std::string::npos);
  EXPECT_NE(error_of(model_with(5, tensor(std::uint64_t{1} << 62, 1, ""))).find("shape"),
            std::string::npos);
  EXPECT_NE(error_of(model_with(5, tensor(~std::uint64_t{0}, 1, ""))).find("shape"),
            std::string::npos);
  EXPECT_NE(error_of(model_with(5, tensor(2, 9, "\1\2"))).find("BOOL"), std::string::npos);
  EXPECT_NE(error_of(model_with(5, tensor(2, 8, ""))).find("STRING"), std::string::npos);
  EXPECT_NE(error_of(model_with(15, Proto())).find("sparse"), std::string::npos);
  // 4 x 2^62 elements are 0 in 64 bits, but not a shape of no values; with a 0 it is one.
  const auto large = Proto().number(1, 4).number(1, std::uint64_t{1} << 62);
  EXPECT_NE(error_of(model_with(5, Proto(large).number(2, 1).bytes(8, "w"))).find("shape"),
            std::string::npos);
  EXPECT_EQ(error_of(model_with(5, Proto(large).number(1, 0).number(2, 1).bytes(8, "w"))), "");
  Proto deep;
  for (int i = 0; i < 9; ++i) deep.number(1, 1);
  EXPECT_NE(error_of(model_with(5, deep.number(2, 1).bytes(8, "w"))).find("rank 9"),
            std::string::npos);
}

TEST(OnnxFile, NamesMustBeDefinedOnce) {
  const Proto input = onnx_value("x", {2}), output = onnx_value("y", {2});
  const auto graph = [&](std::initializer_list<Proto> nodes) {
    Proto out;
    for (const Proto& node : nodes) out.message(1, node);
    return onnx_model(out.message(11, input).message(12, output));
  };
  EXPECT_EQ(error_of(graph({onnx_node("Relu", {"x"}, "y")})), "");
  EXPECT_NE(error_of(graph({onnx_node("Relu", {"z"}, "y")})).find("\"z\" is no input"),
            std::string::npos);
  EXPECT_NE(error_of(graph({onnx_node("Relu", {"x"}, "y"), onnx_node("Abs", {"x"}, "y")}))
                .find("defined twice"),
            std::string::npos);
  EXPECT_NE(error_of(graph({onnx_node("Relu", {"x"}, "z")})).find("\"y\" is no input"),
            std::string::npos);
}

TEST(OnnxFile, UnknownOperatorsAreNamedAtOnceWithCounts) {
  const std::string text =
      error_of(onnx_model(Proto()
                              .message(1, onnx_node("Frobnicate", {"x"}, "a"))
                              .message(1, onnx_node("Frobnicate", {"a"}, "b"))
                              .message(1, onnx_node("Relu", {"b"}, "c"))
                              .message(1, onnx_node("Gelu", {"c"}, "y", "org.example"))
                              .message(11, onnx_value("x", {2}))
                              .message(12, onnx_value("y", {2}))));
  EXPECT_NE(text.find("Frobnicate x2, org.example.Gelu x1"), std::string::npos) << text;
}

TEST(OnnxFile, FunctionsThatCallThemselvesEnd) {
  const Proto body = onnx_node("F", {"a"}, "b", "d");
  const Proto function =
      Proto().bytes(1, "F").bytes(4, "a").bytes(5, "b").message(7, body).bytes(10, "d").message(
          9, Proto().bytes(1, "d").number(2, 1));
  const Proto graph = Proto()
                          .message(1, onnx_node("F", {"x"}, "y", "d"))
                          .message(11, onnx_value("x", {2}))
                          .message(12, onnx_value("y", {2}));
  const std::string text = error_of(onnx_model(graph) + Proto().message(25, function).text());
  EXPECT_NE(text.find("deeper than 32"), std::string::npos) << text;
}

TEST(OnnxFile, SmallFilesStaySmall) {
  // 20 functions that call the next one twice: a million calls; doubled constants: 2^40 bytes.
  std::string functions;
  for (int k = 0; k < 20; ++k) {
    const std::string name = "F" + std::to_string(k), next = "F" + std::to_string(k + 1);
    Proto f;
    f.bytes(1, name).bytes(4, "a").bytes(5, "c").bytes(10, "d");
    const std::string op = k == 19 ? "Relu" : next;
    const std::string domain = k == 19 ? "" : "d";
    f.message(7, onnx_node(op, {"a"}, "b", domain)).message(7, onnx_node(op, {"b"}, "c", domain));
    f.message(9, Proto().bytes(1, "d").number(2, 1)).message(9, Proto().bytes(1, "").number(2, 17));
    functions += Proto().message(25, f).text();
  }
  const Proto calls = Proto()
                          .message(1, onnx_node("F0", {"x"}, "y", "d"))
                          .message(11, onnx_value("x", {2}))
                          .message(12, onnx_value("y", {2}));
  Proto doubled;
  const std::string block(4096, '\0');
  doubled.message(5, Proto().number(1, 1024).number(2, 1).bytes(8, "k0").bytes(9, block));
  for (int k = 0; k < 28; ++k) {
    const std::string from = "k" + std::to_string(k), to = "k" + std::to_string(k + 1);
    const Proto axis = Proto().bytes(1, "axis").number(3, 0).number(20, 2);
    doubled.message(1, onnx_node("Concat", {from, from}, to).message(5, axis));
  }
  doubled.message(12, onnx_value("k28", {std::int64_t{1} << 38}));
  const std::int64_t before = test::reset_peak();
  ASSERT_GT(before, 0);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_NE(error_of(onnx_model(calls) + functions).find("in functions and rounds"),
            std::string::npos);
  EXPECT_EQ(error_of(onnx_model(doubled)), "");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(test::peak_kib() - before, 256 * 1024);
  EXPECT_LT(seconds.count(), 20);
}

class OnnxExternal : public testing::Test {
 protected:
  OnnxExternal() {
    const std::string root = std::filesystem::temp_directory_path().string() + "/cyb-onnx-XXXXXX";
    top_ = root;
    if (::mkdtemp(top_.data()) == nullptr) top_.clear();
    folder_ = top_ + "/model";
    std::filesystem::create_directories(folder_ + "/w");
    write(folder_ + "/w/sub.bin", std::string(64, 'a'));
    write(folder_ + "/plain.bin", std::string(64, 'a'));
    write(top_ + "/x", std::string(64, 'a'));
  }
  ~OnnxExternal() override {
    std::error_code ignored;
    std::filesystem::remove_all(top_, ignored);
  }

  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  /// "" where the tensors load, else the error.
  std::string load(std::initializer_list<Proto> tensors) const {
    ExternalFiles files(folder_);
    for (const Proto& proto : tensors) {
      const auto tensor = parse_tensor(as_bytes(proto.text()));
      if (!tensor) return tensor.error().text();
      const auto read = read_tensor(*tensor, files);
      if (!read) return read.error().text();
      EXPECT_EQ(read->bytes.size(), static_cast<std::size_t>(read->shape.count()) * 4);
      EXPECT_EQ(read->bytes[0], std::byte{'a'});
    }
    return "";
  }
  std::string at(std::string_view location,
                 const std::vector<std::pair<std::string, std::string>>& more = {}) const {
    return load({onnx_external("t", 4, location, more)});
  }

  std::string top_, folder_;
};

TEST_F(OnnxExternal, LocationsStayInTheFolder) {
  EXPECT_EQ(at("w/sub.bin"), "");
  EXPECT_EQ(at("plain.bin"), "");
  for (const std::string_view bad :
       {std::string_view("../x"), std::string_view("a/../../x"), std::string_view("w/../plain.bin"),
        std::string_view("w//sub.bin"), std::string_view("./plain.bin"), std::string_view(""),
        std::string_view("C:\\x"), std::string_view("w\\sub.bin"), std::string_view("plain.bin/"),
        std::string_view("plain.bin\0x", 11), std::string_view(".."), std::string_view("C:x")}) {
    EXPECT_NE(at(bad).find("location"), std::string::npos) << bad << ": " << at(bad);
  }
  EXPECT_NE(at(top_ + "/x").find("absolute"), std::string::npos);
  EXPECT_NE(at("missing.bin"), "");
  EXPECT_NE(at("w"), "");
}

TEST_F(OnnxExternal, LinksAreNotFollowed) {
  std::filesystem::create_symlink(top_ + "/x", folder_ + "/link.bin");
  EXPECT_NE(at("link.bin").find("link"), std::string::npos);
  std::filesystem::create_symlink(folder_ + "/plain.bin", folder_ + "/inside.bin");
  EXPECT_NE(at("inside.bin").find("link"), std::string::npos);
  std::filesystem::create_directory_symlink(top_, folder_ + "/up");
  EXPECT_NE(at("up/x"), "");
  std::filesystem::create_hard_link(top_ + "/x", folder_ + "/hard.bin");
  EXPECT_NE(at("hard.bin").find("hard link"), std::string::npos);
}

TEST_F(OnnxExternal, RangesFitFileAndShape) {
  EXPECT_EQ(at("plain.bin", {{"offset", "48"}, {"length", "16"}}), "");
  EXPECT_NE(at("plain.bin", {{"offset", "52"}}).find("outside"), std::string::npos);
  EXPECT_NE(at("plain.bin", {{"offset", "64"}}).find("outside"), std::string::npos);
  EXPECT_NE(at("plain.bin", {{"offset", "18446744073709551612"}}).find("outside"),
            std::string::npos);
  EXPECT_NE(at("plain.bin", {{"length", "12"}}).find("length 12"), std::string::npos);
  EXPECT_NE(at("plain.bin", {{"length", "20"}}).find("length 20"), std::string::npos);
  EXPECT_NE(at("plain.bin", {{"offset", "-4"}}).find("offset"), std::string::npos);
  EXPECT_NE(at("plain.bin", {{"offset", "4x"}}).find("offset"), std::string::npos);
  EXPECT_NE(at("plain.bin", {{"offset", "18446744073709551616"}}).find("offset"),
            std::string::npos);
  EXPECT_NE(at("plain.bin", {{"offset", "2"}}).find("multiple of 4"), std::string::npos);
  EXPECT_NE(at("plain.bin", {{"location", "x"}}).find("twice"), std::string::npos);
  EXPECT_NE(at("plain.bin", {{"surprise", "x"}}).find("unknown key"), std::string::npos);
}

TEST_F(OnnxExternal, TensorsShareARangeWholeOrNotAtAll) {
  const auto range = [](std::string_view name, std::int64_t n, const char* offset) {
    return onnx_external(name, n, "plain.bin", {{"offset", offset}});
  };
  EXPECT_EQ(load({range("a", 4, "0"), range("b", 4, "16"), range("c", 4, "0")}), "");
  EXPECT_NE(load({range("a", 4, "0"), range("b", 4, "8")}).find("overlap"), std::string::npos);
  EXPECT_NE(load({range("a", 4, "8"), range("b", 4, "0")}).find("overlap"), std::string::npos);
  EXPECT_NE(load({range("a", 4, "0"), range("b", 2, "0")}).find("overlap"), std::string::npos);
}

}  // namespace
}  // namespace cyb::onnx
