"""A hub on loopback that fails in every way: `hub.py FOLDER PORT_FILE [CERTIFICATE KEY]`. Files lie in FOLDER/ORG/NAME/; what
goes wrong is a word in the name of the repository's ORG, e.g. drop10, slow, r429. FOLDER/registry.json and FOLDER/blob are what
the registry of another server says and sends. With a certificate PORT_FILE.tls has the port of the same behind TLS. Each request
is a line of FOLDER/log: method, path, Range, Authorization, bytes of the body that were sent, status."""
import hashlib
import json
import os
import re
import ssl
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROOT, PORT_FILE = sys.argv[1:3]
TLS = sys.argv[3:5]
COMMIT = "0123456789" * 4
LOCK = threading.Lock()
COUNT = {}
OTHER = []


def count(key):
    with LOCK:
        COUNT[key] = COUNT.get(key, 0) + 1
        return COUNT[key]


def bytes_of(org, name, path):
    with open(os.path.join(ROOT, org, name, path), "rb") as f:
        return f.read()


def entries(org, name):
    out, base = [], os.path.join(ROOT, org, name)
    for where, _, leaves in os.walk(base):
        for leaf in sorted(leaves):
            path = os.path.relpath(os.path.join(where, leaf), base)
            data = bytes_of(org, name, path)
            git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            entry = {"type": "file", "oid": git, "size": len(data), "path": path}
            if len(data) > 100000 or path.endswith((".gguf", ".bin")):
                entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
            out.append(entry)
    evil = {"dotdot": "../evil.gguf", "absolute": "/evil.gguf", "backslash": "a\\evil.gguf", "nul": "a\0.gguf"}
    if org in evil:
        out[0]["path"] = evil[org]
    if org == "huge":
        out[0]["lfs"]["size"] = 2**63
    if org == "bigdisk":
        out[0]["lfs"]["size"] = out[0]["size"] = 2**43
    if org == "many":
        out = [{"type": "file", "oid": "a" * 40, "size": 1, "path": f"{i}"} for i in range(100001)]
    return out


class Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def note(self, status, sent):
        with LOCK, open(os.path.join(ROOT, "log"), "a") as log:
            log.write(json.dumps({"port": self.server.server_port, "path": self.path, "range": self.headers.get("Range"),
                                  "token": self.headers.get("Authorization"), "status": status, "sent": sent}) + "\n")

    def answer(self, status, body=b"", fields=()):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if not any(name == "Content-Length" for name, _ in fields):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.note(status, len(body))

    def do_GET(self):
        try:
            self.get()
        except (BrokenPipeError, ConnectionResetError):
            pass

    def tree(self, org, name):
        """Pages of two files where the ORG begins with `pages`, with a Link to the next one that may lead astray."""
        files = entries(org, name)
        if not org.startswith("pages"):
            return self.answer(200, json.dumps(files).encode())
        at = int((re.search(r"cursor=(\d+)", self.path) or [0, 0])[1])
        origin = f"http://127.0.0.1:{OTHER[0].server_port}" if org == "pagesaway" else ""
        link = f'<{origin}{self.path.split("?")[0]}?cursor={0 if org == "pagesround" else at + 2}>; rel="next"'
        fields = [("Link", link)] if at + 2 < len(files) or org == "pagesround" else []
        return self.answer(200, json.dumps(files[at : at + 2]).encode(), fields)

    def get(self):
        path = self.path.split("?")[0]
        if path == "/v1/registry/models":
            with open(os.path.join(ROOT, "registry.json"), "rb") as f:
                return self.answer(200, f.read())
        if path.startswith("/v1/registry/blobs/"):
            with open(os.path.join(ROOT, "blob"), "rb") as f:
                return self.file("registry", f.read(), path)
        found = re.fullmatch(r"/api/models/([^/]+)/([^/]+)/(revision|tree)/(.+)", path)
        if found:
            org, name, what, _ = found.groups()
            if not os.path.isdir(os.path.join(ROOT, org, name)):
                return self.answer(404)
            if org == "badjson":
                return self.answer(200, b"[" * 1000)
            if org == "bigjson":
                return self.answer(200, b" " * (17 << 20))
            if what == "revision":
                return self.answer(200, json.dumps({"sha": COMMIT}).encode())
            return self.tree(org, name)
        found = re.fullmatch(r"/(?:([^/]+)/([^/]+)/resolve/[^/]+|file/([^/]+)/([^/]+))/(.+)", path)
        if not found:
            return self.answer(404)
        org, name, file = found.group(1) or found.group(3), found.group(2) or found.group(4), found.group(5)
        try:
            self.file(org, bytes_of(org, name, file), path)
        except FileNotFoundError:
            self.answer(404)

    def file(self, org, data, path):
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        first, last = map(int, asked.groups()) if asked else (0, len(data) - 1)
        probe = asked and last == 0
        tag = '"one"'
        if org == "other" and self.server is not OTHER[0]:
            return self.answer(302, b"", [("Location", f"http://127.0.0.1:{OTHER[0].server_port}{self.path}")])
        if org == "downgrade" and self.server is not OTHER[0]:
            return self.answer(302, b"", [("Location", f"http://127.0.0.1:{OTHER[0].server_port}{self.path}")])
        if org == "loop":
            return self.answer(302, b"", [("Location", self.path)])
        if org == "scheme":
            return self.answer(302, b"", [("Location", "file:///etc/passwd")])
        if org == "s500" and not probe and count(path) <= 3:
            return self.answer(500)
        if org == "down":
            return self.answer(503)
        if org == "r429" and count(path) == 1:
            return self.answer(429, b"", [("Retry-After", "1")])
        if org == "changes" and not probe and count(path) > 4:
            tag, data = '"two"', bytes(255 - b for b in data)
        if org == "changes" and COUNT.get(path, 0) > 4:
            tag, data = '"two"', bytes_of("changes2", "m", "m.gguf")
        if org == "norange" or org == "endless":
            asked = None
        if asked and self.headers.get("If-Range") not in (None, tag):
            asked = None
        if asked and first >= len(data):
            return self.answer(416, b"", [("Content-Range", f"bytes */{len(data)}")])
        status = 206 if asked else 200
        body = data[first : last + 1] if asked else data
        fields = [("ETag", tag)]
        if asked:
            told = first + 1 if org == "liesrange" and not probe else first
            fields.append(("Content-Range", f"bytes {told}-{min(last, len(data) - 1)}/{len(data)}"))
        if (org == "corrupt1" and first == 262144 and count(path) == 1) or (org == "corrupt" and not probe):
            body = bytes([body[0] ^ 1]) + body[1:]
        self.send_response(status)
        for field in fields:
            self.send_header(*field)
        size = len(body)
        if org == "endless":
            self.send_header("Connection", "close")
            self.close_connection = True
            size = 1 << 40
        elif org == "lieslength" and not probe:
            self.send_header("Content-Length", str(len(body) + 10))
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.send(org, body, size, probe, path, status)

    def send(self, org, body, size, probe, path, status):
        sent, cut = 0, len(body)
        dropped = re.fullmatch(r"drop(\d+)", org)
        if dropped and not probe and count(path) <= 6:
            cut = max(1, len(body) * int(dropped.group(1)) // 100)
        if org == "endless":
            cut = min(size, len(body) + (4 << 20))
            body = body + bytes(4 << 20)
        try:
            while sent < cut:
                step = 65536
                if org == "drip" and not probe:
                    step = 1
                    time.sleep(0.05)
                if org == "slow" and not probe:
                    time.sleep(0.05)
                n = min(step, cut - sent)
                self.wfile.write(body[sent : sent + n])
                self.wfile.flush()
                sent += n
        finally:
            self.note(status, sent)
        if cut < len(body):
            self.close_connection = True
            self.connection.shutdown(2)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *args):
        pass


def publish(path, port):
    with open(path + ".new", "w") as f:
        f.write(str(port))
    os.rename(path + ".new", path)


def main():
    OTHER.append(Server(("127.0.0.1", 0), Hub))
    threading.Thread(target=OTHER[0].serve_forever, daemon=True).start()
    server = Server(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    if TLS:
        secure = Server(("127.0.0.1", 0), Hub)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*TLS)
        secure.socket = context.wrap_socket(secure.socket, server_side=True)
        threading.Thread(target=secure.serve_forever, daemon=True).start()
        publish(PORT_FILE + ".tls", secure.server_port)
    publish(PORT_FILE, server.server_port)
    sys.stdin.read()  # until the test goes away


main()
