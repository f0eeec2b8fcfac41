#!/usr/bin/env python3
"""Words gate: the project speaks only of itself. No paths of one machine, no registry hosts, no leftovers of how it was made.
Patterns are written with brackets so that this file does not match itself."""
import re
import sys

import source

RULES = [
    ("path of a machine", r"(?<![\w.$}/])/(?:wor[k]|roo[t]|hom[e]/[a-z]\w*|Use[r]s/\w+|mn[t]/[a-z]\w*|tm[p])(?=/|[\s\"'`),;:]|$)"),
    ("relative path out of the project", r"\.\./share[d]\b|\bshare[d]/(?:spec|goldens|tools|design|cases|models|peers)"),
    ("registry host", r"\b(?:pypi\.or[g]|pythonhosted\.or[g]|registry\.npmj[s]|deb\.debian\.or[g]|repo[1]?\.maven|crates\.i[o]|index\.crate[s])"),
    ("address of a machine", r"\b(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))(?:\.\d{1,3}){2,3}\b"),
    ("maker", r"(?i)\b(?:claud[e]|anthropi[c]|copilo[t]|chatgp[t]|codewhispere[r]|language model assistan[t]|ai[- ]generate[d]|ai[- ]assistan[t]|as an a[i]\b)"),
    ("unfinished", r"\b(?:TOD[O]|FIXM[E]|XX[X]|HAC[K])\b"),
]
SKIPPED_FOLDERS = ("tests/golden/", "fuzz/corpus/")  # made by other programs; their generators and READMEs are checked
TEXT = (".cpp", ".hpp", ".c", ".h", ".inc", ".md", ".py", ".sh", ".txt", ".cmake", ".json", ".yml", ".yaml", ".toml", "Makefile",
        "LICENSE", ".in", ".js", ".mjs", ".ts", ".tsx", ".html", ".css", ".clang-format", ".clang-tidy", ".gitignore", "run")


# npm's lock files: versions look like addresses, and a host would be that of somebody's registry.
LOCK_RULES = [rule for rule in RULES if rule[0] != "address of a machine"] + [("registry of a lock file", r'"resolved"')]


def check_text(path, text):
    problems = []
    for name, pattern in LOCK_RULES if path.endswith("package-lock.json") else RULES:
        for match in re.finditer(pattern, text, re.M):
            line = text.count("\n", 0, match.start()) + 1
            problems.append(f"{path}:{line}: {name}: {match.group(0)}")
    return problems


def wanted(path):
    if path.startswith(SKIPPED_FOLDERS) and not path.endswith((".py", ".md")):
        return False
    return path.endswith(TEXT)


def check(root):
    names = [path for path in source.tracked(root) if wanted(path)]
    problems = []
    for path in names:
        problems += check_text(path, source.read(root, path))
    return problems, f"{len(names)} files"


def self_test():
    slash = "/"
    planted = [slash + "work/main/src", "see " + slash + "root/x", "'" + slash + "home/someone/x'", ".." + slash + "share" + "d/design.md",
               "https:" + slash * 2 + "pypi." + "org/simple", "host 10.1." + "2.3", "written by Clau" + "de", "TO" + "DO: later", slash + "tmp/x"]
    for line in planted:
        assert check_text("a.md", line), line
    assert check_text("web/package-lock.json", '"resolved": "https:' + slash * 2 + 'example.org/x.tgz"')
    assert not check_text("web/package-lock.json", '"node": "^10.6' + '.0"')
    for line in ["src/work/x", "network/", "$TMPDIR/x", "a shared prefix", "todo list", "10.5 tokens", "~/.local/share", "shared/cache"]:
        assert not check_text("a.md", line), (line, check_text("a.md", line))


if __name__ == "__main__":
    self_test()
    sys.exit(source.finish("words", *check(sys.argv[1])))
