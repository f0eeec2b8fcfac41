"""What the scripts of this folder share: finding the program and the models, running the program, reading its files.

Standard library only at import; numpy is imported where arrays are needed.
"""
import glob
import json
import os
import platform
import shutil
import subprocess
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
GOLDEN = os.path.join(ROOT, "tests", "golden")
MODEL_FILES = {
    "smollm2": "smollm2-135m-q4_1",
    "gemma3": "gemma3-270m-q4_k_m",
    "qwen2.5-coder": "qwen2.5-coder-0.5b-q4_k_m",
}


class ToolError(Exception):
    """A failure with a sentence that says what to do next."""


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def cache_dir(name):
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "cyb-llm", name)


def find_program(given=None):
    """The cyb-llm to test: --program, $CYB_LLM, one in a build folder of this tree (release first), or the one on PATH."""
    for path in (given, os.environ.get("CYB_LLM")):
        if path:
            if not os.access(path, os.X_OK):
                raise ToolError(f"{path} is not a program. Build first (make) or give the right path with --program.")
            return os.path.abspath(path)
    built = [p for p in glob.glob(os.path.join(ROOT, "build*", "**", "cyb-llm"), recursive=True)
             if os.path.isfile(p) and os.access(p, os.X_OK)]
    if built:
        return os.path.abspath(max(built, key=lambda p: ("release" in p, os.path.getmtime(p))))
    found = shutil.which("cyb-llm")
    if not found:
        raise ToolError("cyb-llm is not built. Build it (make) or name it with --program or $CYB_LLM.")
    return found


def find_model(name):
    """A path as it is, or one of the names of fetch_models.py looked up in its folder."""
    if os.path.exists(name):
        return os.path.abspath(name)
    if name not in MODEL_FILES:
        raise ToolError(f"no file and no model name: {name}. Names: {', '.join(MODEL_FILES)}.")
    path = os.path.join(os.environ.get("CYB_MODELS") or cache_dir("models"), MODEL_FILES[name] + ".gguf")
    if not os.path.exists(path):
        raise ToolError(f"{name} is not there. Get it with: python3 tools/fetch_models.py {name}")
    return path


def golden_of(path):
    """The text golden that belongs to a model file, by the file's name, or None."""
    stem = os.path.splitext(os.path.basename(path))[0].lower().replace("-instruct", "").replace(".", "-")
    for golden in MODEL_FILES.values():
        if golden.replace(".", "-") == stem:
            return os.path.join(GOLDEN, "text", golden + ".json")
    return None


def run(program, *args, timeout=3600, env=None):
    """stdout of a run of the program; its stderr becomes the error if it fails."""
    command = [program, *map(str, args)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout, check=False,
                              env=None if env is None else {**os.environ, **env})
    except subprocess.TimeoutExpired:
        raise ToolError(f"{' '.join(command)}: no end after {timeout} s") from None
    if done.returncode != 0:
        tail = done.stderr.decode("utf-8", "replace").strip()[-2000:]
        raise ToolError(f"{' '.join(command)}\nended with {done.returncode}: {tail}")
    return done.stdout


def run_json(program, *args, **kw):
    out = run(program, *args, **kw)
    try:
        return json.loads(out)
    except json.JSONDecodeError as error:
        raise ToolError(f"{program} {' '.join(map(str, args))}: stdout is no JSON ({error}): {out[:300]!r}") from None


def program_logits(program, model, ids, folder, options=()):
    """Logits f32 [T, V] of `cyb-llm logits`, mapped from a file in `folder`."""
    import numpy as np
    tokens, out = os.path.join(folder, "tokens.txt"), os.path.join(folder, "logits.npy")
    if len(ids) > 64:
        with open(tokens, "w", encoding="ascii") as f:
            f.write(",".join(map(str, ids)) + "\n")
        given = "@" + tokens
    else:
        given = ",".join(map(str, ids))
    run(program, "logits", model, "--tokens", given, "-o", out, "--force", *options)
    logits = np.load(out, mmap_mode="r")
    if logits.dtype != np.float32 or logits.ndim != 2 or logits.shape[0] != len(ids):
        raise ToolError(f"{out}: {logits.dtype} {logits.shape}, expected float32 [{len(ids)}, V]")
    return logits


def error_metric(got, want):
    """max |a-b| / max(1, max |b|); infinite where one side is not finite and the other differs."""
    import numpy as np
    a, b = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if a.shape != b.shape:
        raise ToolError(f"shapes differ: {a.shape} and {b.shape}")
    finite = np.isfinite(b)
    if not np.array_equal(np.isfinite(a), finite) or not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    return float(np.abs(a - b)[finite].max() / max(1.0, np.abs(b[finite]).max()))


def machine():
    """CPU name, cores and the SIMD extensions that matter, for reports."""
    name, flags = platform.processor() or platform.machine(), set()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            for line in f:
                key, _, rest = line.partition(":")
                if key.strip() == "model name":
                    name = rest.strip()
                elif key.strip() == "flags":
                    flags = set(rest.split())
    except OSError:
        pass
    known = ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_int8")
    return f"{name}, {os.cpu_count()} cores, {' '.join(f for f in known if f in flags) or 'no x86 extensions seen'}"


def main_guard(main):
    """Runs main and turns the failures that a person can act on into one line."""
    try:
        sys.exit(main())
    except (ToolError, OSError) as error:
        say(f"{os.path.basename(sys.argv[0])}: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
