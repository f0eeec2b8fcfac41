#!/usr/bin/env python3
"""Write src/tensor/formats/iq_grids.inc: the code books of the GGUF types IQ1, IQ2 and IQ3.

The books are data of the format. Their values are read from the decoders of the `gguf` package (0.19.0) and packed:
one 16-bit number a row, the index of value j of the row in bits 2j..2j+1 (IQ1, IQ2: eight values of three) or
3j..3j+2 (IQ3: four values of eight).
"""
import argparse
import os
import sys

import numpy as np
from gguf import quants

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
OUT = os.path.join(ROOT, "src", "tensor", "formats", "iq_grids.inc")
BOOKS = [
    ("kGridIq1", quants.IQ1_S, 2),
    ("kGridIq2xxs", quants.IQ2_XXS, 2),
    ("kGridIq2xs", quants.IQ2_XS, 2),
    ("kGridIq2s", quants.IQ2_S, 2),
    ("kGridIq3xxs", quants.IQ3_XXS, 3),
    ("kGridIq3s", quants.IQ3_S, 3),
]


def packed(book, bits):
    """The book's rows as numbers, and the values that the indices stand for."""
    book.init_grid()
    rows = np.asarray(book.grid).reshape(book.grid_shape)
    values = list(book.grid_map)
    numbers = [sum(values.index(int(v)) << (bits * j) for j, v in enumerate(row)) for row in rows]
    return numbers, values


def main():
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    lines = ["// Code books of the IQ formats, written by tools/make_iq_grids.py: index of value j in bits B*j.. of a row."]
    for name, book, bits in BOOKS:
        numbers, values = packed(book, bits)
        lines.append(f"// B = {bits}; values {', '.join(str(v) for v in values)}")
        lines.append(f"constexpr std::uint16_t {name}[{len(numbers)}] = {{")
        for at in range(0, len(numbers), 16):
            lines.append("    " + ", ".join(str(n) for n in numbers[at : at + 16]) + ",")
        lines.append("};")
    with open(OUT, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
