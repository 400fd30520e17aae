"""The examples, started by `trellis launch`: all of them."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from trellis._where import PROGRAM  # noqa: E402

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "torch"
RANKS = {"mesh": 8}  # of those that do not take two


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.py")))
def test_trellis_launch_starts_each(name):
    ranks = RANKS.get(name, 2)
    words = [PROGRAM, "launch", "-n", str(ranks), sys.executable, str(EXAMPLES / f"{name}.py")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=environment)
    ended = re.findall(r"rank (\d+) (?:parameters|saved)", done.stdout)
    assert done.returncode == 0 and sorted(map(int, ended)) == list(range(ranks)), done.stderr[-3000:]
