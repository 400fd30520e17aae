"""Lets files that import nki, or neuronxcc.nki, run unmodified. What is installed under these names is not shadowed
without asking."""

import ast
import contextlib
import functools
import importlib.machinery
import importlib.util
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trellis.nki.kernels.jit import settings

__all__ = ["as_nki"]

ROOTS = ("nki", "neuronxcc")
# Modules of neuronxcc with the vendor's own kernels, which files import beside the kernels that they define.
KERNELS = ("neuronxcc.nki.kernels", "neuronxcc.nki._private_kernels", "neuronxcc.nki._pre_prod_kernels")
# What kernels import at the top of a file, and often do not use. These have stand-ins wherever they are imported.
ABSENT = ("torch_xla", "torch_neuronx", "jax", "jax_neuronx", "neuron_dtypes", "transformers", "libneuronxla",
          "neuronx_distributed", "torch", "scipy", "tabulate", "matplotlib", "pandas", "einops")  # fmt: skip


def _device(*_: Any, **__: Any) -> Any:
    import torch  # type: ignore[import-not-found, unused-ignore]

    return torch.device("cpu")


def _done(*_: Any, **__: Any) -> None:
    """What waits for the device: kernels have run when they return."""


# What scripts call of torch_xla around a kernel, where it is not installed and torch is: the device is this machine.
HOST: dict[str, Any] = {
    "torch_xla.device": _device, "torch_xla.core.xla_model.xla_device": _device,
    "torch_xla.sync": _done, "torch_xla.core.xla_model.mark_step": _done,
    "torch_xla.core.xla_model.wait_device_ops": _done,
    "torch_xla.core.xla_model.master_print": print, "torch_xla.core.xla_model.is_master_ordinal": lambda *_: True,
    "torch_xla.core.xla_model.get_ordinal": lambda *_: 0, "torch_xla.core.xla_model.xrt_world_size": lambda *_: 1,
}  # fmt: skip


def absent(name: str) -> Any:
    """Something of a module that is not installed, by its full name."""
    return HOST[name] if name in HOST else AbsentName(name)


class Absent(types.ModuleType):
    """A module that is not installed: it says so when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return absent(f"{self.__name__}.{name}")


class AbsentName:
    """Something of a module that is not installed."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return absent(f"{self._name}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        module = self._name.split(".")[0]
        raise ModuleNotFoundError(f"{self._name}: {module} is not installed; expected it for what this line does")

    # In an annotation it stands for any type.
    def __getitem__(self, _: Any) -> Any:
        return self

    def __or__(self, _: Any) -> Any:
        return self

    __ror__ = __or__
    __iter__ = None  # else it would have elements without end

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return (object,)


@functools.cache
def unguarded(file: str) -> frozenset[int]:
    """The lines of the imports in a file that no `try` is prepared for."""

    def imports(node: ast.AST) -> Iterator[int]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
        for child in ast.iter_child_nodes(node):
            if not (isinstance(node, ast.Try) and child in node.body):
                yield from imports(child)

    try:
        return frozenset(imports(ast.parse(Path(file).read_bytes())))
    except (OSError, SyntaxError, ValueError):
        return frozenset()


LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))


def needs_stand_in() -> bool:
    """Whether a file of the user's own imports now, and would end if the module were not there."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename == __file__ or "importlib" in frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.startswith(LIBRARIES):
        return False
    return frame.f_lineno in unguarded(frame.f_code.co_filename)


class AbsentFinder:
    """The last finder: gives stand-ins for the modules in ABSENT, and for others that a file imports without a
    `try`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        root, _, child = name.partition(".")
        if name.startswith(KERNELS):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]
        if (
            isinstance(sys.modules.get(root), Absent)
            if child
            else root in ABSENT or (root not in ROOTS and needs_stand_in())
        ):
            loader: Any = self
            return importlib.machinery.ModuleSpec(name, loader, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return Absent(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__path__ = []


def installed(root: str) -> bool:
    """Whether a real package of this name is installed: a folder without a module of its own is none."""
    if root in sys.modules:
        return getattr(sys.modules[root], "_trellis", False) is False
    try:
        spec = importlib.util.find_spec(root)
        return spec is not None and spec.origin is not None
    except (ImportError, ValueError):
        return False


@contextlib.contextmanager
def as_nki(*, shadow: bool = False, chip: str = "", rules: str = "", compute: bool | None = None) -> Iterator[None]:
    """Within it, `import nki` and `import neuronxcc.nki` are ours. shadow: even where the real ones are installed."""
    from trellis.nki.modules.build import everything

    real = [root for root in ROOTS if installed(root)]
    if real and not shadow:
        raise ImportError(f"{' and '.join(real)} is installed here; expected shadow=True (--shadow) to run without it")
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] in ROOTS}
    kept = (settings.chip, settings.rules, settings.compute)
    finder = AbsentFinder()
    found = everything()
    for name, module in found.items():
        module.__dict__["_trellis"] = True
        sys.modules[name] = module
    sys.meta_path.append(finder)
    settings.chip, settings.rules = chip or settings.chip, rules or settings.rules
    settings.compute = settings.compute if compute is None else compute
    try:
        yield
    finally:
        settings.chip, settings.rules, settings.compute = kept
        sys.meta_path.remove(finder)
        for name, module in list(sys.modules.items()):
            if name.split(".")[0] in ROOTS or isinstance(module, Absent):
                del sys.modules[name]
        sys.modules.update(before)
