#!/usr/bin/env python3
"""Write tests/golden/ops/torch.safetensors: ops of the public list that no ONNX case covers, as torch 2.15.0, transformers 5.24.0
and numpy 2.4.6 compute them in f64, rounded once. Seeded: two runs give equal bytes."""
import os
import sys

sys.path = [p for p in sys.path if os.path.abspath(p or ".") != os.path.dirname(os.path.abspath(__file__))]  # our tokenizers.py

import numpy as np
import torch
import torch.nn.functional as F
from transformers.models.t5.modeling_t5 import T5Attention

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from ops_file import File


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def wide(*arrays):
    return [torch.from_numpy(np.asarray(a, np.float64)) for a in arrays]


def convolutions(f, rng):
    x, w, b = normal(rng, 2, 4, 9), normal(rng, 6, 2, 3), normal(rng, 6)
    f.case("conv1d", "Conv1d", {"kernel": 3, "stride": 2, "padding": 1, "dilation": 2, "groups": 2}, [x, w, b],
           [F.conv1d(*wide(x, w, b), stride=2, padding=1, dilation=2, groups=2)])
    x, w, b = normal(rng, 1, 3, 6, 7), normal(rng, 4, 3, 3, 2), normal(rng, 4)
    f.case("conv2d", "Conv2d", {"kernel_h": 3, "kernel_w": 2, "stride_h": 1, "stride_w": 2, "padding_h": 1, "padding_w": 0,
                                "dilation_h": 2, "dilation_w": 1, "groups": 1}, [x, w, b],
           [F.conv2d(*wide(x, w, b), stride=(1, 2), padding=(1, 0), dilation=(2, 1))])
    x, w = normal(rng, 1, 2, 3, 4, 5), normal(rng, 3, 2, 2, 2, 3)
    f.case("conv3d", "Conv3d", {"kernel_f": 2, "kernel_h": 2, "kernel_w": 3, "stride_f": 1, "stride_h": 2, "stride_w": 1, "padding_f": 0,
                                "padding_h": 1, "padding_w": 1, "dilation_f": 1, "dilation_h": 1, "dilation_w": 1, "groups": 1},
           [x, w], [F.conv3d(*wide(x, w), stride=(1, 2, 1), padding=(0, 1, 1))])
    x, w, b = normal(rng, 1, 4, 3, 4), normal(rng, 4, 2, 3, 2), normal(rng, 4)
    f.case("transpose2d", "ConvTranspose2d", {"kernel_h": 3, "kernel_w": 2, "stride_h": 2, "stride_w": 3, "padding_h": 1, "padding_w": 0,
                                              "output_padding_h": 1, "output_padding_w": 0, "dilation_h": 1, "dilation_w": 2, "groups": 2},
           [x, w, b], [F.conv_transpose2d(*wide(x, w, b), stride=(2, 3), padding=(1, 0), output_padding=(1, 0), dilation=(1, 2), groups=2)])
    x, w = normal(rng, 2, 3, 5), normal(rng, 3, 2, 4)
    f.case("transpose1d", "ConvTranspose1d", {"kernel": 4, "stride": 2, "padding": 1, "output_padding": 1, "dilation": 1, "groups": 1},
           [x, w], [F.conv_transpose1d(*wide(x, w), stride=2, padding=1, output_padding=1)])
    x, w = normal(rng, 2, 3, 6), normal(rng, 4, 3, 3)
    for pad, mode in ((0, "constant"), (1, "replicate")):
        f.case(f"causal_{mode}", "CausalConv1d", {"kernel": 3, "dilation": 2, "groups": 1, "pad": pad}, [x, w],
               [F.conv1d(F.pad(wide(x)[0], (4, 0), mode=mode), wide(w)[0], dilation=2)])
    x, w, b = normal(rng, 1, 3, 5, 6), normal(rng, 3, 1, 3, 3), normal(rng, 3)
    f.case("depthwise", "DepthwiseConv", {"kernel": 3, "stride": 2, "padding": 1, "dilation": 1}, [x, w, b],
           [F.conv2d(*wide(x, w, b), stride=2, padding=1, groups=3)])
    x, w, b = normal(rng, 2, 3, 4, 6), normal(rng, 5, 3, 2, 2), normal(rng, 5)
    f.case("patches", "PatchEmbed", {"p": 2}, [x, w, b], [F.conv2d(*wide(x, w, b), stride=2).flatten(2).transpose(1, 2)])
    x = normal(rng, 1, 2, 6, 7)
    common = {"kernel_h": 3, "kernel_w": 2, "stride_h": 2, "stride_w": 2, "padding_h": 1, "padding_w": 1, "ceil": 0}
    kernel, stride, pads = (3, 2), (2, 2), (1, 1)
    f.case("pool_max", "Pool", {"mode": 0, **common, "count_pad": 0}, [x], [F.max_pool2d(wide(x)[0], kernel, stride, pads)])
    for count in (0, 1):
        f.case(f"pool_avg_{count}", "Pool", {"mode": 1, **common, "count_pad": count}, [x],
               [F.avg_pool2d(wide(x)[0], kernel, stride, pads, count_include_pad=bool(count))])
    f.case("pool_ceil", "Pool", {"mode": 1, **common, "ceil": 1, "count_pad": 0}, [x],
           [F.avg_pool2d(wide(x)[0], kernel, stride, pads, ceil_mode=True, count_include_pad=False)])


