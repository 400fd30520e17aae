"""What a command is about: a script, or one kernel of a file with its arguments; and constants set anew."""

import argparse
import ast
import os
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from trellis.nki.tensors.types import to_dtype
from trellis.nki.trace import Trace

__all__ = ["add_call_options", "add_options", "argument", "Call", "call_of", "figures", "halves", "HELP", "module_of",
           "SubjectError"]  # fmt: skip

HELP = """\
KERNEL is FILE.py:NAME, called with --arg; or FILE.py, a script, whose last kernel counts, or FILE.py:NAME without
--arg, whose last call of that kernel counts."""


class SubjectError(ValueError):
    """A command's words name nothing that can run."""


@dataclass
class Call:
    """A kernel that ran."""

    trace: Trace
    arguments: dict[str, Any]
    result: Any


def add_call_options(p: argparse.ArgumentParser) -> None:
    """What is called, and with what."""
    p.add_argument("--arg", action="append", default=[], metavar="NAME=DIMxDIM:TYPE", help="an array, or NAME=VALUE")
    p.add_argument("--grid", default="", help="the kernel's grid, as 2 or 4x2")
    p.add_argument("--set", action="append", default=[], metavar="NAME=VALUE",
                   help="another value of a constant that the file or one of its functions assigns, such as TILE=256")
    p.add_argument("--seed", type=int, default=0, help="of random arguments")


def add_options(p: argparse.ArgumentParser) -> None:
    add_call_options(p)
    p.add_argument("--what-if", action="append", default=[], metavar="FIGURE=VALUE",
                   help="another value of a figure of the chip, such as dma.start=2us")
    p.add_argument("--chip", default="", help="trn1, inf2, trn2 or trn3; else what the kernel says, else trn2")


_SHORT = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "f8e4m3": "float8_e4m3", "f8e4m3fn": "float8_e4m3fn",
          "f8e5m2": "float8_e5m2", "i32": "int32", "u32": "uint32", "i8": "int8", "u8": "uint8", "i16": "int16",
          "u16": "uint16"}  # fmt: skip


def argument(text: str, random: Any) -> tuple[str, Any]:
    """A --arg as its name and value."""
    name, equals, value = text.partition("=")
    if not equals:
        raise SubjectError(f"--arg {text}: expected NAME=DIMxDIM:TYPE or NAME=VALUE")
    shape, colon, kind = value.partition(":")
    if colon and all(part.isdigit() for part in shape.split("x")):
        dtype = to_dtype(_SHORT.get(kind, kind))
        dims = tuple(int(n) for n in shape.split("x"))
        if dtype.kind in "iu":
            return name, random.integers(0, 100, dims).astype(dtype)
        return name, random.standard_normal(dims).astype(np.float32).astype(dtype)
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def halves(text: str, option: str, form: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise SubjectError(f"{option} {text}: expected {form}")
    return name, value


def figures(options: argparse.Namespace) -> tuple[tuple[str, str], ...]:
    return tuple(halves(each, "--what-if", "FIGURE=VALUE") for each in options.what_if)


class _Constants(ast.NodeTransformer):
    """Assignments with other values: at the top level, and where a function assigns a literal, as `TILE = 128`."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values, self.found = values, set[str]()
        self.inside = False  # a function

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:  # noqa: N802 (ast's name)
        before, self.inside = self.inside, True
        made = self.generic_visit(node)
        self.inside = before
        return made

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:  # noqa: N802
        for target in node.targets:
            if (
                isinstance(target, ast.Tuple)
                and isinstance(node.value, ast.Tuple)
                and len(target.elts) == len(node.value.elts)
            ):
                for k, each in enumerate(target.elts):
                    node.value.elts[k] = self._value(each, node.value.elts[k])
            else:
                node.value = self._value(target, node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:  # noqa: N802
        if node.value is not None:
            node.value = self._value(node.target, node.value)
        return node

    def _value(self, target: ast.expr, value: ast.expr) -> ast.expr:
        if not isinstance(target, ast.Name) or target.id not in self.values:
            return value
        if self.inside and not isinstance(value, ast.Constant):
            return value
        self.found.add(target.id)
        return ast.copy_location(ast.parse(self.values[target.id], mode="eval").body, value)


def module_of(path: str, sets: Sequence[str], name: str) -> types.ModuleType:
    """A file as a module, with some of its constants set anew."""
    with open(path) as file:
        tree = ast.parse(file.read(), path)
    constants = _Constants(dict(halves(each, "--set", "NAME=VALUE") for each in sets))
    if constants.values:
        constants.visit(tree)
    if missing := set(constants.values) - constants.found:
        raise SubjectError(f"--set {missing.pop()}: {path} assigns no such constant")
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(compile(tree, path, "exec"), module.__dict__)
    return module


@contextmanager
def _seen() -> Iterator[list[tuple[Trace, Any]]]:
    """Every kernel that runs meanwhile."""
    from trellis.nki.kernels.jit import settings

    seen: list[tuple[Trace, Any]] = []

    def watch(trace: Trace, result: Any) -> None:
        seen.append((trace, result))

    settings.watchers.append(watch)
    try:
        yield seen
    finally:
        settings.watchers.remove(watch)


def _named(module: types.ModuleType, path: str, name: str) -> Any:
    from trellis.nki.kernels.jit import Kernel

    if not hasattr(module, name):
        kernels = [k for k, v in vars(module).items() if isinstance(v, Kernel)]
        raise SubjectError(f"{path} has no {name}; expected one of {', '.join(kernels) or 'its kernels'}")
    found = getattr(module, name)
    with open(path) as file:
        return found if isinstance(found, Kernel) else Kernel(found, beta="neuronxcc" in file.read())


def _grid(text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(n) for n in text.split("x"))
    except ValueError:
        sizes = (0,)
    if min(sizes) < 1:
        raise SubjectError(f"--grid {text}: expected numbers of programs of 1 or more, as 2 or 4x2")
    return sizes


def call_of(subject: str, options: argparse.Namespace) -> Call:
    """Runs the subject. Needs as_nki()."""
    path, colon, name = subject.partition(".py:")
    path += ".py" if colon else ""
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: no such file; expected FILE.py or FILE.py:KERNEL")
    folder = os.path.dirname(os.path.abspath(path))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    before = sys.argv
    try:
        sys.argv = [path]
        if options.arg:
            if not name:
                raise SubjectError(f"{subject}: --arg needs a kernel, FILE.py:KERNEL")
            kernel = _named(module_of(path, options.set, os.path.basename(path).removesuffix(".py")), path, name)
            if options.grid:
                kernel = kernel[_grid(options.grid)]
            random = np.random.default_rng(options.seed)
            arguments = dict(argument(text, random) for text in options.arg)
            result = kernel(**arguments)
            return Call(kernel.trace, arguments, result)
        with _seen() as seen:
            module_of(path, options.set, "__main__")
    finally:
        sys.argv = before
    calls = [each for each in seen if not name or each[0].name == name]
    if not calls:
        raise SubjectError(f"{subject}: the script ran no kernel{' of that name' if name else ''}; "
                         "name one as FILE.py:KERNEL and give its arguments with --arg")  # fmt: skip
    return Call(calls[-1][0], {}, calls[-1][1])
