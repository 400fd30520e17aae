"""Writes the reference from the sources themselves: reference.py SOURCE TARGET [PROGRAM]

TARGET gets a page for the commands (from PROGRAM's own help), for C++ (each header below <trellis/...>, with what it
includes), for C, and for Python (from the modules' docstrings)."""
import ast
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

PYTHON = ["schedule", "sim", "core", "simulate", "torch", "torch/optimizer", "torch/hooks", "recorded"]


def code(text):
    return "\n```cpp\n" + text.strip("\n") + "\n```\n"


def header(path):
    """What a header says first, and what it declares: without guards, includes and forward declarations."""
    text = path.read_text()
    lead = re.match(r"((?://.*\n)+)", text)
    about = " ".join(line.removeprefix("//").strip() for line in lead[1].splitlines()) if lead else ""
    text = text[len(lead[1]):] if lead else text
    text = re.sub(r"^#.*\n|^namespace [\w:]+ \{\n|^\}  // namespace.*\n|^(?:class|struct) \w+;\n", "", text, flags=re.M)
    return about, re.sub(r"\n{3,}", "\n\n", text)


def included(source, name, seen):
    """A header and those that it includes, each once, the ones it stands on last."""
    if name in seen:
        return
    seen[name] = header(source / name)
    for one in re.findall(r'^#include "([^"]+)"', (source / name).read_text(), re.M):
        included(source, one, seen)


def doors(source):
    text = re.search(r"^set\(doors\n(.*?)\)", (source / "cmake/doors.cmake").read_text(), re.M | re.S)[1].split()
    return list(zip(text[::2], text[1::2]))


def cpp(source):
    out = ["# C++ reference\n\nEach header that programs include, with the headers that it brings. All names are in "
           "`trellis`, or in the namespace that their folder is called after.\n"]
    told = set()
    for door, name in doors(source):
        parts = {}
        included(source, name, parts)
        out.append(f"\n## &lt;trellis/{door}.h&gt;\n")
        for part, (about, text) in parts.items():
            if part in told:
                continue
            told.add(part)
            out.append(f"\n### {part}\n\n{about}\n{code(text) if text.strip() else ''}")
    return "".join(out)


def c(source):
    parts = {}
    included(source, "ccl/api/trellis.h", parts)
    out = ["# C reference\n\n`#include <trellis.h>`: a stable binary interface.\n"]
    out += [f"\n## {name}\n\n{about}\n{code(text) if text.strip() else ''}" for name, (about, text) in parts.items()]
    return "".join(out)


def signature(node):
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


def documented(nodes, wanted=None):
    for node in nodes:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if wanted is None or node.name in wanted:
            yield node


def python_module(path, name):
    tree = ast.parse(path.read_text())
    wanted = next((ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)
                   and getattr(node.targets[0], "id", "") == "__all__"), None)
    out = [f"\n## trellis.{name}\n\n{ast.get_docstring(tree) or ''}\n"]
    for node in documented(tree.body, wanted):
        if isinstance(node, ast.ClassDef):
            out.append(f"\n### class {node.name}\n\n{ast.get_docstring(node) or ''}\n")
            for method in documented(node.body):
                about = textwrap.indent(ast.get_docstring(method) or "", "  ").strip()
                out.append(f"\n- `{signature(method)}` {about}\n")
        else:
            out.append(f"\n### {node.name}\n\n```python\n{signature(node)}\n```\n\n{ast.get_docstring(node) or ''}\n")
    return "".join(out)


def python(source):
    out = ["# Python reference\n"]
    for name in PYTHON:
        path = source / "python" / "trellis" / f"{name}.py"
        path = path if path.exists() else path.with_suffix("") / "__init__.py"
        out.append(python_module(path, name.replace("/", ".")))
    return "".join(out)


def commands(program):
    out = ["# Commands\n\nWhat each command's `--help` says.\n"]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "manual", folder], check=True, stdout=subprocess.DEVNULL)
        names = sorted(path.stem.replace("-", " ", 1) for path in pathlib.Path(folder).rglob("*.1"))
    for name in names:
        words = name.split()[0:1] + name.split(" ", 1)[1].split("-") if " " in name else [name]
        text = subprocess.run([program, *words[1:], "--help"], capture_output=True, text=True, check=True).stdout
        out.append(f"\n## {' '.join(words)}\n\n```text\n{text.rstrip()}\n```\n")
    return "".join(out)


def main(source, target, program):
    target.mkdir(parents=True, exist_ok=True)
    pages = {"cpp": cpp(source), "c": c(source), "python": python(source)}
    if program:
        pages["commands"] = commands(program)
    for name, text in pages.items():
        (target / f"{name}.md").write_text(text)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3] if len(sys.argv) > 3 else None)
