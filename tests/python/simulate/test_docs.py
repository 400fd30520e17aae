"""The commands of docs/simulate.md, as they stand there."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("torch")

from trellis._where import PROGRAM  # noqa: E402

HERE = pathlib.Path(__file__).parent
TEXT = (HERE.parents[2] / "docs" / "simulate.md").read_text()


def test_every_command_does_what_it_is_there_for(tmp_path):
    shutil.copy(HERE / "jobs" / "tiny.py", tmp_path / "train.py")
    commands = [line.split("    ")[1] for line in TEXT.splitlines() if line.startswith("    trellis simulate")]
    assert len(commands) == 7
    answers = []
    for command in commands:
        words = shlex.split(command)
        done = subprocess.run(
            [PROGRAM, *words[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=400,
            env={**os.environ, "TRELLIS_PYTHON": sys.executable, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr[-3000:]}"
        answers.append(done.stdout)
        if "--record" in words:
            shutil.copy(tmp_path / "job.record", tmp_path / "other.record")
    assert all(re.search(r"(8|16) ranks: a step takes [\d.]+ ", answer) for answer in answers)
    assert answers[0].splitlines()[1:] == answers[1].splitlines()[1:]
    assert sorted(p.name for p in tmp_path.glob("job.*.et")) == [f"job.{rank}.et" for rank in range(8)]
    for name in ("job.txt", "job.0.et"):
        subprocess.run([PROGRAM, "sim", name, "--machine", "trn2.48xlarge"], cwd=tmp_path, check=True)
