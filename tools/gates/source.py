"""Reading C++ for the gates: a scanner that blanks comments, strings and preprocessor lines, and finds functions."""
import os
import re
import subprocess

CODE = (".cpp", ".hpp", ".c", ".h", ".inc")


def files(root, folders, suffixes=CODE):
    """Paths under root/<folders> with one of the suffixes, sorted, relative to root."""
    found = []
    for folder in folders:
        for where, names, leaves in os.walk(os.path.join(root, folder)):
            names.sort()
            found += [os.path.relpath(os.path.join(where, leaf), root) for leaf in sorted(leaves) if leaf.endswith(suffixes)]
    return found


def tracked(root):
    """Files that git tracks, or, outside a repository, every file but build folders."""
    done = subprocess.run(["git", "-C", root, "ls-files", "-z"], capture_output=True)
    if done.returncode == 0 and done.stdout:
        names = done.stdout.decode(errors="replace").split("\0")
        return [name for name in names if name and os.path.isfile(os.path.join(root, name))]
    found = []
    for where, names, leaves in os.walk(root):
        names[:] = sorted(n for n in names if n != ".git" and not n.startswith("build") and n != "__pycache__")
        found += [os.path.relpath(os.path.join(where, leaf), root) for leaf in sorted(leaves)]
    return found


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<digits>\b[0-9](?:'?[0-9a-zA-Z_.])*)
      | (?P<char>'(?:\\.|[^'\\\n])+')""",
    re.S | re.X,
)


def blank(text):
    """The text with comments and the insides of literals replaced by spaces; line numbers stay."""

    def replacement(match):
        if match.group("digits"):
            return match.group(0).replace("'", "_")
        found = match.group(0)
        if match.group("comment"):
            return re.sub(r"[^\n]", " ", found)
        quote = "'" if match.group("char") else '"'
        return quote + re.sub(r"[^\n]", "_", found[1:-1]) + quote

    return TOKEN.sub(replacement, text)


def without_preprocessor(text):
    """Blanks directives and their continuation lines."""
    out, inside = [], False
    for line in text.split("\n"):
        directive = inside or line.lstrip().startswith("#")
        inside = directive and line.endswith("\\")
        out.append("" if directive else line)
    return "\n".join(out)


class Function:
    def __init__(self, name, first, last, parameters, nesting):
        self.name, self.first, self.last = name, first, last
        self.parameters, self.nesting = parameters, nesting

    @property
    def lines(self):
        return self.last - self.first + 1


WORD = re.compile(r"[A-Za-z_]\w*|[0-9][\w.]*|\"[^\"]*\"|'[^']*'|::|->|\S")
NOT_A_NAME = {"noexcept", "requires", "alignas", "decltype", "explicit", "if", "while", "for", "switch", "catch", "sizeof",
              "return", "static_assert", "defined"}
TYPE_WORDS = {"namespace", "class", "struct", "union", "extern"}
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}


def _partners(words):
    """For each bracket the index of its partner."""
    partner, stack = {}, []
    for i, (word, _) in enumerate(words):
        if word in OPEN:
            stack.append(i)
        elif word in CLOSE and stack:
            j = stack.pop()
            partner[i], partner[j] = j, i
    return partner


def _parameters(words):
    """Number of parameters in the words between the parentheses; commas inside <>, (), [], {} do not count."""
    if not words or (len(words) == 1 and words[0][0] == "void"):
        return 0
    depth, count = 0, 1
    for i, (word, _) in enumerate(words):
        before = words[i - 1][0] if i else ""
        if word in OPEN or (word == "<" and (before[:1].isalpha() or before[:1] == "_")):
            depth += 1
        elif word in CLOSE or (word == ">" and depth > 0):
            depth -= 1
        elif word == "," and depth == 0:
            count += 1
    return count


def _nesting(words, partner, first, last):
    """Deepest stack of braced control statements between two indices."""
    stack, deepest = [], 0
    for i in range(first, last):
        word = words[i][0]
        if word == "{":
            before = words[i - 1][0]
            control = before in ("else", "do", "try")
            if before == ")" and i - 1 in partner:
                control = words[partner[i - 1] - 1][0] in ("if", "for", "while", "switch", "catch", "constexpr")
            stack.append(control)
            deepest = max(deepest, sum(stack))
        elif word == "}" and stack:
            stack.pop()
    return deepest


def _parameter_list(words, partner, head):
    """Index of the '(' of the parameter list in a head (indices of its top-level words), or None: not a function."""
    for at in head:
        word = words[at][0]
        if word == "=" and words[at - 1][0] != "operator":
            return None
        if word != "(" or at == 0:
            continue
        name = words[at - 1][0]
        if name in NOT_A_NAME or name in ("]", "__attribute__"):
            continue
        if name == "operator" or re.match(r"[A-Za-z_]", name) or words[at - 2][0] == "operator" or words[at - 3][0] == "operator":
            if name == "operator" and words[partner[at] + 1][0] == "(":
                return partner[at] + 1
            return at
    return None


def functions(text):
    """Function definitions of a file; lambdas and local types belong to the function that holds them."""
    code = without_preprocessor(blank(text))
    words = [(m.group(0), code.count("\n", 0, m.start()) + 1) for m in WORD.finditer(code)]
    partner, found, head, i = _partners(words), [], [], 0
    while i < len(words):
        word = words[i][0]
        if word in (";", "}"):
            head = []
        elif word in ("(", "[") and i in partner:
            head.append(i)
            i = partner[i]
        elif word == "{" and i in partner:
            at = _parameter_list(words, partner, head)
            heads = {words[h][0] for h in head}
            if at is not None:
                behind = [words[h][0] for h in head if h > at]
                if ":" in behind and words[i - 1][0] not in (")", "}"):
                    i = partner[i]  # member{value} of an initialiser list; the body follows
                else:
                    end = partner[i]
                    found.append(Function(words[at - 1][0], words[head[0]][1], words[end][1],
                                          _parameters(words[at + 1 : partner[at]]), _nesting(words, partner, i + 1, end)))
                    head, i = [], end
            elif heads & TYPE_WORDS and "enum" not in heads and "=" not in heads:
                head = []  # walk into the scope
            else:
                i = partner[i]  # an initialiser or an enumeration
        elif word == ":" and len(head) == 1 and words[head[0]][0] in ("public", "private", "protected"):
            head = []
        else:
            head.append(i)
        i += 1
    return found


def finish(name, problems, checked):
    """Prints the verdict of a gate; the exit status."""
    for problem in problems:
        print(problem)
    print(f"{name}: {len(problems)} violations in {checked}")
    return 1 if problems else 0
