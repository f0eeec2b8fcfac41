#!/usr/bin/env python3
"""Any torch module -> ONNX -> .model, in one command.

    tools/export_torch.py MODULE:FACTORY --input NAME=DTYPE[D,D,...] [--input ...] -o OUT.model
    tools/export_torch.py hf:FOLDER --input input_ids=FILE.npy[batch,tokens] -o OUT.model

MODULE is a Python file or an importable name; FACTORY() gives a torch.nn.Module. `hf:FOLDER` is a checkpoint of transformers: the class
that its config.json names, or --class. An input is a dtype and its sizes, or a .npy file of an example (say so where values decide what the
module does). A dimension of the first form is a number, or SYMBOL=NUMBER for one that may differ at run time (`ids=i64[batch=2,seq=7]`);
after a file stands a list of symbols, an empty one for a dimension that is fixed. Inputs are given to the module by name (hf:) or in order.
A language model is traced with attention masks of ones where none is an input.

The exporter is torch's trace; where that cannot say an operator, the one on torch.export (also with --dynamo), which needs onnxscript and onnx.
The ONNX file is kept with --onnx FILE. CYB_TRACEBACK=1 shows where an export failed. None of these packages is needed to run the model.
"""
import argparse
import importlib
import importlib.util
import inspect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

DTYPES = {"f32": "float32", "f16": "float16", "f64": "float64", "i64": "int64", "i32": "int32", "i8": "int8", "u8": "uint8", "bool": "bool"}
INPUT = re.compile(r"^(?P<name>[^=\[]+)=(?P<kind>[^\[]+)(\[(?P<dims>[^\]]*)\])?$")
TRACE_OPSET, EXPORT_OPSET = 17, 20


class Input:
    """One input: name, example and the names of its dynamic axes."""

    def __init__(self, torch, text):
        match = INPUT.match(text)
        if not match:
            sys.exit(f"export_torch: --input {text}: want NAME=DTYPE[D,...] or NAME=FILE.npy")
        self.name, self.axes = match["name"], {}
        dims = (match["dims"] or "").split(",")
        if match["kind"] in DTYPES:
            self.example = self.ramp(getattr(torch, DTYPES[match["kind"]]), self.sizes(text, [d for d in dims if d]), torch)
        elif match["kind"].endswith(".npy"):
            import numpy

            self.example = torch.from_numpy(numpy.load(match["kind"]))
            self.axes = {axis: symbol for axis, symbol in enumerate(dims) if symbol}
        else:
            sys.exit(f"export_torch: --input {text}: {match['kind']} is no .npy file and no dtype ({' '.join(DTYPES)})")

    def sizes(self, text, dims):
        sizes = []
        for axis, dim in enumerate(dims):
            symbol, _, number = dim.rpartition("=")
            if not number.isdigit():
                sys.exit(f"export_torch: --input {text}: {dim} is no number and no SYMBOL=NUMBER")
            sizes.append(int(number))
            if symbol:
                self.axes[axis] = symbol
        return sizes

    @staticmethod
    def ramp(dtype, sizes, torch):
        if dtype.is_floating_point:
            return torch.linspace(-1, 1, max(1, torch.Size(sizes).numel()), dtype=torch.float32).reshape(sizes).to(dtype)
        return torch.ones(sizes, dtype=dtype)


def load_factory(name):
    module_name, _, factory = name.rpartition(":")
    if not module_name:
        sys.exit(f"export_torch: {name}: want MODULE:FACTORY or hf:FOLDER")
    if module_name.endswith(".py"):
        spec = importlib.util.spec_from_file_location("exported", module_name)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(module_name)
    return getattr(module, factory)()


def load_checkpoint(folder, class_name):
    import torch
    import transformers

    if not class_name:
        config = json.loads((pathlib.Path(folder) / "config.json").read_text())
        class_name = (config.get("architectures") or ["AutoModel"])[0]
    if not hasattr(transformers, class_name):
        sys.exit(f"export_torch: transformers has no class {class_name}: give one with --class")
    model_class, how = getattr(transformers, class_name), {"dtype": torch.float32, "attn_implementation": "eager"}
    if getattr(model_class, "_can_set_experts_implementation", lambda: False)():
        how["experts_implementation"] = "batched_mm"  # the others loop over the experts that the example happened to take
    model = model_class.from_pretrained(folder, **how)
    model.config.return_dict = True
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    return model


def masks(torch, model, given):
    """Masks of ones for the inputs of ids without one: a model asks else whether the ids are packed sequences, with operators that ONNX lacks."""
    known, out = inspect.signature(model.forward).parameters, {}
    for prefix in ("", "decoder_"):
        ids, mask = prefix + "input_ids", prefix + "attention_mask"
        if ids in given and mask in known and mask not in given:
            out[mask] = torch.ones_like(given[ids])
    return out


