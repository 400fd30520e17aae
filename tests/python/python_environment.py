"""Finds the interpreter that the package was built for, for the tests that run there."""

import os
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ["TRELLIS_SOURCE_DIR"])
BINARY = pathlib.Path(os.environ["TRELLIS_BINARY_DIR"])


def interpreter() -> str:
    """Skips the test, with the reason, where there is no package to test."""
    found = re.search(r"^TRELLIS_PYTHON:FILEPATH=(.*)$", (BINARY / "CMakeCache.txt").read_text(), re.M)
    if not found or not list((BINARY / "python" / "trellis").glob("_native*.so")):
        raise unittest.SkipTest("the Python package was not built here: nanobind is missing (tools/python brings it)")
    return found[1]


def run(*words: str, needs: tuple[str, ...] = ()) -> None:
    """`interpreter -m words`; skipped where a module that it needs is missing."""
    python = interpreter()
    environment = {**os.environ, "PYTHONPATH": f"{BINARY / 'python'}:{SOURCE / 'tests' / 'python'}"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    if not os.access(pathlib.Path.home(), os.W_OK):  # where the compiled process group would be kept
        environment.setdefault("TRELLIS_CACHE", str(BINARY / "python" / "cache"))
    for module in needs:
        if subprocess.run([python, "-c", f"import {module}"], capture_output=True, env=environment).returncode:
            raise unittest.SkipTest(f"{module} is not installed for {python}")
    if "torch" in needs:
        subprocess.run([python, "-m", "trellis.torch"], check=True, capture_output=True, env=environment)
    done = subprocess.run([python, "-m", *words], cwd=SOURCE, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{' '.join(words)}:\n{done.stdout[-6000:]}\n{done.stderr[-3000:]}")
