"""Passes TCP connections on slowly: `proxy.py PORT_FILE TARGET_PORT BYTES_PER_SECOND`, all of them together. PORT_FILE.sent has
the bytes that came back from the target so far."""
import os
import socket
import sys
import threading
import time

PORT_FILE, TARGET, RATE = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
LOCK = threading.Lock()
SENT = [0]


def write(path, text):
    with open(path + ".new", "w") as f:
        f.write(text)
    os.rename(path + ".new", path)


def up(client, target):
    try:
        while data := client.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        target.close()


def down(client, target):
    try:
        while data := target.recv(16384):
            with LOCK:
                time.sleep(len(data) / RATE)
                client.sendall(data)
                SENT[0] += len(data)
                write(PORT_FILE + ".sent", str(SENT[0]))
        client.shutdown(socket.SHUT_WR)
    except OSError:
        client.close()


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    write(PORT_FILE, str(listener.getsockname()[1]))
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        client, _ = listener.accept()
        target = socket.create_connection(("127.0.0.1", TARGET))
        threading.Thread(target=up, args=(client, target), daemon=True).start()
        threading.Thread(target=down, args=(client, target), daemon=True).start()


main()
