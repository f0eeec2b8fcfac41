#!/usr/bin/env python3
"""schemathesis against a running `cyb-llm serve`: requests made from /openapi.json, valid and not. No answer may have a status, a type or
a shape that the file does not say, and none of 5xx but 501 and 503. usage: openapi_check.py --program build/release/cyb-llm MODEL"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

from served import run

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance," \
    "negative_data_rejection,unsupported_method"
SECONDS = os.environ.get("CYB_OPENAPI_SECONDS", "600")  # what is not done by then is left out
EXAMPLES = os.environ.get("CYB_OPENAPI_EXAMPLES", "12")


def check_document(address):
    with urllib.request.urlopen(address + "/openapi.json") as reply:
        document = json.load(reply)
    assert document["openapi"] == "3.1.0" and len(document["paths"]) > 15, list(document["paths"])


def check_schemathesis(address):
    tool = pathlib.Path(sys.executable).parent / "schemathesis"
    with tempfile.TemporaryDirectory() as folder:
        settings = pathlib.Path(folder) / "schemathesis.toml"
        settings.write_text('[checks.not_a_server_error]\nexpected-statuses = ["2xx", "3xx", "4xx", 501, 503]\n')
        subprocess.run([tool, "--config-file", settings, "run", address + "/openapi.json", "--checks", CHECKS, "--max-examples", EXAMPLES,
                        "--phases", "coverage,fuzzing", "--generation-deterministic", "--workers", "4",
                        "--max-time", SECONDS, "--request-timeout", "120", "--no-color", "--warnings", "off", "--continue-on-failure"], check=True, cwd=folder)


if __name__ == "__main__":
    run(__doc__, [check_document, check_schemathesis], "--ctx", "32", "--slots", "16")
    print("ok openapi")
