"""Log-probabilities of a GGUF model by transformers (f32 on dequantised weights) and by llama.cpp.

The weights are dequantised by the `gguf` package, q/k rows of `llama` files are put back in Hugging Face order, and
Gemma's norm gains, which GGUF stores as 1+g, lose their 1. Imports torch, transformers, gguf and llama_cpp only
inside the functions that need them, so that cached results can be read without them.
"""
import hashlib
import os

import numpy as np

from cyb_tools import ToolError, cache_dir, say

CHUNK = 128  # rows of logits that exist at a time


def need(module):
    import importlib
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ToolError(f"{error}. Install the oracles into a virtual environment: "
                        "pip install -r tools/requirements.txt") from None


class Gguf:
    """Metadata and dequantised tensors of one GGUF file."""

    def __init__(self, path):
        self.reader = need("gguf").GGUFReader(path)
        self.arch = self.key("general.architecture")
        self.tensors = {t.name: t for t in self.reader.tensors}

    def key(self, name, default=None):
        field = self.reader.fields.get(name.replace("{arch}", getattr(self, "arch", "")))
        return default if field is None else field.contents()

    def tensor(self, name):
        t = self.tensors[name]
        return np.array(need("gguf.quants").dequantize(t.data, t.tensor_type), np.float32)  # a copy: the file is mapped


