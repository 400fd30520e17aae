"""A server of the Model Context Protocol over standard input and output, by the protocol's own library, mcp."""

import argparse
import contextlib
import importlib
import os
import sys
import tempfile
from typing import Any

from trellis.nki.timing.answer import answer_and_timing
from trellis.nki.timing.compare import Comparison
from trellis.nki.timing.timing import Timing

__all__ = ["serve"]


def options_for(arguments: dict[str, str], **more: Any) -> argparse.Namespace:
    """What the command line would have given."""
    known = {"arg": [f"{k}={v}" for k, v in arguments.items()], "grid": "", "set": [], "what_if": [], "chip": "",
             "seed": 0, "reference": ""}  # fmt: skip
    return argparse.Namespace(**(known | {k: v for k, v in more.items() if v}))


def time_kernel(source: str, kernel: str, arguments: dict[str, str], reference: str = "", chip: str = "",
                constants: dict[str, str] | None = None) -> dict[str, Any]:
    """Runs and times an NKI kernel without hardware.

    source: the text of a Python file that imports nki, or neuronxcc.nki; or the path of such a file. kernel: its
    function. arguments: arrays as "128x512:bf16", or values. reference: a function of the same file, in numpy, with the
    same arguments. chip: trn1, trn2 or trn3. constants: other values of constants of the file's top level. The answer
    says whether it is right, microseconds with an interval, what it waited for, hints, and errors with lines.
    """
    return _answered(source, kernel, arguments, reference, chip, constants)[0]


def _answered(source: str, kernel: str, arguments: dict[str, str], reference: str = "", chip: str = "",
              constants: dict[str, str] | None = None) -> tuple[dict[str, Any], Timing | None]:
    from trellis.nki.imports import as_nki

    options = options_for(arguments, reference=f":{reference}" if reference else "", chip=chip,
                          set=[f"{k}={v}" for k, v in (constants or {}).items()])  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = source
        if not source.endswith(".py") or "\n" in source:
            path = os.path.join(folder, "kernel.py")
            with open(path, "w") as file:
                file.write(source)
        # What a kernel prints must not be taken for the protocol's.
        with contextlib.redirect_stdout(sys.stderr), as_nki(chip=chip):
            return answer_and_timing(f"{path}:{kernel}", options)


def compare_kernels(first: str, second: str, kernel: str, arguments: dict[str, str], chip: str = "") -> dict[str, Any]:
    """Which of two kernels is faster: two texts (or paths) with a function of the same name and arguments.

    faster: first or second, where the intervals are apart; likely first or likely second, where they meet and one is
    faster at both ends; else draw.
    """
    (one, its), (two, other) = (_answered(each, kernel, arguments, chip=chip) for each in (first, second))
    if its is None or other is None:
        return {"faster": None, "errors": one["errors"] + two["errors"]}
    return Comparison(its, other).json()


def _server_class() -> Any:
    """mcp 2 and mcp 1 name it differently."""
    try:
        return importlib.import_module("mcp.server.mcpserver").MCPServer
    except ImportError:
        return importlib.import_module("mcp.server.fastmcp").FastMCP


def serve() -> int:
    try:
        kind = _server_class()
    except ImportError:
        print("error: nki serve needs the protocol's Python library: pip install mcp", file=sys.stderr)
        return 1
    server = kind("trellis-nki", instructions="Runs and times NKI kernels for Trainium without hardware.")
    server.tool()(time_kernel)
    server.tool()(compare_kernels)
    server.run("stdio")
    return 0
