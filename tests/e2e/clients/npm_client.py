#!/usr/bin/env python3
"""The npm package `openai` against a running `cyb-llm serve`: npm/openai_client.mjs. Its packages are installed into build/npm-clients, at
the versions of npm/package-lock.json. usage: npm_client.py --program build/release/cyb-llm MODEL"""
import os
import pathlib
import shutil
import subprocess

from served import run

HERE = pathlib.Path(__file__).resolve().parent / "npm"
FOLDER = pathlib.Path(os.environ.get("CYB_NPM_CLIENTS", "build/npm-clients"))


def check_npm(address):
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", "openai_client.mjs"):
        shutil.copy(HERE / name, FOLDER / name)
    if not (FOLDER / "node_modules" / "openai").is_dir():
        subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=FOLDER, check=True)
    subprocess.run(["node", "openai_client.mjs", address], cwd=FOLDER, check=True)


if __name__ == "__main__":
    run(__doc__, [check_npm])
    print("ok npm openai")
