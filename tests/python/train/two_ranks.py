"""Runs a script as two ranks that `trellis launch` starts."""

import os
import pathlib
import subprocess
import sys

from trellis._where import PROGRAM


def said_by_two_ranks(where: pathlib.Path, script: str, **words: str) -> str:
    """What both print. {tests} in the script is the folder of these tests; {{ and }} are braces."""
    file = where / "script.py"
    file.write_text(script.format(tests=str(pathlib.Path(__file__).parent), **words))
    ran = subprocess.run([PROGRAM, "launch", "-n", "2", "--raw", "--", sys.executable, file], text=True,
                         capture_output=True, timeout=120, env=os.environ)  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
