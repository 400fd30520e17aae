"""Holds PyTorch's own distributed tests under our backend against gloo, and against pytorch_closed.txt:

    python tests/python/pytorch_compare.py [RANKS]

It fails when a test that gloo passes, and ours does not, is not on the list; when one on the list needs to be there no
longer; when one goes otherwise than the list says once it is opened; and when the installed torch has something else at
the line that is said to close it.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass

HERE = pathlib.Path(__file__).parent
LIST = HERE / "pytorch_closed.txt"
Outcomes = dict[str, list[str]]  # of a test: passed, skipped or failed; why


@dataclass
class Closed:
    """A line of the list."""

    test: str
    ranks: str  # any, or the number
    opened: str  # how it ends then: passed, failed
    file: str
    line: int
    text: str  # what stands there


def listed(ranks: int) -> dict[str, Closed]:
    closed = {}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            test, of, opened, where, text = line.split(" | ", 4)
            file, number = where.split(":")
            if of in ("any", str(ranks)):
                closed[test] = Closed(test, of, opened, file, int(number), text)
    return closed


def outcomes(ranks: int, tests: list[str], **settings: str) -> Outcomes:
    """Runs the suite; all of it when no test is named."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "outcomes.json"
        environment = {"TRELLIS_SUITE_RANKS": str(ranks), "TRELLIS_SUITE_OUTCOMES": str(file), **settings}
        words = [sys.executable, str(HERE / "pytorch_suite.py"), *(f"PyTorchsOwn.{test}" for test in tests)]
        ran = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True)
        if not file.exists():
            raise SystemExit(f"pytorch_compare.py: the suite ended with {ran.returncode}:\n{ran.stderr[-3000:]}")
        found: Outcomes = json.loads(file.read_text())
        return found


def wrong_places(closed: dict[str, Closed]) -> list[str]:
    import torch

    lines: dict[str, list[str]] = {}
    wrong = []
    for one in closed.values():
        if one.file not in lines:
            lines[one.file] = (pathlib.Path(torch.__file__).parent / one.file).read_text().splitlines()
        if one.text not in lines[one.file][one.line - 1]:
            is_there = lines[one.file][one.line - 1].strip()
            wrong.append(f"{one.test}: {one.file}:{one.line} is {is_there!r}, not {one.text!r}")
    return wrong


def differences(closed: dict[str, Closed], gloo: Outcomes, ours: Outcomes, opened: Outcomes) -> list[str]:
    wrong = []
    for test, (how, why) in sorted(ours.items()):
        reason = why.strip().splitlines()[-1] if why.strip() else ""
        gloo_passes = gloo[test][0] == "passed"
        if test in closed:
            if how == "passed" or not gloo_passes:
                wrong.append(f"{test} is listed, but here it is {how}, with gloo {gloo[test][0]}")
            elif opened[test][0] != closed[test].opened:
                wrong.append(f"{test} is listed as {closed[test].opened} once it is opened, but is {opened[test][0]}")
        elif how == "failed" or (gloo_passes and how != "passed"):
            wrong.append(f"{test} is not listed, but here it is {how}, with gloo {gloo[test][0]}: {reason}")
    return wrong + [f"{test} is listed, but torch has no such test" for test in closed if test not in ours]


def main() -> None:
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    closed = listed(ranks)
    gloo = outcomes(ranks, [], TRELLIS_SUITE_BACKEND="gloo")
    ours = outcomes(ranks, [])
    opened = outcomes(ranks, [test for test in closed if test in ours], TRELLIS_SUITE_OPEN="1")
    for name, found in (("gloo", gloo), ("trellis", ours), ("trellis, what is listed opened", opened)):
        ways = [how for how, _ in found.values()]
        counts = ", ".join(f"{ways.count(how)} {how}" for how in ("passed", "skipped", "failed"))
        print(f"{ranks} ranks, {name}: {counts}")
    wrong = wrong_places(closed) + differences(closed, gloo, ours, opened)
    for line in wrong:
        print(line)
    if wrong:
        raise SystemExit(f"pytorch_compare.py: {LIST.name} is wrong in {len(wrong)} places, above")


if __name__ == "__main__":
    main()
