// Values that come as texts, and what their schemas say of them.
#include "text/tools/argument_types.hpp"

#include <gtest/gtest.h>

#include "text/grammar/json_schema.hpp"

namespace cyb {
namespace {

TEST(ArgumentTypes, AreThoseThatTheSchemaNames) {
  const ArgumentTypes read = read_argument_types("f", R"({"type": "object", "properties": {
    "text": {"type": "string"}, "both": {"type": ["string", "null"]}, "enum": {"enum": ["a", 1]},
    "ref": {"$ref": "#/$defs/a~1b"}, "any": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/a~1b"}]},
    "circle": {"$ref": "#/properties/circle"}, "nothing": {"$ref": "#/no/where"}, "list": {"items": {}},
    "maybe": {"type": "boolean", "nullable": true}, "odd": {"type": "dict"}, "bool": true},
    "allOf": [{"properties": {"more": {"const": 1.5}}}], "$defs": {"a/b": {"type": "array"}}})");
  EXPECT_EQ(read.function, "f");
  const std::pair<const char*, unsigned> expected[] = {
      {"text", text::kString},
      {"both", text::kString | text::kNull},
      {"enum", text::kString | text::kNumber | text::kInteger},
      {"ref", text::kArray},
      {"any", text::kInteger | text::kArray},
      {"circle", 0},
      {"nothing", 0},
      {"list", text::kArray},
      {"maybe", text::kBoolean | text::kNull},
      {"odd", 0},
      {"bool", 0},
      {"more", text::kNumber | text::kInteger},
      {"unknown", 0}};
  for (const auto& [name, types] : expected) EXPECT_EQ(read.of(name), types) << name;
  for (const char* hostile : {"", "{", "[]", "7", R"({"properties": [1]})", R"({"$ref": "#"})"}) {
    EXPECT_TRUE(read_argument_types("f", hostile).types.empty()) << hostile;
  }
  std::string deep = R"({"type": "integer"})";
  for (int i = 0; i < 5000; ++i) deep = R"({"allOf": [)" + deep + "]}";
  EXPECT_EQ(read_argument_types("f", R"({"properties": {"a": )" + deep + "}}").of("a"), 0u);
}

TEST(ArgumentTypes, ValuesTakeThem) {
  struct Case {
    unsigned types;
    const char *value, *json;
  };
  const unsigned number = text::kNumber | text::kInteger;
  const Case cases[] = {
      {text::kInteger, " 12\n", "12"},
      {text::kInteger, "-3", "-3"},
      {text::kInteger, "1.5", "\"1.5\""},
      {text::kInteger, "007", "\"007\""},
      {text::kInteger, "null", "null"},
      {text::kInteger, "", "\"\""},
      {number, "1.50", "1.50"},
      {number, "NaN", "\"NaN\""},
      {number, "1e3", "1e3"},
      {text::kBoolean, "TRUE", "true"},
      {text::kBoolean, "False", "false"},
      {text::kBoolean, "1", "\"1\""},
      {text::kString | text::kNull, "None", "null"},
      {text::kString | number, "null", "\"null\""},
      {text::kString | number, "5", "5"},
      {text::kString | number, " five", "\" five\""},
      {text::kString | number, "\"5\"", "\"5\""},
      {text::kArray, "[1, 2]", "[1, 2]"},
      {text::kArray, "['a', True, {'b': None}]", R"(["a", true, {"b": null}])"},
      {text::kArray, "[1, 2", "\"[1, 2\""},
      {text::kArray, "x) + (y", "\"x) + (y\""},
      {text::kObject, "{\"a\": [}", "\"{\\\"a\\\": [}\""},
      {text::kObject, "5", "5"},
      {0, "{\"a\": 1}", "{\"a\": 1}"},
      {0, "a \"b\"\n", "\"a \\\"b\\\"\\n\""},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(typed_json(one.value, one.types), one.json) << one.types << " " << one.value;
  }
}

}  // namespace
}  // namespace cyb
