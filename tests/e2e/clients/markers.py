#!/usr/bin/env python3
"""Nobody's answer depends on who else asks, over HTTP: 64 prompts, each with a word of its own, are asked one by one and then by
many at once. Text, finish reason, token count and every log-probability must be the same, and no answer may hold another's word.
Standard library only. usage: markers.py --program cyb-llm MODEL
"""
import argparse
import concurrent.futures
import http.client
import json
import random
import re
import subprocess
import sys

SYSTEM = "You are a careful clerk. Each visitor tells you one word. Say the word of this visitor, and nothing about others. " * 3


def word(i):
    return "".join("bdfgklmnprstvz"[(i * k + 3 * k) % 14] + "aeiou"[(i // (k + 1) + k) % 5] for k in (1, 3, 5)).upper() + str(100 + i)


def question(i):
    sampled = i % 2 == 0
    return json.dumps({
        "messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": f"My word is {word(i)}. Say my word."}],
        "max_tokens": 24, "seed": 1000 + i, "temperature": 0.9 if sampled else 0, "logprobs": True, "top_logprobs": 2,
    }).encode()  # fmt: skip


def ask(port, i):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", "/v1/chat/completions", question(i), {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    if response.status != 200:
        raise SystemExit(f"prompt {i}: status {response.status}: {answer}")
    choice = answer["choices"][0]
    return {"text": choice["message"]["content"], "reason": choice["finish_reason"], "usage": answer["usage"]["completion_tokens"],
            "logprobs": choice["logprobs"]["content"]}


class Server:
    def __init__(self, args, *options):
        self.child = subprocess.Popen([args.program, "-q", "serve", args.model, "--port", "0", "--ctx", "512", *options],
                                      stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+)$", self.child.stdout.readline().strip())[1])

    def __enter__(self):
        return self.port

    def __exit__(self, *_):
        self.child.terminate()
        if self.child.wait(60) != 0:
            raise SystemExit(f"the server ended with {self.child.returncode}")


def compare(name, port, n_clients, solo, order):
    with concurrent.futures.ThreadPoolExecutor(n_clients) as pool:
        got = dict(zip(order, pool.map(lambda i: ask(port, i), order)))
    wrong = [i for i in order if got[i] != solo[i]]
    words = {i: word(i) for i in solo}
    foreign = [i for i in order for j, other in words.items() if j != i and other in got[i]["text"]]
    print(f"{name}: {len(order)} answers, {len(wrong)} differ from their solo run, {len(foreign)} with a foreign word", flush=True)
    return not wrong and not foreign


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--program", required=True)
    parser.add_argument("--prompts", type=int, default=64)
    args = parser.parse_args()
    everyone = list(range(args.prompts))
    with Server(args, "--slots", "1", "--threads", "1") as port:
        solo = {i: ask(port, i) for i in everyone}
    own = sum(word(i) in solo[i]["text"] for i in everyone)
    print(f"solo: {own} of {len(everyone)} answers hold their own word")
    good = own > 0
    for n in (2, 3, 7, 16, 44, 64):
        for threads in (1, 2) if n in (7, 64) else (2,):
            order = everyone[:]
            random.Random(n).shuffle(order)
            with Server(args, "--slots", str(min(n, 32)), "--threads", str(threads)) as port:
                good &= compare(f"{n} clients, {threads} threads", port, n, solo, order)
                if n == 16:
                    good &= compare(f"{n} clients, kept prefixes warm", port, n, solo, order[::-1])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
