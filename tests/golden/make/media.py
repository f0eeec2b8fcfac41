#!/usr/bin/env python3
"""Writes tests/golden/media: pictures and sounds, whole and hostile, and what Pillow reads from them (media.json).

    media.py        needs numpy, pillow and onnx (tools/requirements-onnx.txt)

media.json: `pictures` file -> width, height, channels, max, values as Pillow gives them; `resized` of rgb.png as Pillow resizes planes
of 32-bit floats (BILINEAR), in the sizes and boxes given; `sounds` file -> rate, channels, samples; `refused` file -> code.
"""
import io
import json
import pathlib
import struct
import wave
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper
from PIL import Image

OUT = pathlib.Path(__file__).resolve().parent.parent / "media"
rng = np.random.default_rng(3)
W, H = 13, 9


def smooth(channels):
    y, x = np.mgrid[0:H, 0:W]
    planes = [127 + 120 * np.sin(x / (2.0 + c) + c) * np.cos(y / 3.0 + c) for c in range(channels)]
    return np.clip(np.stack(planes, -1), 0, 255).round().astype(np.uint8)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, raw, interlace=0):
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")


def filtered(rows):
    return b"".join(b"\0" + row.tobytes() for row in rows)


def adam7(pixels):
    """The seven passes of an interlaced picture [h, w, c]."""
    raw = b""
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        part = pixels[y0::dy, x0::dx]
        if part.size:
            raw += filtered(np.ascontiguousarray(part))
    return raw


def jpeg(array, mode, **how):
    buffer = io.BytesIO()
    Image.fromarray(array, mode).save(buffer, "JPEG", **how)
    return buffer.getvalue()


def pictures():
    files, wide = {}, rng.integers(0, 65536, (H, W, 3)).astype(np.uint16)
    for name, channels in (("gray", 1), ("gray_alpha", 2), ("rgb", 3), ("rgba", 4)):
        files[f"{name}.png"] = png(W, H, 8, {1: 0, 2: 4, 3: 2, 4: 6}[channels], filtered(smooth(channels)))
    files["interlaced.png"] = png(W, H, 8, 2, adam7(smooth(3)), 1)
    files["rgb16.png"] = png(W, H, 16, 2, filtered(wide.astype(">u2")))
    bits = io.BytesIO()
    Image.fromarray(smooth(1)[..., 0] > 127).save(bits, "PNG")
    files["bits.png"] = bits.getvalue()
    palette = io.BytesIO()
    Image.fromarray(smooth(3)).quantize(16).save(palette, "PNG")
    files["palette.png"] = palette.getvalue()
    files["rgb.jpg"] = jpeg(smooth(3), "RGB", quality=90)
    files["gray.jpg"] = jpeg(smooth(1)[..., 0], "L", quality=90)
    files["progressive.jpg"] = jpeg(smooth(3), "RGB", quality=80, progressive=True)
    want = {}
    for name, data in files.items():
        (OUT / name).write_bytes(data)
        if name == "rgb16.png":
            values, top = wide, 65535  # Pillow gives 8 bits
        else:
            image = Image.open(io.BytesIO(data))
            image = image.convert("RGB") if image.mode == "P" else image.convert("L") if image.mode == "1" else image
            values, top = np.asarray(image), 255
        values = values.reshape(H, W, -1)
        want[name] = {"width": W, "height": H, "channels": values.shape[2], "max": top, "values": values.reshape(-1).tolist()}
    return want


def resized():
    planes = smooth(3).transpose(2, 0, 1).astype(np.float32)
    rows = []
    for width, height, crop in ((5, 4, False), (20, 30, False), (13, 9, False), (6, 6, True), (3, 9, True), (1, 1, False)):
        scale = min(W / width, H / height)
        box = ((W - width * scale) / 2, (H - height * scale) / 2, (W + width * scale) / 2, (H + height * scale) / 2) if crop else (0, 0, W, H)
        out = [np.asarray(Image.fromarray(p, "F").resize((width, height), Image.BILINEAR, box=box)) for p in planes]
        rows.append({"width": width, "height": height, "crop": crop, "values": np.stack(out).reshape(-1).astype(float).tolist()})
    return rows


