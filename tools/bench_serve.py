#!/usr/bin/env python3
"""Load on cyb-llm serve and on llama.cpp's llama-server in alternation: the same model, threads, prompts and clients.

Each client asks one chat request after the other, each over a connection of its own (llama-server closes it after a stream): a system text that all share (some 500
tokens), a question of its own, a streamed answer of a fixed number of tokens (greedy, no early end). Printed per number of
clients: tokens of answers a second of all clients, time to the first token and between tokens (p50, p95, p99), peak
resident memory of the server. A ratio above 1 (for times: below 1) is in our favour.

llama.cpp: llama-server from tools/build_peers.py, $LLAMA_SERVER or PATH. --idle N also opens N streams of cyb-llm that wait
in the queue and prints what each costs in resident memory.
"""
import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

from cyb_tools import ToolError, cache_dir, find_model, find_program, machine, main_guard, say

SYSTEM = " ".join(
    f"Rule {i}: when a visitor asks about item {i} of the catalogue, answer in plain words, name the shelf, and never promise a date."
    for i in range(1, 17))
TOPICS = ["clocks", "tea", "rivers", "paper", "owls", "bridges", "salt", "maps", "violins", "wind", "bread", "glass", "tides", "ink",
          "moss", "lamps"]


def body(client, turn, args):
    topic = TOPICS[(client * 7 + turn) % len(TOPICS)]
    return json.dumps({
        "messages": [{"role": "system", "content": SYSTEM},
                     {"role": "user", "content": f"Visitor {client}, question {turn}: tell me about {topic} and shelf {client + turn}."}],
        "stream": True, "temperature": 0, "max_tokens": args.tokens, "ignore_eos": True,
    }).encode()  # fmt: skip


async def read_head(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    return int(head.split(" ", 2)[1]), head.lower()


async def chunks(reader, head):
    """Pieces of a chunked body."""
    if "transfer-encoding: chunked" not in head:
        raise ToolError("the answer is no stream: " + head.splitlines()[0])
    while True:
        size = int((await reader.readline()).split(b";")[0], 16)
        data = await reader.readexactly(size + 2)
        if size == 0:
            return
        yield data[:-2]


async def ask(reader, writer, port, payload):
    """Times of the events that carry text."""
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                 b"Content-Length: %d\r\n\r\n" % (port, len(payload)) + payload)
    began, times, rest = time.perf_counter(), [], b""
    status, head = await read_head(reader)
    if status != 200:
        raise ToolError(f"status {status}: {await reader.read(2000)!r}")
    async for piece in chunks(reader, head):
        now = time.perf_counter()
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {") and b'"content":"' in line and b'"content":""' not in line:
                times.append(now - began)
            elif line.startswith((b"data: {\"error", b"error:")):
                raise ToolError(line.decode())
    return times


async def client(number, port, args, out):
    for turn in range(args.turns):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        out.append(await ask(reader, writer, port, body(number, turn, args)))
        writer.close()


async def load(port, n_clients, args):
    out = []
    began = time.perf_counter()
    await asyncio.gather(*(client(i, port, args, out) for i in range(n_clients)))
    return out, time.perf_counter() - began


def quantiles(values):
    values = sorted(values)
    return [values[min(len(values) - 1, int(len(values) * q))] * 1e3 for q in (0.5, 0.95, 0.99)]


class Server:
    def __init__(self, name, command, port, ready):
        self.name, self.port = name, port
        self.errors = tempfile.TemporaryFile()
        self.child = subprocess.Popen(command, stdout=self.errors, stderr=self.errors, stdin=subprocess.DEVNULL)
        for _ in range(600):
            if self.child.poll() is not None:
                break
            try:
                if self.get(ready) == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        self.stop()
        self.errors.seek(0)
        raise ToolError(f"{' '.join(command)}: not ready. {self.errors.read().decode('utf-8', 'replace')[-1500:]}")

    def get(self, path):
        import http.client
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        connection.request("GET", path)
        status = connection.getresponse().status
        connection.close()
        return status

    def memory(self, key="VmHWM"):
        with open(f"/proc/{self.child.pid}/status", encoding="ascii") as f:
            return int(re.search(key + r":\s+(\d+) kB", f.read())[1]) * 1024

    def stop(self):
        self.child.send_signal(signal.SIGTERM)
        try:
            self.child.wait(20)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()


def start(which, n_clients, args):
    slots = min(n_clients, args.slots)
    ctx = args.ctx
    port = args.port + (which == "llama.cpp")
    if which == "cyb-llm":
        command = [args.program, "-q", "serve", args.model, "--port", str(port), "--slots", str(slots), "--ctx", str(ctx),
                   "--threads", str(args.threads)]
        return Server(which, command, port, "/ready")
    command = [args.llama_server, "-m", args.model, "--port", str(port), "-np", str(slots), "-c", str(ctx * slots), "-t",
               str(args.threads), "-tb", str(args.threads), "--no-warmup", "--no-webui", "--jinja"]
    return Server(which, command, port, "/health")


def measure(which, n_clients, args):
    server = start(which, n_clients, args)
    try:
        asyncio.run(load(server.port, 1, argparse.Namespace(**{**vars(args), "turns": 1})))  # the system text is known, pages are warm
        answers, seconds = asyncio.run(load(server.port, n_clients, args))
        memory = server.memory()
    finally:
        server.stop()
    # Events carry whole UTF-8: tokens are counted by what was asked for, not by events.
    first = [times[0] for times in answers]
    gaps = [b - a for times in answers for a, b in zip(times, times[1:])]
    return {"tps": len(answers) * args.tokens / seconds, "first": quantiles(first), "gap": quantiles(gaps), "memory": memory}


def idle(args):
    """Streams that wait: one slot, long answers in front."""
    async def hold(port, n):
        streams = []
        for i in range(n):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            payload = body(i, 0, args)
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                         b"Content-Length: %d\r\n\r\n" % (port, len(payload)) + payload)
            streams.append(writer)
        await asyncio.sleep(3)
        return streams

    async def run():
        command = [args.program, "-q", "serve", args.model, "--port", str(args.port), "--slots", "1", "--max-queue", str(args.idle + 8),
                   "--ctx", str(args.ctx), "--threads", str(args.threads)]
        server = Server("cyb-llm", command, args.port, "/ready")
        try:
            long = argparse.Namespace(**{**vars(args), "tokens": args.ctx - 700})
            await load(server.port, 1, argparse.Namespace(**{**vars(args), "turns": 1}))
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            payload = body(0, 0, long)
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
                         b"Content-Length: %d\r\n\r\n" % (server.port, len(payload)) + payload)
            await read_head(reader)
            before = server.memory("VmRSS")
            streams = await hold(server.port, args.idle)
            after = server.memory("VmRSS")
            for stream in streams:
                stream.transport.abort()
            writer.transport.abort()
            return (after - before) / args.idle
        finally:
            server.stop()

    return asyncio.run(run())