def images(f, rng):
    x = normal(rng, 1, 2, 4, 5)
    for mode, name in ((0, "nearest"), (1, "bilinear"), (2, "area")):
        f.case(f"interpolate_{name}", "Interpolate", {"mode": mode, "scale": 0.0, "align_corners": 0, "out_h": 7, "out_w": 3}, [x],
               [F.interpolate(wide(x)[0], size=(7, 3), mode=name)])
    f.case("interpolate_corners", "Interpolate", {"mode": 1, "scale": 2.0, "align_corners": 1, "out_h": 0, "out_w": 0}, [x],
           [F.interpolate(wide(x)[0], scale_factor=2.0, mode="bilinear", align_corners=True)])
    x = normal(rng, 2, 18, 2, 3)
    f.case("shuffle", "PixelShuffle", {"r": 3}, [x], [F.pixel_shuffle(torch.from_numpy(x), 3)])
    x = normal(rng, 2, 3, 4, 6)
    f.case("unshuffle", "PixelUnshuffle", {"r": 2}, [x], [F.pixel_unshuffle(torch.from_numpy(x), 2)])
    x = normal(rng, 2, 6, 12)
    picture = x.reshape(2, 2, 3, 2, 2, 3)
    f.case("unpatchify", "Unpatchify", {"p": 2, "channels": 3, "grid_h": 2, "grid_w": 3, "order": 0}, [x],
           [np.einsum("nhwpqc->nchpwq", picture).reshape(2, 3, 4, 6)])
    picture = x.reshape(2, 2, 3, 3, 2, 2)
    f.case("unpatchify_channels", "Unpatchify", {"p": 2, "channels": 3, "grid_h": 2, "grid_w": 3, "order": 1}, [x],
           [np.einsum("nhwcpq->nchpwq", picture).reshape(2, 3, 4, 6)])


