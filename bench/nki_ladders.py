"""How well the timing of NKI kernels orders versions of one kernel that were measured on hardware.

    python bench/nki_ladders.py FOLDER [--only NAME] [-o RESULTS.json] [--table TABLE.md]

FOLDER has checkouts of public repositories: kda-for-trainium, AccelOpt, nki-samples, autocomp, asst4-trainium2-x
(of xaviergonzalez), trainium-kernel-fusion, nki-autotune. Those that are not there are left out. Prints for each ladder
Kendall's tau over the pairs whose measured times differ by 10% or more, the same for 20%, and of the pairs that were
ranked with disjoint intervals how many are right. A version that cannot be timed is listed, and is in no pair.
"""

import argparse
import itertools
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from nki_cases import ladders
from nki_cases.ladders import LadderCase, Measured

DIFFERENT = 1.1  # measured times that differ by less are no pair
CLEARLY = 1.2

SOURCES: dict[str, tuple[tuple[str, ...], Callable[..., Iterator[LadderCase]]]] = {
    "kda": (("kda-for-trainium", "AccelOpt/NKIBench"), ladders.kda),
    "nkibench": (("AccelOpt",), ladders.nkibench),
    "tutorial": (("nki-samples",), ladders.tutorial),
    "autocomp": (("autocomp",), ladders.autocomp),
    "cs149": (("asst4-trainium2-x",), ladders.cs149),
    "fusion": (("trainium-kernel-fusion",), ladders.fusion),
    "autotune": (("nki-autotune",), ladders.autotune),
}
Row = dict[str, Any]


def timed(version: Measured, chip: str) -> Row:
    from trellis.nki import timing

    row: Row = {"version": version.name, "measured": version.value}
    try:
        begun = time.monotonic()
        trace = version.run()
        t = timing.time_of(trace, chip)
        row |= {"us": round(t.seconds * 1e6, 2), "low_us": round(t.low * 1e6, 2), "high_us": round(t.high * 1e6, 2),
                "instructions": len(trace)}  # fmt: skip
        print(f"  {version.name:40} {version.value:9.4g}  {row['us']:10.1f} us [{row['low_us']:.1f}, {row['high_us']:.1f}]  "
              f"{len(trace)} instructions, {time.monotonic() - begun:.1f} s", flush=True)  # fmt: skip
    except Exception as e:  # a table of what runs: the fault is its row
        row["fault"] = f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:200]
        print(f"  {version.name:40} {version.value:9.4g}  {row['fault'][:140]}", flush=True)
    return row


def pairs(rows: list[Row], least: float = DIFFERENT) -> list[tuple[Row, Row]]:
    """Of timed versions: the slower one first, as measured."""
    found = []
    for a, b in itertools.combinations([r for r in rows if "us" in r], 2):
        slow, fast = (a, b) if a["measured"] > b["measured"] else (b, a)
        if slow["measured"] >= least * fast["measured"]:
            found.append((slow, fast))
    return found


def tau(of: list[tuple[Row, Row]]) -> float:
    signs = [(slow["us"] > fast["us"]) - (slow["us"] < fast["us"]) for slow, fast in of]
    return statistics.mean(signs) if signs else float("nan")


def ranked(of: list[tuple[Row, Row]]) -> tuple[int, int]:
    """Pairs with disjoint intervals, and how many of them are right."""
    right = sum(slow["low_us"] > fast["high_us"] for slow, fast in of)
    return right + sum(fast["low_us"] > slow["high_us"] for slow, fast in of), right


def summary(name: str, all_rows: list[list[Row]]) -> str:
    versions = sum(map(len, all_rows))
    at_all = sum("us" in r for rows in all_rows for r in rows)
    some = [p for rows in all_rows for p in pairs(rows)]
    clear = [p for rows in all_rows for p in pairs(rows, CLEARLY)]
    apart, right = ranked(some)
    return f"| {name} | {versions} | {at_all} | {len(some)} | {tau(some):.2f} | {tau(clear):.2f} | {apart} | {right} |"


HEAD = ("| ladder | versions | timed | pairs | tau | tau at 20% | ranked | right |", "|---|---|---|---|---|---|---|---|")


def table(results: dict[str, list[Row]]) -> list[str]:
    lines = list(HEAD)
    for source in SOURCES:
        mine = {name: rows for name, rows in results.items() if name.split()[0] == source or
                (source == "autotune" and name.startswith("nki-autotune"))}  # fmt: skip
        lines += [summary(name, [rows]) for name, rows in mine.items()] if len(mine) < 8 or source == "kda" else []
        if len(mine) > 1:
            lines.append(summary(f"**{source}, all**", list(mine.values())))
    return [*lines, summary("**all**", list(results.values()))]


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--only", action="append", default=[], help="ladders whose name has this; more than once: any")
    p.add_argument("-o", "--output", type=pathlib.Path, help="the results as JSON; ladders that are there stay")
    p.add_argument("--table", type=pathlib.Path, help="a table of these and of what --output had")
    options = p.parse_args()
    import trellis.nki as nki

    nki.settings.compute = nki.settings.prints = False
    known = json.loads(options.output.read_text()) if options.output and options.output.exists() else {}
    results: dict[str, list[Row]] = known
    with nki.as_nki():
        for folders, make in SOURCES.values():
            roots = [options.folder / f for f in folders]
            for case in make(*roots) if all(r.exists() for r in roots) else ():
                if options.only and not any(each in case.name for each in options.only):
                    continue
                print(f"{case.name} on {case.chip}", flush=True)
                nki.settings.chip = case.chip
                results[case.name] = [timed(v, case.chip) for v in case.versions]
                if options.output:
                    options.output.write_text(json.dumps(results, indent=1) + "\n")
    lines = table(results)
    print("\n".join(lines))
    if options.table:
        options.table.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