def show(rows, n_clients):
    ours, theirs = rows["cyb-llm"], rows.get("llama.cpp")
    for name, all_rounds in rows.items():
        mid = {k: statistics.median(r[k] for r in all_rounds) for k in ("tps", "memory")}
        first, gap = ([statistics.median(r[k][q] for r in all_rounds) for q in range(3)] for k in ("first", "gap"))
        print(f"{n_clients:4d} {name:10s} {mid['tps']:8.1f} tok/s   first {first[0]:7.0f} {first[1]:7.0f} {first[2]:7.0f} ms   "
              f"between {gap[0]:6.1f} {gap[1]:6.1f} {gap[2]:6.1f} ms   {mid['memory'] / 2**20:6.0f} MiB", flush=True)
    if theirs:
        tps = statistics.median(a["tps"] / b["tps"] for a, b in zip(ours, theirs))
        first = statistics.median(a["first"][1] / b["first"][1] for a, b in zip(ours, theirs))
        print(f"{n_clients:4d} ratio      {tps:8.2f}         first p95 {first:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="path or name (default: smollm2)")
    parser.add_argument("--program", help="cyb-llm (default: the build of this tree)")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--turns", type=int, default=3, help="requests a client makes (default: 3)")
    parser.add_argument("--tokens", type=int, default=64, help="of each answer (default: 64)")
    parser.add_argument("--slots", type=int, default=32, help="answers that grow at the same time, at most (default: 32)")
    parser.add_argument("--ctx", type=int, default=1024, help="tokens of a slot (default: 1024)")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--port", type=int, default=18080)
    parser.add_argument("--idle", type=int, default=0, help="streams that wait, to weigh one")
    parser.add_argument("--only-ours", action="store_true")
    args = parser.parse_args()
    args.program, args.model = find_program(args.program), find_model(args.model)
    built = os.path.join(cache_dir("peers"), "build", "bin", "llama-server")
    args.llama_server = os.environ.get("LLAMA_SERVER") or (built if os.access(built, os.X_OK) else shutil.which("llama-server"))
    if not args.llama_server and not args.only_ours:
        raise ToolError("llama-server is not there: build it with tools/build_peers.py, name it with $LLAMA_SERVER, or --only-ours.")
    print(machine())
    names = ["cyb-llm"] if args.only_ours else ["cyb-llm", "llama.cpp"]
    for n_clients in args.clients:
        rows = {name: [] for name in names}
        for number in range(args.rounds):
            for name in names if number % 2 == 0 else names[::-1]:
                say(f"{n_clients} clients, round {number + 1}, {name}")
                rows[name].append(measure(name, n_clients, args))
        show(rows, n_clients)
    if args.idle:
        print(f"{args.idle} waiting streams: {idle(args) / 1024:.1f} KiB each")
    return 0


if __name__ == "__main__":
    main_guard(main)
