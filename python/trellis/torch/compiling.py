"""Compiles the process group for the torch that is installed, once, and loads it.

`python -m trellis.torch` does so ahead of time. The result is kept in ``TRELLIS_CACHE``, or else in
``~/.cache/trellis``, under a name made of the versions of torch and Python, this package's sources and the library's
headers.
"""

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from types import ModuleType
from typing import Any, TextIO

import torch

from trellis import _where

__all__ = ["command", "path", "process_group_module"]

NAME = "_trellis_process_group"
SOURCES = pathlib.Path(__file__).parent / "native"


def _cache_folder() -> pathlib.Path:
    given = os.environ.get("TRELLIS_CACHE")
    folder = pathlib.Path(given) if given else pathlib.Path.home() / ".cache" / "trellis"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        of = f"TRELLIS_CACHE={given}" if given else f"the folder {folder}, which TRELLIS_CACHE would replace"
        raise ImportError(f"trellis.torch cannot keep its process group in {of}: {error}") from error
    return folder


def _library() -> pathlib.Path:
    return pathlib.Path(_where.LIBRARY) / "libtrellis.so.0"


def command(compiler: str, target: pathlib.Path) -> list[str]:
    """What compiles and links it."""
    torch_root = pathlib.Path(torch.__file__).parent
    includes = [
        SOURCES.parents[2], _where.INCLUDE, torch_root / "include",
        torch_root / "include" / "torch" / "csrc" / "api" / "include", sysconfig.get_paths()["include"],
    ]  # fmt: skip
    libraries = [_where.LIBRARY, str(torch_root / "lib")]
    return [
        compiler, "-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w",
        f"-DTORCH_EXTENSION_NAME={NAME}", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
        *(f"-I{folder}" for folder in includes), str(SOURCES / "all.cpp"), "-o", str(target),
        *(f"-L{folder}" for folder in libraries), *(f"-Wl,-rpath,{folder}" for folder in libraries),
        f"-l:{_library().name}", "-lc10", "-ltorch", "-ltorch_cpu", "-ltorch_python",
    ]  # fmt: skip


def _sources() -> list[pathlib.Path]:
    return sorted(source for source in SOURCES.rglob("*") if source.suffix in (".cpp", ".h"))


def _headers() -> list[pathlib.Path]:
    """The library's own: with another layout of its classes, what was compiled before would corrupt memory."""
    root = pathlib.Path(_where.INCLUDE)
    return sorted(header for room in ("kernels", "schedule", "device", "ccl") for header in (root / room).rglob("*.h"))


def _fingerprint() -> str:
    """Of all that the result depends on."""
    state = hashlib.sha256()
    for part in (torch.__version__, str(torch.version.git_version), sys.version, _where.LIBRARY):
        state.update(part.encode())
    for source in [*_sources(), *_headers()]:
        state.update(source.read_bytes())
    return state.hexdigest()[:16]


def _compile(target: pathlib.Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        raise ImportError(
            f"trellis.torch has no process group for torch {torch.__version__} yet, and no C++ compiler to make it: "
            "install g++ (12 or later), or set CXX"
        )
    print(f"trellis: compiling the process group for torch {torch.__version__}, once", file=sys.stderr)
    part = target.with_suffix(f".{os.getpid()}")
    done = subprocess.run(command(compiler, part), capture_output=True, text=True)
    if done.returncode != 0:
        log = target.with_suffix(".log")
        log.write_text(done.stderr)
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:200])
        raise ImportError(
            f"trellis.torch cannot be compiled for torch {torch.__version__} by {compiler}: {first} (all of it: {log})"
        )
    part.rename(target)


def _lock(name: pathlib.Path) -> TextIO:
    try:
        return open(name, "w")
    except OSError as error:
        raise ImportError(
            f"trellis.torch cannot write its process group to {name.parent}: {error}: "
            "set TRELLIS_CACHE to a folder that can be written"
        ) from error


def path() -> pathlib.Path:
    """Where the module for this torch is; compiles it if it is missing. Processes wait for the first of them."""
    folder = _cache_folder()
    tag = f"torch{torch.__version__}-py{sys.version_info[0]}{sys.version_info[1]}-{_fingerprint()}"
    target = folder / f"{NAME}-{tag}.so"
    if target.exists():
        return target
    with _lock(folder / f"{tag}.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _compile(target)
    return target


@cache
def process_group_module() -> Any:
    """The C++ part. `trellis._native` is loaded first: it brings oneDNN. Loaded after torch, oneDNN would run parts of
    torch's own copy, since both export the same initialization (`std::call_once`)."""
    importlib.import_module("trellis._native")
    where = path()
    loader = importlib.machinery.ExtensionFileLoader(NAME, str(where))
    spec = importlib.util.spec_from_file_location(NAME, where, loader=loader)
    assert spec is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
