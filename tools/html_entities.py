#!/usr/bin/env python3
"""Writes src/text/template/html_entities.inc: the named character references of HTML 5, from Python's html.entities.

usage: html_entities.py > src/text/template/html_entities.inc"""
import html.entities
import sys


def main():
    print("// Named character references of HTML 5, sorted by name: tools/html_entities.py made it.")
    line = ""
    for name, text in sorted(html.entities.html5.items()):
        value = "".join(f"\\x{byte:02x}" for byte in text.encode())
        entry = f'E("{name}", "{value}")'
        if line and len(line) + 1 + len(entry) > 160:
            print(line)
            line = ""
        line += (" " if line else "") + entry
    print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
