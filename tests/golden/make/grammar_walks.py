#!/usr/bin/env python3
"""Checks random walks under JSON schemas with jsonschema 4.23.0: grammar_walks.py TEST_TEXT, the test binary of tests/text."""
import json
import os
import subprocess
import sys
import tempfile

import jsonschema

with tempfile.NamedTemporaryFile() as walks:
    subprocess.run([sys.argv[1], "--gtest_filter=JsonSchema.RandomWalks*"], env={**os.environ, "CYB_GRAMMAR_WALKS": walks.name}, check=True)
    n, bad = 0, 0
    for line in open(walks.name, encoding="utf-8"):
        schema, text = json.loads(line)
        if "nullable" in line:  # a keyword of OpenAPI, which the oracle does not know
            continue
        validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        n += 1
        if not validator.is_valid(json.loads(text)):
            bad += 1
            print("NOT VALID", json.dumps(schema), text)
print(f"{n} texts, {bad} not valid")
sys.exit(1 if bad or n == 0 else 0)
