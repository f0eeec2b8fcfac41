#!/usr/bin/env python3
"""Runs the ONNX project's backend tests (PyPI onnx, version in tools/requirements.txt) through import and the graph.

Cases: the node cases of onnx.backend.test.case.node.collect_testcases(None) and the data sets "simple", "pytorch-operator" and
"pytorch-converted" of the package. A case counts if all inputs and outputs of its graph are plain tensors of f16 f32 f64 i8 i16 i32 i64 u8
u16 u32 u64 or bool, and it is of no training domain and not of ai.onnx.ml. Each case is written to a folder and run by onnx_driver, which
answers ok, refused (the import said no, with the reason) or failed. Outputs are compared by dtype, shape and the case's own tolerances.

    run.py --driver BUILD/tests/onnx_driver [--only REGEX] [--backend reference|cpu] [--table docs/onnx.md] [--verbose]

What an operator draws at random is compared by dtype, shape and range.
Exit status 1 if any case failed: a wrong value, a crash, or an error after an import that said yes.
"""
import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.loader import load_model_tests

PLAIN = {TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT8, TensorProto.INT16, TensorProto.INT32,
         TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64, TensorProto.BOOL}
OTHER_DOMAINS = {"ai.onnx.ml", "ai.onnx.preview.training", "ai.onnx.training"}
KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
START, END = "<!-- table: begin -->", "<!-- table: end -->"


def exact_idft(inputs):
    x = inputs[0].astype(np.float64)
    y = np.fft.ifft(x[..., 0] + 1j * x[..., 1], axis=1)
    return [np.stack([y.real, y.imag], -1).astype(np.float32)]


# Cases whose stored outputs are further from the formula than the case's own tolerance: the formula in double precision instead.
EXACT = {
    "test_dft_inverse": exact_idft,  # stored values were summed in f32: up to 1.5e-6 off, where 0 is expected
    "test_dft_inverse_opset19": exact_idft,
}


# Operators whose stored outputs are draws of numpy's generator: dtype, shape and range are compared.
DRAWN = {"Bernoulli": lambda array: np.isin(array, (0, 1)).all()}


class Case:
    """One model with one or more sets of inputs and expected outputs."""

    def __init__(self, name, kind, model, data_sets, rtol, atol):
        self.name, self.kind, self.model = name, kind, model
        self.data_sets, self.rtol, self.atol = data_sets, rtol, atol
        self.operator, self.status, self.reason = "", "", ""


def as_array(value):
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def is_plain(value):
    return value.type.HasField("tensor_type") and value.type.tensor_type.elem_type in PLAIN


def counts(model):
    if any(node.domain in OTHER_DOMAINS for node in model.graph.node):
        return False
    return all(is_plain(v) for v in list(model.graph.input) + list(model.graph.output))


def arrays_of(folder, prefix):
    out = []
    for i in range(len(list(folder.glob(f"{prefix}_*.pb")))):
        proto = onnx.TensorProto()
        proto.ParseFromString((folder / f"{prefix}_{i}.pb").read_bytes())
        out.append(numpy_helper.to_array(proto))
    return out


def stored_cases(kind):
    for case in load_model_tests(kind=kind):
        folder = pathlib.Path(case.model_dir)
        model = onnx.load(folder / "model.onnx")
        if counts(model):
            sets = [(arrays_of(d, "input"), arrays_of(d, "output")) for d in sorted(folder.glob("test_data_set_*"))]
            yield Case(case.name, kind, model, sets, case.rtol, case.atol)


def node_cases():
    for case in collect_testcases(None):
        if case.model is not None and counts(case.model):
            yield Case(case.name, "node", case.model, case.data_sets, case.rtol, case.atol)


def name_operators(cases):
    """The operator a node case is about: its only node, or that of the case it is the expansion of."""
    by_name = {case.name: case for case in cases}
    for case in cases:
        if case.kind != "node":
            case.operator = case.kind
            continue
        base = by_name.get(re.sub(r"_expanded(_ver\d+)?$", "", case.name), case)
        node = base.model.graph.node[0] if len(base.model.graph.node) else None
        case.operator = node.op_type if node else "none"