def elementwise(f, rng):
    x = np.concatenate([normal(rng, 40) * 3, np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], np.float32)])
    w = wide(x)[0]
    f.case("nan_to_num", "NanToNum", {"nan": 0.5, "posinf": 9.0, "neginf": -9.0}, [x], [torch.nan_to_num(w, 0.5, 9.0, -9.0)])
    f.case("clamp", "Clamp", {"has_min": 1, "min": -1.0, "has_max": 1, "max": 0.5}, [x], [torch.clamp(w, -1.0, 0.5)])
    x = normal(rng, 3, 10)
    a, b = wide(x)[0].chunk(2, -1)
    f.case("glu", "Glu", {}, [x], [F.glu(wide(x)[0])])
    f.case("geglu_halves", "GeGlu", {"mode": 0}, [x], [a * F.gelu(b)])
    wg, wu, wd = normal(rng, 6, 10), normal(rng, 6, 10), normal(rng, 4, 6)
    g, u, d = wide(wg, wu, wd)
    f.case("geglu_weights", "GeGlu", {"mode": 1}, [x, wg, wu, wd], [(F.gelu(wide(x)[0] @ g.T, approximate="tanh") * (wide(x)[0] @ u.T)) @ d.T])
    x = np.array([-200, -40, -13, -8, -6, -5, -4, -3, -2.5, -2, -1, 1e-30, 3, 9, 200], np.float32)
    for mode, kind in ((0, "none"), (1, "tanh")):
        f.case(f"gelu_tails_{kind}", "Gelu", {"mode": mode}, [x], [F.gelu(wide(x)[0], approximate=kind)])
    f.case("rsqrt", "Rsqrt", {}, [np.abs(x) + 1e-20], [torch.rsqrt(wide(np.abs(x) + np.float32(1e-20))[0])])
    x = normal(rng, 2, 6, 3, 2)
    gain, bias = normal(rng, 6), normal(rng, 6)
    f.case("group_norm", "GroupNorm", {"num_groups": 3, "eps": 1e-5}, [x, gain, bias], [F.group_norm(wide(x)[0], 3, *wide(gain, bias), float(np.float32(1e-5)))])
    x, scale, shift = normal(rng, 2, 3, 8), normal(rng, 2, 1, 8), normal(rng, 2, 1, 8)
    s, t = wide(scale, shift)
    f.case("ada_ln", "AdaLN", {"eps": 1e-6}, [x, scale, shift], [F.layer_norm(wide(x)[0], (8,), eps=float(np.float32(1e-6))) * (1 + s) + t])


def layout(f, rng):
    x = normal(rng, 3, 10)
    f.case("chunk", "Chunk", {"axis": 1, "chunks": 4}, [x], [c.contiguous() for c in torch.from_numpy(x).chunk(4, 1)])
    f.case("slice", "Slice", {"axis": 1, "start": 1, "end": -2, "step": 3}, [x], [np.ascontiguousarray(x[:, 1:-2:3])])
    f.case("pad_reflect", "Pad", {"pads": [0, 0, 2, 3], "mode": 1, "value": 0.0}, [x], [np.pad(x, ((0, 0), (2, 3)), "reflect")])
    f.case("expand", "Expand", {"shape": [2, -1, 10]}, [x[:1]], [np.broadcast_to(x[:1], (2, 1, 10)).copy()])
    values, index = torch.topk(torch.from_numpy(x), 3, 1)
    f.case("top_k", "TopK", {"k": 3, "axis": 1}, [x], [values, index.to(torch.int32)])
    f.case("cum_sum", "CumSum", {"axis": 1, "exclusive": 0}, [x], [torch.cumsum(wide(x)[0], 1)])
    for name, function in (("Sum", torch.sum), ("Mean", torch.mean), ("Max", torch.amax), ("Min", torch.amin)):
        f.case(f"reduce_{name}", f"Reduce{name}", {"axes": [1], "keep": 1}, [x], [function(wide(x)[0], dim=1, keepdim=True)])
    a, b = normal(rng, 2, 3), normal(rng, 4, 2)
    f.case("kron", "Kron", {}, [a, b], [np.kron(a, b)])
    m = normal(rng, 5, 5) + 5 * np.eye(5, dtype=np.float32)
    f.case("inverse", "MatrixInverse", {}, [m], [np.linalg.inv(m.astype(np.float64))])
    y, x, down, up = normal(rng, 3, 5), normal(rng, 3, 7), normal(rng, 2, 7), normal(rng, 5, 2)
    wy, wx, wd, wu = wide(y, x, down, up)
    f.case("lora", "LoraApply", {"rank": 2, "alpha": 8.0}, [y, x, down, up], [wy + 4.0 * (wx @ wd.T) @ wu.T])
    x, w, idx = normal(rng, 3, 8), normal(rng, 4, 5, 8), np.array([[0, 3], [1, 1], [2, 0]], np.int32)
    f.case("routed", "RoutedMatmul", {}, [x, w, idx], [np.einsum("nk,njmk->njm", x.astype(np.float64), w[idx].astype(np.float64))])
    table, pos = normal(rng, 7, 4), np.array([[0, 2], [4, 1]], np.int32)
    f.case("pos_embed", "PosEmbed", {"offset": 2}, [pos, table], [table[pos + 2]])


