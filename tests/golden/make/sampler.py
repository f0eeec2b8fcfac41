"""Goldens of the samplers: what llama.cpp's samplers and transformers' logits processors keep.

Writes tests/golden/sampler/cases.json: logits (multiples of 1/8, with ties), history, values, order of the
samplers, and the kept ids with their probabilities. A case where a threshold lies so near to a sum that rounding in
f32 could decide is drawn again.

    python tests/golden/make/sampler.py --vocab ggml-vocab-llama-bpe.gguf [--check]

--vocab: any vocab-only GGUF file with a GPT-2 byte-level vocabulary, whose ids 0..93 are the characters from '!'
on (DRY reads its breakers through it). Needs llama-cpp-python 0.3.36, transformers 5.24.0, torch.
"""
import argparse
import ctypes
import json
import pathlib
import random

import llama_cpp as L
import torch
import transformers as T

HERE = pathlib.Path(__file__).resolve().parent.parent / "sampler"
SIZES = [1, 2, 7, 48]


def logits_of(rng, n):
    kind = rng.randrange(4)
    if kind == 0:  # many ties
        return [float(rng.randrange(-3, 4)) for _ in range(n)]
    if kind == 1:  # one towers
        return [rng.randrange(-40, 40) / 8.0 + (30.0 if i == n // 2 else 0.0) for i in range(n)]
    if kind == 2:  # all equal
        return [1.5] * n
    return [rng.randrange(-64, 64) / 8.0 for _ in range(n)]


class Llama:
    """Applies llama.cpp samplers to a candidate array."""

    def __init__(self, vocab_path):
        L.llama_backend_init()
        params = L.llama_model_default_params()
        params.vocab_only = True
        self.model = L.llama_model_load_from_file(str(vocab_path).encode(), params)
        self.vocab = L.llama_model_get_vocab(self.model)

    def make(self, kind, c, n):
        if kind == "penalties":
            last = c.get("penalty_last_n", 0) or 4096
            return L.llama_sampler_init_penalties(n, last, c.get("repetition_penalty", 1.0), c.get("frequency_penalty", 0.0),
                                                  c.get("presence_penalty", 0.0))
        if kind == "dry":
            breakers = [b.encode() for b in c["dry_breaker_texts"]]
            array = (ctypes.c_char_p * max(1, len(breakers)))(*breakers)
            return L.llama_sampler_init_dry(self.vocab, c["dry_multiplier"], c["dry_base"],
                                            c["dry_allowed_length"], c.get("dry_last_n", 0) or 4096, array,
                                            len(breakers))
        if kind == "temperature":
            if c.get("temperature_range"):
                return L.llama_sampler_init_temp_ext(c["temperature"], c["temperature_range"], c["temperature_exponent"])
            return L.llama_sampler_init_temp(c["temperature"])
        if kind == "top_n_sigma":
            return L.llama_sampler_init_top_n_sigma(c["top_n_sigma"])
        if kind == "top_k":
            return L.llama_sampler_init_top_k(c["top_k"])
        if kind == "top_p":
            return L.llama_sampler_init_top_p(c["top_p"], 0)
        if kind == "min_p":
            return L.llama_sampler_init_min_p(c["min_p"], 0)
        if kind == "typical":
            return L.llama_sampler_init_typical(c["typical_p"], 0)
        if kind == "xtc":
            return L.llama_sampler_init_xtc(c["xtc_probability"], c["xtc_threshold"], 0, 1)
        if kind == "mirostat":
            return L.llama_sampler_init_mirostat_v2(1, c["mirostat_tau"], c["mirostat_eta"])
        raise ValueError(kind)

    def run(self, c, logits, history):
        n = len(logits)
        data = (L.llama_token_data * n)()
        bias = {int(i): (float("-inf") if b is None else b) for i, b in c.get("logit_bias", [])}
        kept = [i for i in range(n) if bias.get(i, 0.0) != float("-inf")]
        for place, i in enumerate(kept):
            data[place] = L.llama_token_data(i, logits[i] + bias.get(i, 0.0), 0.0)
        array = L.llama_token_data_array(ctypes.cast(data, ctypes.POINTER(L.llama_token_data)), len(kept), -1, False)
        for kind in c["order"]:
            sampler = self.make(kind, c, n)
            for token in history:
                L.llama_sampler_accept(sampler, token)
            L.llama_sampler_apply(sampler, ctypes.byref(array))
            L.llama_sampler_free(sampler)
        found = [(array.data[i].id, array.data[i].logit) for i in range(array.size)]
        found = [(i, l) for i, l in found if l != float("-inf")]
        return probabilities(found)


def probabilities(found):
    values = torch.tensor([l for _, l in found], dtype=torch.float64)
    p = torch.softmax(values, 0).tolist()
    out = sorted(zip([i for i, _ in found], p), key=lambda x: (-x[1], x[0]))
    return [[i, p] for i, p in out]


def hugging_face(c, logits, history):
    scores = torch.tensor([logits], dtype=torch.float32)
    ids = torch.tensor([history or [0]], dtype=torch.long)
    make = {
        "penalties": lambda: T.RepetitionPenaltyLogitsProcessor(c["repetition_penalty"]),
        "temperature": lambda: T.TemperatureLogitsWarper(c["temperature"]),
        "top_k": lambda: T.TopKLogitsWarper(c["top_k"]),
        "top_p": lambda: T.TopPLogitsWarper(c["top_p"]),
        "min_p": lambda: T.MinPLogitsWarper(c["min_p"]),
        "typical": lambda: T.TypicalLogitsWarper(mass=c["typical_p"]),
    }
    for kind in c["order"]:
        scores = make[kind]()(ids, scores)
    row = scores[0].tolist()
    return probabilities([(i, l) for i, l in enumerate(row) if l != float("-inf")])


def values(rng, kind):
    pick = rng.choice
    if kind == "penalties":
        return {"repetition_penalty": pick([1.0, 1.3, 0.7]), "frequency_penalty": pick([0.0, 0.25, -0.5]),
                "presence_penalty": pick([0.0, 0.75]), "penalty_last_n": pick([0, 1, 5])}
    if kind == "dry":
        return {"dry_multiplier": pick([0.75, 2.0]), "dry_base": pick([1.75, 1.0, 3.0]),
                "dry_allowed_length": pick([1, 2, 3]), "dry_last_n": pick([0, 0, 12]),
                "dry_breaker_texts": pick([[], ["\""], ["$", "%"]])}
    if kind == "temperature":
        return {"temperature": pick([0.25, 0.8, 1.0, 1.7, 20.0]), "temperature_range": pick([0.0, 0.0, 0.2, 1.5]),
                "temperature_exponent": pick([1.0, 2.0, 0.5])}
    return {"top_n_sigma": {"top_n_sigma": pick([0.5, 1.0, 2.0])}, "top_k": {"top_k": pick([1, 3, 10, 1000])},
            "top_p": {"top_p": pick([0.001, 0.37, 0.9, 0.95])}, "min_p": {"min_p": pick([0.011, 0.23, 0.9])},
            "typical": {"typical_p": pick([0.011, 0.43, 0.91])},
            "xtc": {"xtc_probability": 1.0, "xtc_threshold": pick([0.0, 0.013, 0.12, 0.5])},
            "mirostat": {"mirostat_tau": pick([0.55, 2.0, 5.0]), "mirostat_eta": 0.1}}[kind]


NUDGED = ["top_p", "min_p", "typical_p", "top_n_sigma", "xtc_threshold", "mirostat_tau"]


def near_a_threshold(oracle, c, logits, history, kept):
    for key in NUDGED:
        if key not in c:
            continue
        for factor in (1 - 1e-4, 1 + 1e-4):
            other = oracle({**c, key: min(c[key] * factor, 1.0) if key.endswith("_p") else c[key] * factor}, logits, history)
            if [i for i, _ in other] != [i for i, _ in kept]:
                return True
    return False


def history_of(rng, n):
    base = [rng.randrange(min(n, 6)) for _ in range(rng.randrange(1, 6))]
    out = []
    for _ in range(rng.randrange(0, 9)):
        out += base if rng.random() < 0.6 else [rng.randrange(n) for _ in range(3)]
    return out


def make_cases(llama):
    rng = random.Random(20)
    alone = ["penalties", "dry", "temperature", "top_n_sigma", "top_k", "top_p", "min_p", "typical", "xtc", "mirostat"]
    cases = []

    def add(source, oracle, order, want):
        made = 0
        while made < want:
            c = {"order": order()}
            for kind in c["order"]:
                c.update(values(rng, kind))
            if source == "transformers":
                c.update({"frequency_penalty": 0.0, "presence_penalty": 0.0, "penalty_last_n": 0, "temperature_range": 0.0})
            n = rng.choice(SIZES)
            if rng.random() < 0.2 and source == "llama.cpp":
                spared = rng.randrange(n)
                c["logit_bias"] = [[i, None] for i in range(n) if i != spared and rng.random() < 0.9] + [[spared, 2.5]]
            logits, history = logits_of(rng, n), history_of(rng, n)
            kept = oracle(c, logits, history)
            # transformers keeps all tokens that tie with the last one; the rule here is the lower id.
            if source == "transformers" and len(set(logits)) != len(logits):
                continue
            if near_a_threshold(oracle, c, logits, history, kept) or ties_cut(kept, c, logits, oracle, history):
                continue
            cases.append({"source": source, "config": c, "logits": logits, "history": history, "kept": kept})
            made += 1

    for kind in alone:
        add("llama.cpp", llama.run, lambda k=kind: [k], 40)
    def shuffled():
        order = rng.sample(alone[:-1], rng.randrange(2, 7))
        if "top_n_sigma" in order:  # llama.cpp leaves what it cuts in the list, where later samplers still count it
            order.remove("top_n_sigma")
            order.append("top_n_sigma")
        return order + (["mirostat"] if rng.random() < 0.2 else [])
    add("llama.cpp", llama.run, shuffled, 200)
    hf = ["penalties", "temperature", "top_k", "top_p", "min_p", "typical"]
    add("transformers", hugging_face, lambda: [k for k in hf if rng.random() < 0.6] or ["top_p"], 120)
    return cases


def ties_cut(kept, c, logits, oracle, history):
    """llama.cpp's sorts leave the order of equal logits open: where that decides who stays, there is no golden."""
    ids = sorted(i for i, _ in kept)
    noise = random.Random(len(logits))
    for _ in range(6):
        nudged = [l + 1e-6 * noise.uniform(-20, 20) for l in logits]
        if sorted(i for i, _ in oracle(c, nudged, history)) != ids:
            return True
    return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    cases = make_cases(Llama(args.vocab))
    for case in cases:
        case["kept"] = [[i, float(f"{p:.7g}")] for i, p in case["kept"]]
    text = "[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n"
    path = HERE / "cases.json"
    if args.check:
        raise SystemExit(0 if path.read_text() == text else "cases.json differs")
    HERE.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    print(len(cases), "cases,", len(text), "bytes")


if __name__ == "__main__":
    main()
