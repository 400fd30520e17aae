"""The commands of python -m trellis.nki that are about time."""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trellis.nki.timing import subject

if TYPE_CHECKING:
    from trellis.nki.timing.timing import Timing

__all__ = ["COMMANDS", "run_command"]


def _parser(name: str, text: str) -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(f"python -m trellis.nki {name}", description=f"{text}\n\n{subject.HELP}",
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    subject.add_options(p)
    return p


def _timing(which: str, options: argparse.Namespace) -> Timing:
    from trellis.nki.timing.timing import time_of

    return time_of(subject.call_of(which, options).trace, options.chip, subject.figures(options))


def profile(words: list[str]) -> int:
    p = _parser("profile", "How long a kernel takes, what it waited for, its hot lines, and hints.\n\n"
                "  python -m trellis.nki profile mine.py:kernel --arg a=4096x4096:bf16 -o mine.html")
    p.add_argument("kernel", metavar="KERNEL")
    p.add_argument("-o", "--output", default="", help="also a timeline: .html, or .pftrace for ui.perfetto.dev")
    p.add_argument("--json", action="store_true")
    options = p.parse_args(words)
    from trellis import origin

    timing = _timing(options.kernel, options)
    if options.output:
        timing.page(options.output)
    print(
        json.dumps({**timing.json(), "made_by": origin.facts(chip=timing.chip)}, indent=1) if options.json else timing
    )
    return 0


def compare(words: list[str]) -> int:
    p = _parser(
        "compare",
        "Which of two kernels is faster, by how much, and why. Where the intervals meet it says so.\n\n"
        "  python -m trellis.nki compare old.py:kernel new.py:kernel --arg a=4096x4096:bf16",
    )
    p.add_argument("first", metavar="KERNEL")
    p.add_argument("second", metavar="KERNEL")
    p.add_argument("--json", action="store_true")
    options = p.parse_args(words)
    from trellis.nki.timing.compare import Comparison

    both = Comparison(_timing(options.first, options), _timing(options.second, options))
    print(json.dumps(both.json(), indent=1) if options.json else both)
    return 0


def check(words: list[str]) -> int:
    p = _parser("check", "Fails, with status 1, when a kernel is slower by more than 5% than a file says.\n\n"
                "  python -m trellis.nki check mine.py --budget baseline.json --write\n"
                "  python -m trellis.nki check mine.py --budget baseline.json")
    p.add_argument("kernels", metavar="KERNEL", nargs="+")
    p.add_argument("--budget", type=pathlib.Path, required=True, metavar="FILE.json")
    p.add_argument("--write", action="store_true", help="write the current times to the file")
    options = p.parse_args(words)
    from trellis.nki.timing import budget

    timings = {which: _timing(which, options) for which in options.kernels}
    if options.write:
        budget.write(options.budget, timings)
    lines, good = budget.verdicts(options.budget, timings)
    print("\n".join(lines))
    return 0 if good else 1


def one_answer(words: list[str]) -> int:
    p = _parser(
        "answer",
        "One JSON answer for programs that write kernels: right or wrong with the first element that\n"
        "differs, time, interval, hints, and errors with lines. The status is 1 where it is wrong or fails.\n\n"
        "  python -m trellis.nki answer mine.py:kernel --arg x=128x512:f32 --reference mine.py:in_numpy",
    )
    p.add_argument("kernel", metavar="KERNEL")
    p.add_argument("--reference", default="", metavar="FILE.py:FUNCTION",
                   help="in numpy, with the same arguments; :FUNCTION is one of the same file")
    options = p.parse_args(words)
    from trellis.nki.timing.answer import answer

    given: dict[str, Any] = answer(options.kernel, options)
    print(json.dumps(given, indent=1))
    return 1 if given["errors"] or given["right"] is False else 0


def serve(words: list[str]) -> int:
    argparse.ArgumentParser(
        "python -m trellis.nki serve",
        description="Answers programs that write kernels, by the Model "
        "Context Protocol over standard input and output. Needs the Python library mcp.",
    ).parse_args(words)
    from trellis.nki.timing.serve import serve as begin

    return begin()


COMMANDS: dict[str, tuple[Callable[[list[str]], int], str]] = {
    "profile": (profile, "how long a kernel takes, what it waited for, hot lines, hints"),
    "compare": (compare, "which of two kernels is faster, by how much, and why"),
    "check": (check, "fails when a kernel is slower than a file says"),
    "answer": (one_answer, "one JSON answer for programs that write kernels"),
    "serve": (serve, "the same for a client of the Model Context Protocol"),
}


def run_command(name: str, words: list[str]) -> int:
    try:
        return COMMANDS[name][0](words)
    except BrokenPipeError:
        raise
    except (ValueError, OSError) as e:
        print(f"error: {e}", file=sys.stderr)
        return 1