def attention(f, rng):
    q, k, v = normal(rng, 2, 4, 3, 8), normal(rng, 2, 2, 5, 8), normal(rng, 2, 2, 5, 6)
    f.case("cross", "SdpaCross", {"num_heads": 4, "head_dim": 8, "scale": 0.0}, [q, k, v], [F.scaled_dot_product_attention(*wide(q, k, v), enable_gqa=True)])
    q, k, v, bias = (normal(rng, 1, 2, 6, 4) for _ in range(3)), None, None, normal(rng, 2, 3, 3)
    q, k, v = q
    blocks = [wide(a)[0].reshape(1, 2, 2, 3, 4) for a in (q, k, v)]
    y = F.scaled_dot_product_attention(*blocks, attn_mask=wide(bias)[0][None, :, None])
    f.case("windows", "SdpaWindow", {"num_heads": 2, "head_dim": 4, "window_size": 3, "scale": 0.0}, [q, k, v, bias], [y.reshape(1, 2, 6, 4)])
    for both in (0, 1):
        table, a, b = normal(rng, 32, 3), np.array([0, 5, 300], np.int32), np.array([0, 1, 7, 20, 100, 127, 128, 300], np.int32)
        distance = torch.from_numpy(b[None, :].astype(np.int64) - a[:, None])
        bucket = T5Attention._relative_position_bucket(distance, bidirectional=bool(both), num_buckets=32, max_distance=128)
        f.case(f"t5_{both}", "RelativePosEmbedding", {"num_buckets": 32, "max_distance": 128, "bidirectional": both}, [table, a, b],
               [np.ascontiguousarray(table[bucket.numpy()].transpose(2, 0, 1)[None])])
    t = np.array([0.0, 1.0, 17.5, 999.0], np.float32)
    w = np.exp(-np.arange(4) * np.log(10000.0) / 4)
    angle = t.astype(np.float64)[:, None] * w
    sin, cos = np.sin(angle), np.cos(angle)
    for kind, y in ((0, np.stack([sin, cos], -1).reshape(4, 8)), (1, np.concatenate([sin, cos], 1)), (2, np.concatenate([cos, sin], 1))):
        f.case(f"sinusoidal_{kind}", "SinusoidalEmbed", {"dim": 8, "max_period": 10000.0, "layout": kind, "shift": 0.0}, [t], [y])


