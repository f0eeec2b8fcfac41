#!/usr/bin/env python3
"""Golden table of JSON Schema: ../grammar/json_schema.json, with verdicts of jsonschema 4.23.0 (PyPI, with format checks).

Each case: a schema, texts that a grammar of it must take (`accept`: valid, in the layout that docs/grammars.md promises), texts
that it must refuse because they are not valid (`reject`), valid ones outside of that layout (`narrow`), and texts made from the
accepted ones by changing a byte, of which it may take only those that the oracle calls valid (`changed`: text, verdict)."""
import json
import os
import random

import jsonschema

CASES = []


def case(schema, accept=(), reject=(), narrow=(), raw=()):
    """Values; `raw`: texts to accept as they stand."""
    CASES.append((schema, [json.dumps(v, ensure_ascii=False) for v in accept] + list(raw), [json.dumps(v) for v in reject],
                  [v if isinstance(v, str) and v[:1] == "!" else json.dumps(v) for v in narrow]))


obj = {"type": "object"}
case({"type": "integer"}, [0, -1, 12, 10**30, -907], [1.5, "1", None, True, [], {}], ["!1.0", "!1e2"])
case({"type": "number"}, [0, -1, 1.5, -0.25, 1e22, 1.5e-7], ["1", None, True, []])
case({"type": "string"}, ["", "a", "é😀", 'q"b\\s\n', "\u0001", "/"], [1, None, ["a"]], raw=['"\\u00e9"', '"\\ud83d\\ude00"', '"\\/"'])
case({"type": "boolean"}, [True, False], [0, "true", None])
case({"type": "null"}, [None], [0, False, ""])
case({"type": "array"}, [[], [1], [1, "a", None, [True]], [[[]]]], [{}, 1])
case({"type": "object"}, [{}, {"a": 1}, {"a": {"b": [1, {}]}, "c": None}], [[], 1])
case({"type": ["string", "null"]}, ["x", None], [1, False])
case({"type": ["integer", "number"]}, [1, 1.5], ["1"])
case(True, [1, None, {"a": [1]}])
case({}, ["x", [1, {"y": 2}]])
case({"enum": [1, "two", None, {"a": [1, 2]}]}, [1, "two", None, {"a": [1, 2]}], [2, "one", False, {"a": [1]}], raw=['{"a":[1,2]}', '{\n  "a": [1, 2]\n}'])
case({"const": "fixed \"q\""}, ["fixed \"q\""], ["fixed", 1])
case({"type": "string", "enum": ["a", "ab", "abc", 1]}, ["a", "ab", "abc"], ["", "abcd", 1])
case({"type": "integer", "enum": [1, 2.0, 2.5]}, [1, 2.0], [2.5, 3])
case({"const": None}, [None], [0])
# objects
point = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x", "y"], "additionalProperties": False}
case(point, [{"x": 1, "y": 2}], [{"x": 1}, {}, {"x": 1, "y": "2"}, {"x": 1, "y": 2, "z": 3}, {"x": 1.5, "y": 2}], ['!{"y": 1, "x": 2}'],
     raw=['{"x":1,"y":2}', '{\n  "x": 1,\n  "y": 2\n}'])
opt = {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}, "c": {"type": "null"}}, "additionalProperties": False}
case(opt, [{}, {"a": None}, {"b": None}, {"c": None}, {"a": None, "c": None}, {"a": None, "b": None, "c": None}], [{"a": 1}, {"d": None}])
case({**opt, "required": ["b"]}, [{"b": None}, {"a": None, "b": None}, {"b": None, "c": None}], [{}, {"a": None}, {"a": None, "c": None}])
case({"type": "object", "properties": {"a": {"type": "integer"}, "ab": {"type": "string"}}, "additionalProperties": {"type": "boolean"}},
     [{}, {"a": 1}, {"ab": "x", "abc": True}, {"": False}, {"b": True, "c": False}, {"a": 1, "ab": "s", "é": True, "\n": False}],
     [{"a": True}, {"ab": 1}, {"x": 1}, {"a": 1, "b": "no"}])
