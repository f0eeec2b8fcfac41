#!/usr/bin/env python3
"""Any torch module -> ONNX -> .model, in one command.

    tools/export_torch.py MODULE:FACTORY --input NAME=DTYPE[D,D,...] [--input ...] -o OUT.model

MODULE is a Python file or an importable name; FACTORY() gives a torch.nn.Module. With `hf:FOLDER` in place of MODULE:FACTORY the
checkpoint in FOLDER is loaded by transformers (--class picks the Auto class, AutoModel if not given). A dimension is a number, or
SYMBOL=NUMBER for one that may differ at run time: `ids=i64[batch=2,seq=7]`. Inputs are given to the module by name (hf:) or in order.

The ONNX file is kept with --onnx FILE. Needs torch, and onnx for the newer exporter (--dynamo); neither is needed to run the model.
"""
import argparse
import importlib
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

DTYPES = {"f32": "float32", "f16": "float16", "f64": "float64", "i64": "int64", "i32": "int32", "i8": "int8", "u8": "uint8", "bool": "bool"}
INPUT = re.compile(r"^(?P<name>[^=\[]+)=(?P<dtype>\w+)\[(?P<dims>[^\]]*)\]$")


class Input:
    """One input: name, torch dtype, example sizes and the names of its dynamic axes."""

    def __init__(self, text):
        match = INPUT.match(text)
        if not match or match["dtype"] not in DTYPES:
            sys.exit(f"export_torch: --input {text}: want NAME=DTYPE[D,...] with DTYPE one of {' '.join(DTYPES)}")
        self.name, self.dtype, self.sizes, self.axes = match["name"], DTYPES[match["dtype"]], [], {}
        for axis, dim in enumerate(d for d in match["dims"].split(",") if d):
            symbol, _, number = dim.rpartition("=")
            if not number.isdigit():
                sys.exit(f"export_torch: --input {text}: {dim} is no number and no SYMBOL=NUMBER")
            self.sizes.append(int(number))
            if symbol:
                self.axes[axis] = symbol

    def example(self, torch):
        dtype = getattr(torch, self.dtype)
        if dtype.is_floating_point:
            return torch.linspace(-1, 1, max(1, torch.Size(self.sizes).numel()), dtype=torch.float32).reshape(self.sizes).to(dtype)
        return torch.ones(self.sizes, dtype=dtype)


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


def load_checkpoint(folder, auto_class):
    import transformers

    model = getattr(transformers, auto_class).from_pretrained(folder, torch_dtype="float32", attn_implementation="eager")
    model.config.return_dict = True
    if hasattr(model.config, "use_cache"):
        model.config.use_cache = False
    return model


def wrap(torch, model, names, outputs):
    """A module that takes the inputs in order, gives them by name, and returns the wanted outputs as a tuple."""

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, *args):
            out = self.inner(**dict(zip(names, args)))
            return tuple(out[k] for k in outputs)

    return Wrapped()


def export(args, path):
    import torch

    inputs = [Input(text) for text in args.input]
    names, outputs = [i.name for i in inputs], args.output
    if args.model.startswith("hf:"):
        inner = load_checkpoint(args.model[3:], args.auto_class).eval()
        examples = tuple(i.example(torch) for i in inputs)
        if not outputs:
            with torch.no_grad():
                outputs = [k for k, v in inner(**dict(zip(names, examples))).items() if isinstance(v, torch.Tensor)]
        model = wrap(torch, inner, names, outputs).eval()
    else:
        model = load_factory(args.model).eval()
        examples = tuple(i.example(torch) for i in inputs)
    axes = {i.name: i.axes for i in inputs if i.axes}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if args.dynamo:
            torch.onnx.export(model, examples, path, dynamo=True, opset_version=args.opset, input_names=names, output_names=outputs or None,
                              external_data=False)
        else:
            torch.onnx.export(model, examples, path, dynamo=False, opset_version=args.opset, input_names=names,
                              output_names=outputs or None, dynamic_axes=axes or None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="MODULE:FACTORY, FILE.py:FACTORY or hf:FOLDER")
    parser.add_argument("--input", action="append", required=True, metavar="NAME=DTYPE[D,...]")
    parser.add_argument("--output", action="append", default=[], metavar="NAME", help="outputs to keep (hf:) or their names")
    parser.add_argument("--class", dest="auto_class", default="AutoModel", help="Auto class of transformers for hf:")
    parser.add_argument("--opset", type=int, default=17)
    parser.add_argument("--dynamo", action="store_true", help="the exporter on torch.export (needs onnxscript)")
    parser.add_argument("--onnx", help="keep the ONNX file here")
    parser.add_argument("-o", "--out", help="the .model file; without it only the ONNX file is written")
    parser.add_argument("--program", default="cyb-llm", help="the cyb-llm program")
    args = parser.parse_args()
    if not args.out and not args.onnx:
        parser.error("give -o, --onnx or both")
    with tempfile.TemporaryDirectory() as folder:
        path = args.onnx or str(pathlib.Path(folder) / "model.onnx")
        export(args, path)
        if not args.out:
            return 0
        return subprocess.run([args.program, "import", path, "-o", args.out], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