def write_case(case, root):
    folders = []
    for i, (inputs, _) in enumerate(case.data_sets):
        folder = root / f"{case.kind}-{case.name}-{i}"
        folder.mkdir()
        onnx.save(case.model, folder / "model.onnx")
        names = [v.name for v in case.model.graph.input]
        initial = {t.name for t in case.model.graph.initializer}
        given = [a for n, a in zip(names, inputs)] if len(inputs) == len(names) else inputs
        wanted = [a for n, a in zip(names, given) if n not in initial] if len(inputs) == len(names) else inputs
        for k, array in enumerate(wanted):
            np.save(folder / f"in_{k}.npy", np.array(as_array(array), order="C"))
        folders.append(folder)
    return folders


def run_driver(driver, folders, options=()):
    """Status and reason by folder. A crash ends one case; the rest goes to a new process."""
    answers, left = {}, list(folders)
    while left:
        text = "".join(f"{f}\n" for f in left)
        done = subprocess.run([driver, *options], input=text, capture_output=True, text=True, check=False)
        for line in done.stdout.splitlines():
            folder, status, *reason = line.split(" ", 2)
            answers[folder] = (status, reason[0] if reason else "")
        left = [f for f in left if str(f) not in answers]
        if left:
            answers[str(left[0])] = ("failed", f"the driver ended with status {done.returncode}")
            left = left[1:]
    return answers


def difference(got, want, rtol, atol):
    want = as_array(want)
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    try:
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)
    except AssertionError as error:
        lines = [line for line in str(error).splitlines() if "ismatch" in line or "Max" in line or "nan" in line]
        return "values: " + "; ".join(line.strip() for line in lines)
    return ""


def judge(case, folders, answers):
    case.status = "passed"
    for folder, (inputs, expected) in zip(folders, case.data_sets):
        status, reason = answers[str(folder)]
        if case.name in EXACT:
            expected = EXACT[case.name]([as_array(a) for a in inputs])
        if status == "ok":
            for k, want in enumerate(expected):
                got = np.load(folder / f"out_{k}.npy")
                if case.operator in DRAWN and got.shape == want.shape and got.dtype == want.dtype and DRAWN[case.operator](got):
                    continue
                reason = difference(got, want, case.rtol, case.atol)
                if reason:
                    status, reason = "failed", f"output {k}: {reason}"
                    break
        if status != "ok":
            case.status, case.reason = status, reason
            return


def short_reason(case):
    text = re.sub(r'^(node "[^"]*" \([^)]*\): )', "", case.reason)
    return re.sub(r"\s+", " ", text)[:160]


def table(cases):
    lines = []
    for kind in KINDS:
        group = [c for c in cases if c.kind == kind]
        n = collections.Counter(c.status for c in group)
        lines.append(f"- {kind}: {len(group)} cases, {n['passed']} passed, {n['failed']} failed, {n['refused']} refused")
    lines += ["", "| operator | passed | failed | refused | why |", "|---|---|---|---|---|"]
    for operator in sorted({c.operator for c in cases}, key=str.lower):
        group = [c for c in cases if c.operator == operator]
        n = collections.Counter(c.status for c in group)
        why = "; ".join(sorted({short_reason(c) for c in group if c.status != "passed"}))
        why = why.replace("|", "\\|")[:400]
        lines.append(f"| {operator} | {n['passed']} | {n['failed']} | {n['refused']} | {why} |")
    return "\n".join(lines)


def replace_table(path, text):
    old = path.read_text()
    begin, end = old.index(START) + len(START), old.index(END)
    path.write_text(f"{old[:begin]}\n{text}\n{old[end:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--backend", default="reference", help="reference (passes on and off, equal bits) or cpu")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    cases = list(node_cases())
    for kind in KINDS[1:]:
        cases += stored_cases(kind)
    name_operators(cases)
    cases = [c for c in cases if re.search(args.only, c.name)]
    root = pathlib.Path(tempfile.mkdtemp(prefix="onnx_backend_"))
    try:
        folders = {id(case): write_case(case, root) for case in cases}
        answers = run_driver(args.driver, [f for case in cases for f in folders[id(case)]], [args.backend, "passes"])
        for case in cases:
            judge(case, folders[id(case)], answers)
    finally:
        shutil.rmtree(root)
    if args.verbose:
        for case in cases:
            if case.status != "passed":
                print(f"{case.status} {case.kind} {case.name} [{case.operator}]: {case.reason}")
    total = collections.Counter(case.status for case in cases)
    print(f"onnx {onnx.__version__}: {len(cases)} cases, {total['passed']} passed, {total['failed']} failed, {total['refused']} refused")
    if args.table:
        replace_table(args.table, table(cases))
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
