"""docs/nki_faster.md: each command runs, and the times go the way that the page says."""

import json
import pathlib
import shlex
import subprocess
import sys

import pytest

pytest.importorskip("ml_dtypes")

ROOT = pathlib.Path(__file__).parents[3]
PAGE = ROOT / "docs/nki_faster.md"
COMMANDS = [line.strip() for line in PAGE.read_text().splitlines() if line.startswith("    python -m trellis.nki ")]
RIGHT = ("--arg", "left=1024x1024:bf16", "--arg", "right=1024x2048:bf16")


def run(words, folder):
    command = [sys.executable, *(str(ROOT / w) if w.startswith("examples/") else w for w in words)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert ran.returncode == 0, f"{words}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def test_every_command_of_the_page_runs(tmp_path):
    assert len(COMMANDS) == 10
    said = [run(shlex.split(command)[1:], tmp_path) for command in COMMANDS]
    assert "the second is" in said[1] and "faster" in said[1]
    assert "the second is" in said[2] and "faster" in said[2]
    assert (tmp_path / "blocked.html").stat().st_size > 10_000
    assert json.loads(said[-1])["right"] is True


def test_each_step_is_faster_and_moves_less(tmp_path):
    steps = [
        json.loads(run(["-m", "trellis.nki", "profile", f"examples/nki/faster.py:{name}", *RIGHT, "--json"], tmp_path))
        for name in ("tiled", "kept", "blocked")
    ]
    assert steps[0]["us"] > 1.1 * steps[1]["us"] > 1.5 * steps[2]["us"]
    assert steps[0]["dma"]["bytes"] > steps[1]["dma"]["bytes"] > steps[2]["dma"]["bytes"]
    assert "dma" in steps[0]["waits"][0]
    assert "src=tensor[row : row + rows" in steps[0]["hot_lines"][0]["line"]  # the line that loads
