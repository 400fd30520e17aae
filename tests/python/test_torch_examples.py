"""The examples, started by torchrun, against gloo; and the tutorial."""

import os
import pathlib
import re
import sys
import unittest

import pytest

pytest.importorskip("torch")

import programs  # noqa: E402
from trellis._where import PROGRAM  # noqa: E402

SOURCE = pathlib.Path(__file__).parents[2]
EXAMPLES = SOURCE / "examples" / "torch"
sys.path.insert(0, str(SOURCE / "tests" / "tools" / "documents"))
import followed  # noqa: E402


def torchrun(name, count, *arguments, over_gloo=False):
    done = programs.torchrun(count, EXAMPLES / f"{name}.py", *arguments, over_gloo=over_gloo)
    assert done.returncode == 0, done.stderr[-3000:]
    number = "[-+.0-9a-fpx]+"  # lines of several ranks may run into each other
    return sorted(re.findall(rf"step \d+ loss {number}|rank \d+ \w+ {number}(?: loaded {number})?", done.stdout))


def by_gloo(name, count, *arguments):
    return torchrun(name, count, *arguments, "--backend", "gloo", over_gloo=True)


# With two ranks there is one order of additions, a + b. With more, gloo's ring and our schedules add in other orders.
WITH_TWO_RANKS = [
    ("ddp", []),
    ("fsdp2", []),
    ("fsdp2", ["--bf16"]),
    ("fsdp2", ["--adamw"]),
    ("tensor_parallel", []),
    ("pipeline", ["--schedule", "1f1b"]),
    ("pipeline", ["--schedule", "interleaved"]),
    ("pipeline", ["--schedule", "zero_bubble"]),
    ("checkpoint", []),
]


@pytest.mark.parametrize(
    ("name", "arguments"), WITH_TWO_RANKS, ids=lambda value: value if isinstance(value, str) else "".join(value)
)
def test_an_example_equals_gloo_to_the_bit(name, arguments):
    ours = torchrun(name, 2, *arguments)
    assert ours and ours == by_gloo(name, 2, *arguments)


def test_a_mesh_of_three_axes_equals_gloo_to_the_bit():
    ours = torchrun("mesh", 8)
    assert len(ours) == 10 + 8 and ours == by_gloo("mesh", 8)


def test_four_ranks_are_equal_from_run_to_run():
    ours = torchrun("tensor_parallel", 4, "--data", "2")
    assert ours and ours == torchrun("tensor_parallel", 4, "--data", "2")


def test_none_is_forgotten():
    """All of the folder run above; test_torch_launch.py takes them from the folder."""
    assert {name for name, _ in WITH_TWO_RANKS} | {"mesh"} == {path.stem for path in EXAMPLES.glob("*.py")}


def test_the_tutorial_does_what_it_shows(tmp_path):
    page = SOURCE / "docs" / "tutorials" / "pytorch.md"
    path = f"{pathlib.Path(sys.executable).parent}:{pathlib.Path(PROGRAM).parent}:{os.environ['PATH']}"
    environment = {**programs.installed(tmp_path / "site"), "PATH": path, "OMP_NUM_THREADS": "1",
                   "TRELLIS_PYTHON": sys.executable}  # fmt: skip
    assert followed.follow(unittest.TestCase(), page, tmp_path / "page", environment) == 6