def wav(tag, channels, rate, bits, data, form_extra=b"", size=None):
    form = struct.pack("<HHIIHH", tag, channels, rate, rate * channels * bits // 8, channels * bits // 8, bits) + form_extra
    body = b"WAVE" + b"fmt " + struct.pack("<I", len(form)) + form + b"LIST" + struct.pack("<I", 3) + b"odd\0"
    body += b"data" + struct.pack("<I", len(data) if size is None else size) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def sounds():
    n = 40
    tone = 0.9 * np.sin(np.arange(2 * n) / 5.0).reshape(n, 2)
    files, want = {}, {}
    p16, p8 = np.round(tone * 32767).astype("<i2"), np.round(tone[:, :1] * 127 + 128).astype("u1")
    p24 = np.round(tone[:, :1] * 8388607).astype("<i4")
    p32 = np.round(tone[:, :1] * 2147483647).astype("<i4")
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as out:
        out.setnchannels(2), out.setsampwidth(2), out.setframerate(44100), out.writeframes(p16.tobytes())
    files["stereo16.wav"] = (buffer.getvalue(), 44100, p16 / 32768)
    files["mono8.wav"] = (wav(1, 1, 8000, 8, p8.tobytes()), 8000, (p8 - 128.0) / 128)
    files["mono24.wav"] = (wav(1, 1, 16000, 24, p24.astype("<i4").view("u1").reshape(-1, 4)[:, :3].tobytes()), 16000, p24 / 8388608)
    files["mono32.wav"] = (wav(1, 1, 16000, 32, p32.tobytes()), 16000, (p32 / 2147483648))
    files["float32.wav"] = (wav(3, 1, 16000, 32, tone[:, :1].astype("<f4").tobytes()), 16000, tone[:, :1].astype("f4"))
    files["float64.wav"] = (wav(3, 2, 16000, 64, tone.astype("<f8").tobytes()), 16000, tone)
    guid = struct.pack("<HHI", 22, 16, 3) + struct.pack("<H", 1) + b"\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71"
    files["extensible16.wav"] = (wav(0xFFFE, 2, 48000, 16, p16.tobytes(), guid), 48000, p16 / 32768)
    for name, (data, rate, samples) in files.items():
        (OUT / name).write_bytes(data)
        want[name] = {"rate": rate, "channels": samples.shape[1], "samples": samples.astype(np.float32).reshape(-1).astype(float).tolist()}
    return want


def many_scans(data, times):
    """A progressive JPEG whose last scan comes many times more."""
    at = data.rindex(b"\xff\xda")
    return data[:at] + data[at:-2] * times + data[-2:]


def refused():
    whole_png, whole_jpeg = (OUT / "rgb.png").read_bytes(), (OUT / "rgb.jpg").read_bytes()
    sof = whole_jpeg.index(b"\xff\xc0") + 5
    damaged = bytearray(whole_png)
    damaged[whole_png.index(b"IDAT") + 20] ^= 0x55
    pcm = np.arange(64, dtype="<i2").tobytes()
    cmyk = io.BytesIO()
    Image.fromarray(smooth(4), "CMYK").save(cmyk, "JPEG")
    files = {
        "text.png": (b"no picture at all\n", "M01"),
        "magic_only.png": (whole_png[:8], "M02"),
        "cut.png": (whole_png[: len(whole_png) * 2 // 3], "M02"),
        "no_end.png": (whole_png[:-12], "M02"),
        "damaged.png": (bytes(damaged), "M02"),
        "short_rows.png": (png(W, H, 8, 2, filtered(smooth(3)[: H // 2])), "M02"),
        "zero.png": (png(0, H, 8, 2, b""), "M02"),
        "huge.png": (png(2000000000, 2000000000, 8, 2, b""), "M03"),
        "bomb.png": (png(60000, 60000, 1, 0, b"\0" * 100000), "M03"),
        "cut.jpg": (whole_jpeg[: len(whole_jpeg) - 40], "M02"),
        "head.jpg": (whole_jpeg[:40], "M02"),
        "magic_only.jpg": (whole_jpeg[:3], "M02"),
        "huge.jpg": (whole_jpeg[:sof] + struct.pack(">HH", 65500, 65500) + whole_jpeg[sof + 4 :], "M03"),
        "scans.jpg": (many_scans((OUT / "progressive.jpg").read_bytes(), 300), "M02"),
        "cmyk.jpg": (cmyk.getvalue(), "M04"),
        "not.wav": (b"RIFF\0\0\0\0AVI ", "M01"),
        "cut.wav": (wav(1, 1, 8000, 16, pcm)[:-20], "M02"),
        "endless.wav": (wav(1, 1, 8000, 16, pcm, size=0xFFFFFFFF), "M02"),
        "half_frame.wav": (wav(1, 2, 8000, 16, pcm[:-2]), "M02"),
        "no_samples.wav": (wav(1, 1, 8000, 16, b""), "M02"),
        "no_form.wav": (b"RIFF" + struct.pack("<I", 12) + b"WAVEdata" + struct.pack("<I", 0), "M02"),
        "short_form.wav": (b"RIFF" + struct.pack("<I", 18) + b"WAVEfmt " + struct.pack("<I", 6) + b"\1\0\1\0\0\0", "M02"),
        "no_channels.wav": (wav(1, 0, 8000, 16, pcm), "M02"),
        "alaw.wav": (wav(6, 1, 8000, 8, pcm), "M04"),
        "odd_bits.wav": (wav(1, 1, 8000, 12, pcm), "M04"),
        "nan.wav": (wav(3, 1, 8000, 32, np.array([0, np.nan], "<f4").tobytes()), "NonFinite"),
    }
    for name, (data, _) in files.items():
        (OUT / name).write_bytes(data)
    return {name: code for name, (_, code) in files.items()}


def model(name, kind, shape):
    """y = x + 1 (or x for bytes) for an input of that shape."""
    x, y = (helper.make_tensor_value_info(n, kind, shape) for n in "xy")
    one = helper.make_tensor("one", kind, [], [1])
    node = helper.make_node("Identity", ["x"], ["y"]) if kind == TensorProto.UINT8 else helper.make_node("Add", ["x", "one"], ["y"])
    graph = helper.make_graph([node], name, [x], [y], [] if kind == TensorProto.UINT8 else [one])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(proto, OUT / f"{name}.onnx")


def main():
    OUT.mkdir(exist_ok=True)
    report = {"pictures": pictures(), "resized": resized(), "sounds": sounds(), "refused": refused()}
    (OUT / "media.json").write_text(json.dumps(report, separators=(",", ":")) + "\n")
    model("takes_nchw", TensorProto.FLOAT, ["n", 3, "h", "w"])
    model("takes_bytes", TensorProto.UINT8, [1, "h", "w", 3])
    model("takes_fixed", TensorProto.FLOAT, [1, 3, 4, 5])
    model("takes_sound", TensorProto.FLOAT, ["n", "samples"])


if __name__ == "__main__":
    main()