def recurrences(f, rng):
    lstm = torch.nn.LSTM(5, 3, bidirectional=True, dtype=torch.float64)
    x, h0, c0 = normal(rng, 4, 2, 5), normal(rng, 2, 2, 3), normal(rng, 2, 2, 3)
    order = [0, 3, 1, 2]  # torch: i f g o; ours: i o f c

    def parameter(name):
        both = []
        for suffix in ("", "_reverse"):
            p = getattr(lstm, name + suffix)
            p.data = torch.from_numpy(normal(rng, *p.shape).astype(np.float64))
            both.append(p.detach().numpy().reshape(4, 3, -1)[order].reshape(12, -1).astype(np.float32))
        return np.stack(both)

    w, r, bi, bh = (parameter(n) for n in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"))
    y, (h, c) = lstm(wide(x)[0], tuple(wide(h0, c0)))
    b = np.concatenate([bi[..., 0], bh[..., 0]], 1)
    f.case("lstm", "Lstm", {"hidden": 3, "bidirectional": 1}, [x, w, r, b, h0, c0], [y.reshape(4, 2, 2, 3).transpose(1, 2).contiguous(), h, c])
    x, dt, a, bm, cm, d = (normal(rng, 2, 5, 3), np.abs(normal(rng, 2, 5, 3)), -np.abs(normal(rng, 3, 4)), normal(rng, 2, 5, 4), normal(rng, 2, 5, 4), normal(rng, 3))
    s, ys = np.zeros((2, 3, 4)), []
    for t in range(5):
        s = np.exp(dt[:, t, :, None].astype(np.float64) * a) * s + (dt[:, t] * x[:, t]).astype(np.float64)[..., None] * bm[:, t, None]
        ys.append(np.einsum("bcn,bn->bc", s, cm[:, t]) + d * x[:, t])
    f.case("scan", "Scan", {"kind": 0, "layer": 0}, [x, dt, a, bm, cm, d], [np.stack(ys, 1)])
    q, k, v, g, beta = normal(rng, 1, 2, 4, 3), normal(rng, 1, 2, 4, 3), normal(rng, 1, 2, 4, 5), -np.abs(normal(rng, 1, 2, 4)), np.abs(normal(rng, 1, 2, 4))
    s, ys = np.zeros((1, 2, 3, 5)), []
    for t in range(4):
        s = np.exp(g[:, :, t, None, None].astype(np.float64)) * s
        delta = beta[:, :, t, None] * (v[:, :, t] - np.einsum("bhk,bhkv->bhv", k[:, :, t].astype(np.float64), s))
        s = s + k[:, :, t, :, None] * delta[:, :, None]
        ys.append(np.einsum("bhk,bhkv->bhv", q[:, :, t].astype(np.float64), s))
    f.case("gated_delta", "GatedDelta", {"layer": 0}, [q, k, v, g, beta], [np.stack(ys, 2)])
    x, m, logs = normal(rng, 1, 6, 4), normal(rng, 1, 3, 4), normal(rng, 1, 3, 4)
    first, second = x[:, :3], x[:, 3:].astype(np.float64) * np.exp(logs.astype(np.float64)) + m
    y = np.concatenate([first, second], 1)
    f.case("flow", "FlowStep", {"inverse": 0, "flip": 1}, [x, m, logs], [np.ascontiguousarray(y[:, ::-1])])
    f.case("flow_back", "FlowStep", {"inverse": 1, "flip": 1}, [np.ascontiguousarray(y[:, ::-1]).astype(np.float32), m, logs], [x])
    h, c = normal(rng, 2, 5), normal(rng, 2, 5)
    wh, wc = wide(h, c)
    f.case("inner", "ShiftedInner", {"shifts": [1, 3]}, [h, c], [torch.cat([F.silu(wh * wc.roll(-s, -1)) for s in (1, 3)], -1)])
    f.case("wedge", "ShiftedWedge", {"shifts": [2]}, [h, c], [wh * wc.roll(-2, -1) - wh.roll(-2, -1) * wc])


def schedules(f, rng):
    del rng
    n, steps = 100, 5
    beta0, beta1 = float(np.float32(0.00085)), float(np.float32(0.012))
    beta = np.linspace(beta0 ** 0.5, beta1 ** 0.5, n) ** 2
    product = np.cumprod(1 - beta)
    t = np.linspace(n - 1, 0, steps)
    sigma = np.interp(t, np.arange(n), ((1 - product) / product) ** 0.5)
    f.case("scaled_linear", "NoiseSchedule", {"kind": 1, "train": n, "steps": steps, "beta0": 0.00085, "beta1": 0.012, "shift": 1.0}, [], [t, np.append(sigma, 0.0)])
    u = 1 - np.arange(steps) / steps
    s = 3 * u / (1 + 2 * u)
    f.case("flow_shift", "NoiseSchedule", {"kind": 3, "train": 1000, "steps": steps, "beta0": 0.0, "beta1": 0.0, "shift": 3.0}, [], [s * 1000, np.append(s, 0.0)])


def main():
    f = File("torch")
    for k, make in enumerate([convolutions, images, elementwise, layout, attention, recurrences, schedules]):
        make(f, np.random.default_rng(2000 + k))
    f.write()
    print(len(f.cases))


if __name__ == "__main__":
    main()