case({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"a": 1}, {"a": 1, "b": 2}], [{"a": "x"}, [1]])
case({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": True}, [{"a": 1}, {"b": [1]}, {}], [{"a": "s"}])
case({"type": "object", "properties": {"a": {"type": "integer"}}}, [{"a": 1}, {}], [{"a": "s"}], [{"b": 1}])
case({"type": "object", "required": ["k"]}, [{"k": 1}, {"k": {"k": 2}}], [{}, {"j": 1}])
case({"properties": {"a": {"type": "integer"}}, "required": ["a"]}, [{"a": 1}], [{}, {"a": "x"}], [1, "s"])
case({"type": "object", "patternProperties": {"^s_": {"type": "string"}}, "additionalProperties": False}, [{}, {"s_": "x"}, {"s_a": "x", "s_b": "y"}],
     [{"a": "x"}, {"s_a": 1}])
case({"type": "object", "properties": {"id": {"type": "integer"}}, "patternProperties": {"^x-[a-z]+$": {"type": "integer"}},
      "additionalProperties": False}, [{"id": 1}, {"id": 1, "x-a": 2}, {"x-ab": 1}], [{"x-": 1}, {"x-a": "s"}, {"y": 1}])
case({"type": "object", "propertyNames": {"pattern": "^[a-z]{1,3}$"}}, [{}, {"a": 1, "abc": 2}], [{"A": 1}, {"abcd": 1}])
case({"type": "object", "propertyNames": {"enum": ["up", "down"]}, "additionalProperties": {"type": "integer"}}, [{"up": 1}, {"down": 2, "up": 1}],
     [{"left": 1}, {"up": "s"}])
case({"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer"}}, [{"a": 1}], [{}])
case({"type": "object", "maxProperties": 2, "additionalProperties": {"type": "integer"}}, [{}, {"a": 1}, {"a": 1, "b": 2}], [{"a": 1, "b": 2, "c": 3}])
case({"type": "object", "properties": {"a": False, "b": {"type": "null"}}, "additionalProperties": {"type": "integer"}}, [{"b": None}, {"c": 1}], [{"a": 1}])
# arrays
case({"type": "array", "items": {"type": "integer"}}, [[], [1], [1, 2, 3]], [["a"], [1, "a"], [1.5]], raw=["[\n  1,\n  2\n]", "[1,2]"])
case({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 4}, [[1, 2], [1, 2, 3], [1, 2, 3, 4]], [[], [1], [1, 2, 3, 4, 5]])
case({"type": "array", "items": {"type": "null"}, "minItems": 1}, [[None], [None] * 30], [[]])
case({"type": "array", "items": {"type": "null"}, "maxItems": 1}, [[], [None]], [[None, None]])
case({"type": "array", "maxItems": 0}, [[]], [[1]])
case({"type": "array", "items": False}, [[]], [[1]])
case({"type": "array", "items": {"type": "integer"}, "minItems": 20, "maxItems": 40}, [list(range(20)), list(range(40)), list(range(33))],
     [list(range(19)), list(range(41))])
case({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, [[], [1], [1, "a"], [1, "a", None, 2]], [["a"], [1, 2]])
case({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False, "minItems": 2}, [[1, "a"]], [[], [1], [1, "a", 2]])
case({"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "boolean"}, "minItems": 2, "maxItems": 3}, [[1, True], [1, True, False]],
     [[1], [1, 2], [1, True, True, True]])
case({"type": "array", "items": {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 2}, "maxItems": 2},
     [[], [[1]], [[1, 2], [3]]], [[[]], [[1, 2, 3]], [[1], [1], [1]]])
case({"type": "array", "items": {"type": "integer"}, "uniqueItems": False}, [[1, 1]], [["a"]])
# texts
case({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "é😀", "a\"\n"], ["", "a", "abcd"], raw=['"\\ud83d\\ude00a"'])
case({"type": "string", "maxLength": 0}, [""], ["a"])
case({"type": "string", "minLength": 1}, ["a", "ab" * 50], [""])
case({"type": "string", "minLength": 30, "maxLength": 60}, ["x" * 30, "é" * 60, "y" * 45], ["x" * 29, "x" * 61])
case({"type": "string", "pattern": "^[a-z]+[0-9]{2}$"}, ["a12", "abc99"], ["12", "a1", "a123", "A12"])
case({"type": "string", "pattern": "b+"}, ["b", "abba", "xx\nb"], ["", "a", "aca"])
case({"type": "string", "pattern": "^(foo|bar)"}, ["foo", "barn"], ["xfoo", "fo"])
case({"type": "string", "pattern": "^\\d{3}-\\d{4}$|^none$"}, ["555-1234", "none"], ["5555-123", "nonee"])
case({"type": "string", "pattern": "^[\"\\\\]{1,2}$"}, ['"', "\\", '"\\'], ["a", '"""'])
case({"type": "string", "pattern": "^[^a]$"}, ["b", "\n", "é", '"'], ["a", "bb"])
case({"type": "string", "format": "date"}, ["2024-02-29", "1999-12-31", "2000-02-29"], ["2023-02-29", "2024-13-01", "24-01-01", "1900-02-29", "2024-04-31"])
case({"type": "string", "format": "time"}, ["12:00:00Z", "23:59:59.123+05:30"], ["24:00:00Z", "12:60:00Z"])
case({"type": "string", "format": "date-time"}, ["2024-02-29T12:30:00Z", "2024-01-01T00:00:00.5-08:00"], ["2024-02-30T12:30:00Z", "2024-01-01"])
case({"type": "string", "format": "uuid"}, ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-42661417400", "x"])
case({"type": "string", "format": "email"}, ["a@b.de", "x.y+z@mail.example.org"], ["a.b.de", ""])
case({"type": "string", "format": "ipv4"}, ["0.0.0.0", "203.0.113.255"], ["256.1.1.1", "1.2.3", "01.2.3.4"])
case({"type": "string", "format": "ipv6"}, ["::", "::1", "fe80::1:2", "1:2:3:4:5:6:7:8", "1::8"], ["1:2:3", ":::", "12345::"])
case({"type": "string", "format": "hostname"}, ["a", "example.org", "a-b.c"], ["-a", "a..b", ""])
# numbers
case({"type": "integer", "minimum": 0, "maximum": 255}, [0, 9, 10, 99, 100, 199, 200, 249, 250, 255], [-1, 256, 1000, 300])
case({"type": "integer", "minimum": -17, "maximum": 5}, [-17, -10, -9, -1, 0, 5], [-18, 6, -20, 10])
case({"type": "integer", "minimum": 37}, [37, 38, 99, 100, 12345678901234567890], [36, 0, -40, 5])
case({"type": "integer", "maximum": -3}, [-3, -4, -10, -12345], [-2, 0, 3])
case({"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 8}, [6, 7], [5, 8])
case({"type": "integer", "minimum": 1.5, "maximum": 3.5}, [2, 3], [1, 4])
case({"type": "integer", "minimum": -2.5, "maximum": -0.5}, [-2, -1], [-3, 0])
case({"type": "integer", "minimum": 1980, "maximum": 2024}, [1980, 1989, 1999, 2000, 2019, 2024], [1979, 2025, 198, 20240])
case({"type": "number", "minimum": 0, "maximum": 1}, [0, 0.5, 1, 0.001, 0.999], [-0.1, 1.1, 2, 10], raw=["1.0", "0.0"])
case({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, [0.5, 0.01, 0.99], [0, 1, -0.5], raw=[])
case({"type": "number", "minimum": -1.25, "maximum": 10.5}, [-1.25, -1, 0, 9.99, 10, 10.5, -0.5, 10.49], [-1.26, -2, 10.51, 11])
case({"type": "number", "minimum": 2.5}, [2.5, 2.51, 3, 10, 100.25], [2.4, 2, -3, 0])
case({"type": "number", "maximum": -2.5}, [-2.5, -3, -10.1], [-2.4, 0, 2])
case({"type": "number", "minimum": 1.25, "maximum": 1.5}, [1.25, 1.3, 1.5, 1.49], [1.2, 1.6, 1, 2])
case({"type": "number", "exclusiveMinimum": 1.25, "maximum": 1.275}, [1.26, 1.251, 1.275], [1.25, 1.28, 1.2])
case({"type": "integer", "multipleOf": 7}, [0, 7, -14, 70, 7777], [1, 8, -13])
case({"minimum": 3, "type": ["integer", "null"]}, [3, None], [2, "x"])
# combinations
case({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 2}]}, [1, "ab"], ["abc", None])
case({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
     [{"a": 1}, {"b": 1}, {"a": 1, "b": 2}], [{}, {"a": "x"}])
case({"oneOf": [{"type": "integer"}, {"type": "string"}]}, [1, "a"], [None, 1.5])
shape = {"oneOf": [{"type": "object", "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
                   {"type": "object", "properties": {"kind": {"const": "box"}, "w": {"type": "integer"}}, "required": ["kind", "w"]}]}
case(shape, [{"kind": "circle", "r": 1.5}, {"kind": "box", "w": 2}], [{"kind": "circle", "w": 2}, {"kind": "box"}, {}])
case({"oneOf": [{"type": "integer", "maximum": 3}, {"type": "integer", "minimum": 5}]}, [3, 5], [4])
case({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                {"properties": {"b": {"type": "string"}, "a": {"minimum": 3}}, "required": ["b"]}]},
     [{"a": 3, "b": "x"}], [{"a": 2, "b": "x"}, {"a": 3}, {"b": "x"}])
case({"allOf": [{"type": "integer", "minimum": 3}, {"maximum": 5}, {"type": "number"}]}, [3, 5], [2, 6, 3.5])
case({"allOf": [{"anyOf": [{"type": "integer"}, {"type": "null"}]}, {"anyOf": [{"type": "integer"}, {"type": "string"}]}]}, [3], [None, "x"])
case({"type": "string", "nullable": True}, ["x"], [1])
# references
case({"$defs": {"name": {"type": "string", "minLength": 1}}, "type": "object", "properties": {"n": {"$ref": "#/$defs/name"}}, "required": ["n"]},
     [{"n": "x"}], [{"n": ""}, {}])
tree = {"type": "object", "properties": {"v": {"type": "integer"}, "kids": {"type": "array", "items": {"$ref": "#"}}}, "required": ["v"],
        "additionalProperties": False}
case(tree, [{"v": 1}, {"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3}]}], [{"kids": []}, {"v": 1, "kids": [1]}])
linked = {"$defs": {"node": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["next"],
                             "additionalProperties": False}}, "$ref": "#/$defs/node"}
case(linked, [{"next": None}, {"next": {"next": None}}], [{}, {"next": 1}, {"next": {}}])
case({"definitions": {"a/b~c": {"type": "integer"}}, "type": "array", "items": {"$ref": "#/definitions/a~1b~0c"}}, [[1]], [["x"]])
case({"$defs": {"pos": {"type": "integer", "minimum": 1}}, "type": "object", "properties": {"p": {"$ref": "#/$defs/pos", "maximum": 9}},
      "required": ["p"]}, [{"p": 1}, {"p": 9}], [{"p": 0}, {"p": 10}])
person = {"type": "object", "title": "Person", "properties": {
    "name": {"type": "string", "description": "full name", "maxLength": 40}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
    "email": {"type": "string", "format": "email"}, "tags": {"type": "array", "items": {"enum": ["new", "vip", "late"]}, "maxItems": 3},
    "address": {"type": "object", "properties": {"street": {"type": "string"}, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}},
                "required": ["street", "zip"], "additionalProperties": False}},
    "required": ["name", "age"], "additionalProperties": False}
case(person, [{"name": "Ann", "age": 41}, {"name": "Bo \"B\"", "age": 0, "email": "a@b.org", "tags": ["vip", "new"], "address": {"street": "x", "zip": "12345"}}],
     [{"name": "Ann", "age": 151}, {"age": 1}, {"name": "A", "age": 1, "tags": ["old"]}, {"name": "A", "age": 1, "address": {"street": "x", "zip": "1234"}}])


def verdict(validator, text):
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    try:
        return validator.is_valid(value)
    except ValueError:  # a format check of an empty host name
        return False


def changed(rng, text):
    data = bytearray(text.encode())
    at = rng.randrange(len(data))
    kind = rng.randrange(4)
    if kind == 0:
        del data[at]
    elif kind == 1:
        data[at] = rng.choice(b'0123456789-+.eE"\\{}[]:, \nabtfnu\xc3')
    elif kind == 2:
        data.insert(at, rng.choice(b'0123456789-+.eE"\\{}[]:, \nabtfnu\xc3'))
    else:
        data[at:at] = data[at:at + rng.randrange(1, 6)]
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def main():
    rng, out = random.Random(11), []
    for schema, accept, reject, narrow in CASES:
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        narrow = [text[1:] if text.startswith("!") else text for text in (json.loads(t) if t[:1] == '"' and t[1:2] == "!" else t for t in narrow)]
        for text in accept:
            assert verdict(validator, text), (schema, text)
        for text in narrow:
            assert verdict(validator, text), (schema, text)
        for text in reject:
            assert not verdict(validator, text), (schema, text)
        texts = {t for base in accept for t in (changed(rng, base) for _ in range(25)) if t and t != base and len(t) < 200}
        out.append({"schema": schema, "accept": accept, "reject": reject, "narrow": narrow,
                    "changed": [[t, verdict(validator, t)] for t in sorted(texts)]})
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "grammar", "json_schema.json")
    with open(path, "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=True, separators=(",", ":")) for c in out) + "\n]\n")
    print(len(out), "cases", sum(len(c["changed"]) for c in out), "changed texts")


main()
