"""The process group for the torch that is installed: found, compiled, loaded.

A wheel brings it for some versions of torch. For others `prepare` compiles it, ahead of the job: `python -m
trellis.torch`. The result is kept in ``TRELLIS_CACHE``, or else in ``~/.cache/trellis``, under a name made of the
versions of torch and Python, this package's sources and the library's headers.
"""

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any, TextIO

from trellis import _where

__all__ = ["TESTED", "TorchRelease", "command", "found", "installed", "prepare", "process_group_module", "torch_below"]

NAME = "_trellis_process_group"
SOURCES = pathlib.Path(__file__).parent / "native"
PREBUILT = pathlib.Path(__file__).parent / "prebuilt"
PYTHON = f"py{sys.version_info[0]}{sys.version_info[1]}"
TESTED = ("2.13", "2.14")  # versions of torch whose tests were run


@dataclass(frozen=True)
class TorchRelease:
    """A torch on disk, which need not be imported."""

    root: pathlib.Path  # the package's folder
    version: str
    revision: str  # of its sources

    def prebuilt_name(self) -> str:
        """What is compiled for it holds for all builds of the sources: for CPUs alone, or for GPUs too."""
        return f"{NAME}-torch{self.version.split('+')[0]}-{PYTHON}-{self.revision[:12]}.so"


def torch_below(folder: pathlib.Path) -> TorchRelease:
    """The torch in a folder of packages."""
    root = folder / "torch"
    about = runpy.run_path(str(root / "version.py"))
    return TorchRelease(root, str(about["__version__"]), str(about["git_version"]))


def installed() -> TorchRelease:
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise ImportError("trellis.torch needs PyTorch: pip install trellis[torch]")
    return torch_below(pathlib.Path(spec.origin).parents[1])


def command(compiler: str, torch: TorchRelease, target: pathlib.Path, search: Sequence[str]) -> list[str]:
    """What compiles and links it. The loader looks for libraries in `search`."""
    library = pathlib.Path(_where.LIBRARY)
    includes = [
        SOURCES.parents[2], _where.INCLUDE, torch.root / "include",
        torch.root / "include" / "torch" / "csrc" / "api" / "include", sysconfig.get_paths()["include"],
    ]  # fmt: skip
    return [
        *shlex.split(compiler), "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w",
        f"-DTORCH_EXTENSION_NAME={NAME}",
        *(f"-I{folder}" for folder in includes), str(SOURCES / "all.cpp"), "-o", str(target),
        f"-L{library.parent}", f"-L{torch.root / 'lib'}", *(f"-Wl,-rpath,{folder}" for folder in search),
        f"-l:{library.name}", "-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_python",
    ]  # fmt: skip


def _cache_folder() -> pathlib.Path:
    given = os.environ.get("TRELLIS_CACHE")
    return pathlib.Path(given) if given else pathlib.Path.home() / ".cache" / "trellis"


def _sources() -> list[pathlib.Path]:
    return sorted(source for source in SOURCES.rglob("*") if source.suffix in (".cpp", ".h"))


def _headers() -> list[pathlib.Path]:
    """The library's own: with another layout of its classes, what was compiled before would corrupt memory."""
    root = pathlib.Path(_where.INCLUDE)
    rooms = ("kernels", "schedule", "device", "ccl", "sim")
    return sorted(header for room in rooms for header in (root / room).rglob("*.h"))


def _fingerprint(torch: TorchRelease) -> str:
    """Of all that the result depends on."""
    state = hashlib.sha256()
    for part in (torch.version, torch.revision, str(torch.root), sys.version, _where.LIBRARY):
        state.update(part.encode())
    for source in [*_sources(), *_headers()]:
        state.update(source.read_bytes())
    return state.hexdigest()[:16]


def _kept(torch: TorchRelease) -> pathlib.Path:
    return _cache_folder() / f"{NAME}-torch{torch.version}-{PYTHON}-{_fingerprint(torch)}.so"


def found(torch: TorchRelease) -> pathlib.Path | None:
    """Where the process group for this torch is: what the wheel brought, or what was compiled."""
    brought = PREBUILT / torch.prebuilt_name()
    if brought.exists():
        return brought
    kept = _kept(torch)
    return kept if kept.exists() else None


def compile_for(torch: TorchRelease, target: pathlib.Path, search: Sequence[str]) -> None:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        raise ImportError(
            f"trellis.torch has no process group for torch {torch.version} yet, and no C++ compiler to make it: "
            "install g++ (12 or later), or set CXX"
        )
    part = target.with_suffix(f".{os.getpid()}")
    try:
        done = subprocess.run(command(compiler, torch, part, search), capture_output=True, text=True)
    except OSError as error:
        raise ImportError(
            f"trellis.torch cannot be compiled for torch {torch.version}: CXX={compiler}: {error}"
        ) from error
    if done.returncode != 0:
        log = target.with_suffix(".log")
        log.write_text(done.stderr)
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200])
        raise ImportError(
            f"trellis.torch cannot be compiled for torch {torch.version} by {compiler}: {first} (all of it: {log})"
        )
    part.rename(target)


def _lock(name: pathlib.Path) -> TextIO:
    try:
        name.parent.mkdir(parents=True, exist_ok=True)
        return open(name, "w")
    except OSError as error:
        given = os.environ.get("TRELLIS_CACHE")
        of = f"TRELLIS_CACHE={given}" if given else f"the folder {name.parent}, which TRELLIS_CACHE would replace"
        raise ImportError(f"trellis.torch cannot keep its process group in {of}: {error}") from error


def prepare() -> pathlib.Path:
    """Where the process group for the installed torch is; compiles it where it is missing, in half a minute.

    It is called before a job starts. Processes wait for the first of them."""
    torch = installed()
    there = found(torch)
    if there is not None:
        return there
    target = _kept(torch)
    with _lock(target.with_suffix(".lock")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            tested = "" if torch.version.startswith(TESTED) else f"; tested are {' and '.join(TESTED)}"
            print(f"trellis: compiling the process group for torch {torch.version}, once{tested}", file=sys.stderr)
            compile_for(torch, target, [str(pathlib.Path(_where.LIBRARY).parent), str(torch.root / "lib")])
    return target


@cache
def process_group_module() -> Any:
    """The C++ part. It is never compiled here: ranks of a job would wait for it, each node for its own.

    `trellis._native` is loaded first: it brings oneDNN. Loaded after torch, oneDNN would run parts of torch's own copy,
    since both export the same initialization (`std::call_once`)."""
    torch = installed()
    where = found(torch)
    if where is None:
        raise ImportError(
            f"trellis.torch has no process group for torch {torch.version} in {PREBUILT.parent} or {_cache_folder()}: "
            "run `python -m trellis.torch` on each node before the job; it compiles one by g++ in half a minute"
        )
    importlib.import_module("trellis._native")
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(where))
    spec = importlib.util.spec_from_file_location(NAME, where, loader=loader)
    assert spec is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
