// Reading golden files (the definitions behind golden_file.hpp), and the check that the reader
// itself sees every file.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/file.hpp"
#include "conformance/golden_file.hpp"

namespace cyb::test {
namespace {

using nlohmann::json;

const std::map<std::string, DType> kTypes = {
    {"F32", DType::kF32},    {"F16", DType::kF16},    {"F64", DType::kF64},
    {"I32", DType::kI32},    {"I64", DType::kI64},    {"U8", DType::kU8},
    {"BOOL", DType::kBool},  {"I8", DType::kI8},      {"I16", DType::kI16},
    {"U16", DType::kUint16}, {"U32", DType::kUint32}, {"U64", DType::kUint64}};

Shape shape_of(const json& dims) {
  const auto values = dims.get<std::vector<std::int64_t>>();
  return Shape(std::span<const std::int64_t>(values));
}

AttrValue attr_value(AttrKind kind, const json& value) {
  switch (kind) {
    case AttrKind::kF32:
      return value.get<float>();
    case AttrKind::kU32List:
    case AttrKind::kI32List:
    case AttrKind::kI64List:
      return value.get<std::vector<std::int64_t>>();
    case AttrKind::kBytes: {
      const bool text = value.is_string();
      const auto numbers =
          text ? std::vector<std::uint8_t>{} : value.get<std::vector<std::uint8_t>>();
      const auto raw = text ? std::as_bytes(std::span(value.get_ref<const std::string&>()))
                            : std::as_bytes(std::span(numbers));
      return std::vector<std::byte>(raw.begin(), raw.end());
    }
    default:
      return value.get<std::int64_t>();
  }
}

}  // namespace

Attrs attrs_from_json(const OpInfo& op, const std::string& text) {
  const json object = json::parse(text);
  Attrs attrs;
  for (const AttrSpec& field : op.attrs) {
    attrs.values.push_back(attr_value(field.kind, object.at(std::string(field.name))));
  }
  return attrs;
}

GoldenFile::GoldenFile(const std::string& name) {
  const std::string path = std::string(CYB_TESTS_DIR) + "/golden/ops/" + name + ".safetensors";
  auto mapped = MappedFile::open(path);
  if (!mapped) throw std::runtime_error(mapped.error().text());
  std::uint64_t size = 0;
  std::memcpy(&size, (*mapped)->bytes().data(), sizeof(size));
  const json header = json::parse((*mapped)->text().substr(8, size));
  const std::byte* data = (*mapped)->bytes().data() + 8 + size;
  for (const auto& [key, entry] : header.items()) {
    if (key == "__metadata__") continue;
    const auto begin = entry.at("data_offsets").at(0).get<std::size_t>();
    const auto end = entry.at("data_offsets").at(1).get<std::size_t>();
    values_.emplace_back((end - begin + 7) / 8 + 1);
    std::memcpy(values_.back().data(), data + begin, end - begin);
    tensors_[key] = {kTypes.at(entry.at("dtype").get<std::string>()), shape_of(entry.at("shape")),
                     std::as_bytes(std::span(values_.back())).data()};
  }
  const auto view = [&](const json& tensor) -> TensorView {
    if (tensor.is_null()) return {};
    TensorView out = tensors_.at(tensor.at(0).get<std::string>());
    out.dtype = find_dtype(tensor.at(1).get<std::string>()).value();
    out.shape = shape_of(tensor.at(2));
    return out;
  };
  for (const auto& [key, text] : header.at("__metadata__").items()) {
    const json c = json::parse(text.get<std::string>());
    const OpInfo* op = find_op(c.at("op").get<std::string>());
    if (op == nullptr) throw std::runtime_error("unknown op in " + key);
    GoldenCase out{key, {op->tag, attrs_from_json(*op, c.at("attrs").dump())}, {}, {}};
    for (const json& t : c.at("inputs")) out.inputs.push_back(view(t));
    for (const json& t : c.at("outputs")) out.outputs.push_back(view(t));
    cases_.push_back(std::move(out));
  }
}

TEST(GoldenFile, AMissingFileIsAFailure) {
  EXPECT_THROW(GoldenFile("no_such_file"), std::runtime_error);
}

}  // namespace cyb::test
