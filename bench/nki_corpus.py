"""Runs public NKI kernels from their authors' repositories, and prints which run and which are right.

  python bench/nki_corpus.py FOLDER [--only TEXT] [--seconds 300] [--results RESULTS.json] [-o TABLE.md]

FOLDER has checkouts under their repositories' names, of those that you want: nki-samples, aws-neuron-sdk, AccelOpt,
kda-for-trainium, autocomp, nki-autotune, asst4-trainium2, asst4-trainium2-x (of xaviergonzalez), trainium-kernel-fusion,
nkipy, and owner+repository of others (students.py, wider.py); nki_library.py runs nki-library's. Nothing of theirs is in this tree. Each kernel runs in
a process of its own; right: the norm of what differs from a plain numpy answer is within the case's tolerance."""

import argparse
import json
import multiprocessing
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "python")]

from nki_cases import benches, harnesses, others, samples, searched, students, wider  # noqa: E402
from nki_cases.case import KernelCase, error  # noqa: E402
from nki_cases.page import put  # noqa: E402


def cases(root: Path) -> list[KernelCase]:
    makers = {"nki-samples": samples.nki_samples, "aws-neuron-sdk": samples.sdk_examples,
              "asst4-trainium2": samples.cs149, "AccelOpt": benches.nkibench,
              "autocomp": searched.autocomp, "nki-autotune": searched.autotune, "trainium-kernel-fusion": others.fusion,
              "asst4-trainium2-x": others.cs149_solution, "nkipy": others.nkipy}
    found = [case for name, make in makers.items() if (root / name).exists() for case in make(root / name)]
    if (root / "autocomp").exists():
        found += harnesses.harnesses(root / "autocomp")
    if (root / "kda-for-trainium").exists() and (root / "AccelOpt").exists():
        found += benches.kda(root / "kda-for-trainium", root / "AccelOpt")
    return found + list(students.students(root)) + list(wider.wider(root))


def judge(case: KernelCase, answer: Any, chip: str, seconds: float, times: bool) -> None:
    """Runs in a process of its own; sends (runs, right, note), and then the time."""
    import trellis.nki
    from trellis.nki.kernels.jit import settings

    warnings.simplefilter("ignore")
    warnings.simplefilter("always", trellis.nki.NkiWarning)
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    began = time.process_time()
    traces: list[Any] = []
    settings.watchers.append(lambda trace, _: traces.append(trace))
    with warnings.catch_warnings(record=True) as heard, trellis.nki.as_nki(chip=chip or case.chip, rules="device"):
        try:
            pairs = case.run()
        except BaseException as e:  # noqa: BLE001 (whatever a foreign file raises is a line of the table)
            place = traceback.extract_tb(e.__traceback__)[-1]
            text = re.sub(r"/\S*/(?=[^/\s]+\.py)", "", str(e).splitlines()[0] if str(e) else "")  # files without their folders
            file = Path(place.filename).name.replace("<frozen importlib._bootstrap>", "import")
            answer.send((False, False, f"{type(e).__name__}: {text}"[:200] + f" [{file}:{place.lineno}]"))
            answer.send("")
            return
    worst = max((error(got, wanted) for got, wanted in pairs), default=float("inf"))
    note = f"error {worst:.1e}, {time.process_time() - began:.0f} s"
    if any("bytes a partition" in str(w.message) for w in heard):
        note += "; does not fit (strict refuses it)"
    answer.send((True, worst <= case.tolerance, note))
    answer.send(time_words(traces) if times else "")


def time_words(traces: list[Any]) -> str:
    """Of the last kernel that was called."""
    from trellis.nki.timing import time_of

    if not traces:
        return ""
    try:
        t = time_of(traces[-1])
    except ValueError as e:
        return f"none: {str(e).partition(':')[0]}"
    return f"{t.seconds * 1e6:.4g} us ({t.low * 1e6:.4g} to {t.high * 1e6:.4g}), {t.chip}"


LADDERS = {"kda": ("kda-for-trainium", "trn2")}  # a ladder's first word: the group of its kernels, and its chip
FULL_SIZE = ("kda-for-trainium", "AccelOpt NKIBench", "AccelOpt samples")  # groups whose times nki_ladders.py makes