def call(torch, model, given, by_name):
    """The outputs of a module by name."""
    out = model(**given, **masks(torch, model, given)) if by_name else model(*given.values())
    if isinstance(out, torch.Tensor):
        return {"output": out}
    if not hasattr(out, "items"):
        out = {f"output_{i}" if i else "output": value for i, value in enumerate(out)}
    return {k: v for k, v in out.items() if isinstance(v, torch.Tensor)}


def wrap(torch, model, names, outputs, by_name):
    """A module that takes the inputs in order and returns the wanted outputs as a tuple."""

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, *args):
            out = call(torch, self.inner, dict(zip(names, args)), by_name)
            return tuple(out[k] for k in outputs)

    return Wrapped().eval()


def outputs_of(torch, model, inputs, by_name, wanted):
    """The names of the outputs to keep, all if none is asked for."""
    with torch.no_grad():
        there = list(call(torch, model, {i.name: i.example for i in inputs}, by_name))
    for name in wanted:
        if name not in there:
            sys.exit(f"export_torch: --output {name}: the module gives {', '.join(there)}")
    return wanted or there


def trace(torch, model, inputs, outputs, opset, path):
    axes = {i.name: i.axes for i in inputs if i.axes}
    torch.onnx.export(model, tuple(i.example for i in inputs), path, dynamo=False, opset_version=opset or TRACE_OPSET,
                      input_names=[i.name for i in inputs], output_names=outputs, dynamic_axes=axes or None)


def torch_export(torch, model, inputs, outputs, opset, path):
    shapes = (tuple(i.axes for i in inputs),) if any(i.axes for i in inputs) else None  # of forward's *args
    torch.onnx.export(model, tuple(i.example for i in inputs), path, dynamo=True, opset_version=opset or EXPORT_OPSET,
                      input_names=[i.name for i in inputs], output_names=outputs, dynamic_shapes=shapes, external_data=False, verbose=False)


def export(args, path):
    import torch

    inputs, by_name = [Input(torch, text) for text in args.input], args.model.startswith("hf:")
    inner = (load_checkpoint(args.model[3:], args.class_name) if by_name else load_factory(args.model)).eval()
    outputs = outputs_of(torch, inner, inputs, by_name, args.output)
    model = wrap(torch, inner, [i.name for i in inputs], outputs, by_name)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not args.dynamo:
            try:
                return trace(torch, model, inputs, outputs, args.opset, path)
            except Exception as error:  # an operator that it lacks, or one of its own defects
                print(f"export_torch: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}; trying the exporter on torch.export", file=sys.stderr)
        torch_export(torch, model, inputs, outputs, args.opset, path)


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="MODULE:FACTORY, FILE.py:FACTORY or hf:FOLDER")
    parser.add_argument("--input", action="append", required=True, metavar="NAME=DTYPE[D,...] | NAME=FILE.npy[SYMBOL,...]")
    parser.add_argument("--output", action="append", default=[], metavar="NAME", help="an output to keep (default: all; a module's that are not named: output, output_1, ...)")
    parser.add_argument("--class", dest="class_name", help="class of transformers for hf: (default: the one in config.json)")
    parser.add_argument("--opset", type=int, help=f"default {TRACE_OPSET}, with torch.export {EXPORT_OPSET}")
    parser.add_argument("--dynamo", action="store_true", help="the exporter on torch.export at once")
    parser.add_argument("--onnx", help="keep the ONNX file here")
    parser.add_argument("-o", "--out", help="the .model file; without it only the ONNX file is written")
    parser.add_argument("--force", action="store_true", help="overwrite the .model file")
    parser.add_argument("--program", default="cyb-llm", help="the cyb-llm program")
    args = parser.parse_args(words)
    if not args.out and not args.onnx:
        parser.error("give -o, --onnx or both")
    return args


def main(words=None):
    args = parse(words)
    program = shutil.which(args.program)
    if args.out and not program:
        sys.exit(f"export_torch: there is no program {args.program}: give it with --program")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(args.onnx or pathlib.Path(folder) / f"{pathlib.Path(args.out).stem}.onnx").absolute()
        export(args, str(path))
        if not args.out:
            return 0
        command = [os.path.abspath(program), "import", path.name, "-o", os.path.abspath(args.out)] + (["--force"] if args.force else [])
        return subprocess.run(command, check=False, cwd=path.parent).returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception as error:
        if os.environ.get("CYB_TRACEBACK"):
            raise
        sys.exit(f"export_torch: {type(error).__name__}: {str(error).strip()}")