def unpermute(w, heads):
    """Rows from adjacent-pair order back to half-split order: row h*D + r*D/2 + j was row h*D + 2j + r."""
    return w.reshape(heads, w.shape[0] // heads // 2, 2, *w.shape[1:]).swapaxes(1, 2).reshape(w.shape)


NAMES = {
    "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}
GEMMA = {"post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
         "post_ffw_norm": "post_feedforward_layernorm"}
TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def hf_name(name, arch):
    stem, kind = name.rsplit(".", 1)
    if stem in TOP:
        return f"{TOP[stem]}.{kind}"
    _, layer, part = stem.split(".", 2)
    inner = (GEMMA.get(part) if arch == "gemma3" else None) or NAMES.get(part)
    if not inner:
        raise ToolError(f"the oracle does not know the tensor {name} of a {arch} file")
    return f"model.layers.{layer}.{inner}.{kind}"


def config_of(g):
    T = need("transformers")
    heads = g.key("{arch}.attention.head_count")
    hidden = g.key("{arch}.embedding_length")
    common = dict(
        vocab_size=int(g.tensors["token_embd.weight"].shape[1]), hidden_size=hidden, num_attention_heads=heads,
        intermediate_size=g.key("{arch}.feed_forward_length"), num_hidden_layers=g.key("{arch}.block_count"),
        num_key_value_heads=g.key("{arch}.attention.head_count_kv", heads), max_position_embeddings=g.key("{arch}.context_length"),
        rms_norm_eps=g.key("{arch}.attention.layer_norm_rms_epsilon"), tie_word_embeddings="output.weight" not in g.tensors)
    theta = g.key("{arch}.rope.freq_base", 10000.0)
    rope = {"rope_type": "default", "rope_theta": theta}
    if g.key("{arch}.rope.scaling.type", "none") != "none" or "rope_freqs.weight" in g.tensors:
        raise ToolError("the oracle does not know scaled rope in GGUF files")
    head_dim = g.key("{arch}.attention.key_length", hidden // heads)
    if g.arch == "llama":
        return T.LlamaForCausalLM, T.LlamaConfig(**common, head_dim=head_dim, rope_parameters=rope)
    if g.arch == "qwen2":
        return T.Qwen2ForCausalLM, T.Qwen2Config(**common, rope_parameters=rope)
    if g.arch == "qwen3":
        return T.Qwen3ForCausalLM, T.Qwen3Config(**common, head_dim=head_dim, rope_parameters=rope)
    if g.arch == "gemma3":
        local = {"rope_type": "default", "rope_theta": 10000.0}  # not in the file: from the family
        return T.Gemma3ForCausalLM, T.Gemma3TextConfig(
            **common, head_dim=head_dim, query_pre_attn_scalar=head_dim, sliding_window=g.key("{arch}.attention.sliding_window"),
            rope_parameters={"full_attention": rope, "sliding_attention": local})
    raise ToolError(f"the oracle does not know the architecture {g.arch}")


def build(path):
    """A transformers model in f32 with eager attention, on the dequantised weights of the file."""
    torch = need("torch")
    torch.set_grad_enabled(False)
    g = Gguf(path)
    cls, config = config_of(g)
    config._attn_implementation = "eager"
    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    with torch.device("meta"):
        model = cls(config)
    state = {}
    for name in g.tensors:
        w = g.tensor(name)
        part = name.split(".")[2] if name.startswith("blk.") else name
        if g.arch == "llama" and part in heads:
            w = unpermute(w, heads[part])
        if g.arch == "gemma3" and "norm" in name:
            w = w - np.float32(1)
        state[hf_name(name, g.arch)] = torch.from_numpy(w)
    if config.tie_word_embeddings:
        state["lm_head.weight"] = state["model.embed_tokens.weight"]
    missing, unexpected = model.load_state_dict(state, strict=False, assign=True)
    if missing or unexpected:
        raise ToolError(f"weights do not fit: missing {list(missing)[:5]}, unexpected {list(unexpected)[:5]}")
    _rebuild_buffers(model, config)
    return model.eval()


def _rebuild_buffers(model, config):
    """Rotary tables and scales are no weights: made on the meta device, they are made again for real."""
    torch = need("torch")
    fresh = type(model.model.rotary_emb)(config)
    model.model.rotary_emb = fresh
    embed = model.model.embed_tokens
    if hasattr(embed, "embed_scale"):
        embed.embed_scale = torch.tensor(config.hidden_size**0.5)
    left = [n for n, t in [*model.named_buffers(), *model.named_parameters()] if t.is_meta]
    if left:
        raise ToolError(f"the oracle left tensors without values: {left}")


def log_softmax_at(logits, next_ids):
    """log p of next_ids[i] under row i, in f64; logits [n, V]."""
    x = np.asarray(logits, np.float64)
    top = x.max(axis=1)
    return x[np.arange(len(x)), next_ids] - top - np.log(np.exp(x - top[:, None]).sum(axis=1))


def chunked_logprobs(rows, ids):
    """f64 [T-1] from rows(begin, end) -> logits."""
    out = []
    for begin in range(0, len(ids) - 1, CHUNK):
        end = min(begin + CHUNK, len(ids) - 1)
        out.append(log_softmax_at(rows(begin, end), np.asarray(ids[begin + 1 : end + 1])))
    return np.concatenate(out)


def transformers_logits(model, ids):
    """rows(begin, end) over one forward of all ids."""
    torch = need("torch")
    hidden = model.model(input_ids=torch.tensor([ids]), use_cache=False).last_hidden_state[0]
    return lambda begin, end: model.lm_head(hidden[begin:end]).numpy()


def llama_cpp_tokenize(path, text, special=False):
    """Ids with BOS where the file says so."""
    llama_cpp = need("llama_cpp")
    llm = llama_cpp.Llama(path, vocab_only=True, verbose=False)
    g = Gguf(path)
    bos = bool(g.key("tokenizer.ggml.add_bos_token", False))
    ids = llm.tokenize(text.encode(), add_bos=False, special=special)
    return ([int(g.key("tokenizer.ggml.bos_token_id"))] if bos else []) + ids


def llama_cpp_logprobs(path, ids, threads):
    """f64 [T-1] by llama.cpp with its defaults: 8-bit activations, f16 KV; prompt in batches of 512."""
    llama_cpp = need("llama_cpp")
    llm = llama_cpp.Llama(path, n_ctx=len(ids) + 8, n_batch=512, n_ubatch=512, n_threads=threads, n_threads_batch=threads, verbose=False)
    vocab, out = llm.n_vocab(), []
    for begin in range(0, len(ids), 512):
        part = ids[begin : begin + 512]
        llm._batch.set_batch(batch=part, n_past=begin, logits_all=True)
        llm._ctx.decode(llm._batch)
        logits = np.ctypeslib.as_array(llm._ctx.get_logits(), shape=(len(part), vocab))
        following = ids[begin + 1 : begin + len(part) + 1]
        for k in range(0, len(following), CHUNK):
            out.append(log_softmax_at(logits[k : min(k + CHUNK, len(following))], np.asarray(following[k : k + CHUNK])))
    return np.concatenate(out)


def digest(path):
    h = hashlib.sha256()
    with open(path, "rb") as f:
        while block := f.read(1 << 20):
            h.update(block)
    return h.hexdigest()[:16]


def cached(kind, key, make, folder=None):
    """The array of that key, made once."""
    folder = folder or cache_dir("oracle")
    path = os.path.join(folder, f"{kind}-{key}.npy")
    if os.path.exists(path):
        return np.load(path)
    say(f"computing {kind} (kept in {path})")
    os.makedirs(folder, exist_ok=True)
    value = np.asarray(make())
    part = path[:-4] + f".{os.getpid()}.npy"
    np.save(part, value)
    os.replace(part, path)
    return value