def read_times(path: Path) -> dict[tuple[str, str], str]:
    """Of each version, by its group and name."""
    found = {}
    for ladder, rows in json.loads(path.read_text()).items():
        group, chip = LADDERS.get(ladder.split()[0], ("", ""))
        for row in rows if group else ():
            if "us" in row:
                found[group, row["version"]] = f"{row['us']:.4g} us ({row['low_us']:.4g} to {row['high_us']:.4g}), {chip}"
    return found


HEAD = "| kernel | runs | right | note | time | published |"
Judged = tuple[bool, bool, str, str]  # runs, right, note, time
Row = tuple[KernelCase, bool, bool, str, str]


def run(case: KernelCase, seconds: float, chip: str, times: bool) -> Judged:
    case.prepare()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=judge, args=(case, theirs, chip, seconds, times))
    process.start()
    theirs.close()
    found: Any = (False, False, "")
    try:
        found = ours.recv()
        return (*found, ours.recv())
    except EOFError:
        process.join()
        ended = "longer than" if process.exitcode == -signal.SIGXCPU else f"ended with {process.exitcode} within"
        ended += f" {seconds:.0f} s of a processor"
        return (*found, f"none: {ended}") if found[0] else (False, False, ended, "")
    finally:
        process.kill()
        process.join()


def table(rows: list[Row]) -> str:
    out = [HEAD, "|---|---|---|---|---|---|"]
    for case, runs, right, note, us in rows:
        out.append(f"| {case.group}: {case.name} | {'yes' if runs else 'no'} | {'yes' if right else 'no'} | "
                   f"{note.replace('|', '/')} | {us} | {case.published} |")
    groups = dict.fromkeys(case.group for case, *_ in rows)
    out += ["", "| repository | kernels | run | right |", "|---|---|---|---|"]
    for group in groups:
        mine = [(runs, right) for case, runs, right, *_ in rows if case.group == group]
        out.append(f"| {group} | {len(mine)} | {sum(r for r, _ in mine)} | {sum(r for _, r in mine)} |")
    out.append(f"| all | {len(rows)} | {sum(row[1] for row in rows)} | {sum(row[2] for row in rows)} |")
    return "\n".join(out) + "\n"


def keep(known: dict[str, Judged], path: Path) -> None:
    path.write_text("{\n" + ",\n".join(f" {json.dumps(name)}: {json.dumps(row)}" for name, row in known.items()) + "\n}\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="kernels whose repository or name has this text")
    parser.add_argument("--seconds", type=float, default=300, help="of a processor, for each kernel")
    parser.add_argument("--chip", default="", help="trn1, trn2 or trn3, whatever a kernel says")
    parser.add_argument("--ladders", type=Path, metavar="LADDERS.json",
                        help="of nki_ladders.py: the times of KDA's kernels, and none are made of those of full size")
    parser.add_argument("--results", type=Path, metavar="RESULTS.json", help="kept; a kernel that is there is not run again")
    parser.add_argument("--kept", action="store_true", help="nothing is run: the table of what RESULTS.json has")
    parser.add_argument("-o", type=Path, metavar="TABLE.md", help="a table that is there is replaced, and text around it stays")
    options = parser.parse_args()
    ladders = read_times(options.ladders) if options.ladders else {}
    known: dict[str, Judged] = {}
    if options.results and options.results.exists():
        known = {name: tuple(row) for name, row in json.loads(options.results.read_text()).items()}
    chosen = [c for c in cases(options.folder.resolve()) if options.only in f"{c.group}: {c.name}"]
    if not chosen:
        print(f"{options.folder}: no kernel; expected checkouts as --help names them", file=sys.stderr)
        return 1
    rows: list[Row] = []
    left: list[str] = []
    for case in chosen:
        name = f"{case.group}: {case.name}"
        if name not in known and options.kept:
            left.append(name)
            continue
        if name not in known:
            known[name] = run(case, options.seconds, options.chip, not (options.ladders and case.group in FULL_SIZE))
            if options.results:
                keep(known, options.results)
        runs, right, note, us = known[name]
        rows.append((case, runs, right, note, ladders.get((case.group, case.name), us)))
        print(f"{'right' if right else 'WRONG' if runs else 'fails':6} {name}: {note}; {rows[-1][4]}", flush=True)
    text = table(rows)
    print(text[text.index("| repository"):])
    if options.o:
        put([*text.splitlines(), *(["", f"Not run: {'; '.join(left)}."] if left else [])], options.o)
    return 0


if __name__ == "__main__":
    sys.exit(main())
