"""How well the timing of NKI kernels orders versions of one kernel that were measured on hardware.

    python bench/nki_ladders.py FOLDER [--only NAME] [-o RESULTS.json] [--table TABLE.md]

FOLDER has checkouts of public repositories: kda-for-trainium, AccelOpt, nki-samples, autocomp, asst4-trainium2-x
(of xaviergonzalez), trainium-kernel-fusion, nki-autotune. Those that are not there are left out. Prints for each ladder
Kendall's tau over the pairs whose measured times differ by 10% or more, the same for 20%, and of the pairs that were
ranked with disjoint intervals how many are right. A version that cannot be timed is listed, and is in no pair. Where
published values may be halves of times, pairs are certain whose order holds either way. Then times are compared with
published ones.
"""

import argparse
import itertools
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from nki_cases import ladders
from nki_cases.ladders import LadderCase, Measured
from nki_cases.page import put

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


def timed(version: Measured, case: LadderCase) -> Row:
    from trellis.nki import timing

    row: Row = {"version": version.name, "measured": version.value, "published_us": version.value * case.us}
    try:
        begun = time.monotonic()
        trace = version.run()
        t = timing.time_of(trace, case.chip, case.changes)
        start = t.start[0]
        seconds = {"us": t.seconds + start, "low_us": t.low + start, "high_us": t.high + start, "least_us": t.benchmark[1],
                   "most_us": t.benchmark[2]}  # fmt: skip
        row |= {name: round(1e6 * float(s), 2) for name, s in seconds.items()} | {"instructions": len(trace)}
        print(f"  {version.name:40} {version.value:9.4g}  {row['us']:10.1f} us [{row['low_us']:.1f}, {row['high_us']:.1f}]  "
              f"{len(trace)} instructions, {time.monotonic() - begun:.1f} s", flush=True)  # fmt: skip
    except Exception as e:  # a table of what runs: the fault is its row
        text = re.sub(r"/\S*/(?=[^/\s]+\.py)", "", str(e).splitlines()[0] if str(e) else "")  # files without their folders
        row["fault"] = f"{type(e).__name__}: {text}"[:200]
        print(f"  {version.name:40} {version.value:9.4g}  {row['fault'][:140]}", flush=True)
    return row


def pairs(rows: list[Row], least: float = DIFFERENT) -> list[tuple[Row, Row]]:
    """Of timed versions: the slower one first, as measured."""
    found = []
    for a, b in itertools.combinations([r for r in rows if "us" in r and r["alike"]], 2):
        slow, fast = (a, b) if a["measured"] > b["measured"] else (b, a)
        if slow["measured"] >= least * fast["measured"]:
            found.append((slow, fast))
    return found


def certain(of: list[tuple[Row, Row]]) -> list[tuple[Row, Row]]:
    """Those whose order holds whichever of the values are halves."""
    return [p for p in of if not p[0]["halved"] or p[0]["measured"] >= 2 * DIFFERENT * p[1]["measured"]]


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
    sure = certain(some)
    return (f"| {name} | {versions} | {at_all} | {len(some)} | {tau(some):.2f} | {tau(clear):.2f} | {apart} | {right} | "
            f"{len(sure)} | {tau(sure):.2f} |")  # fmt: skip


HEAD = ("| ladder | versions | timed | pairs | tau | tau at 20% | ranked | right | certain | tau of them |",
        "|---|---|---|---|---|---|---|---|---|---|")  # fmt: skip


def error(row: Row) -> float:
    """Of the time, over what was published."""
    return abs(row["us"] / row["published_us"] - 1)


def times(results: dict[str, list[Row]]) -> list[str]:
    """Times against published ones, of kernels whose published values are whole times."""
    lines = ["| kernel | published | time | from | to | error | inside |", "|---|---|---|---|---|---|---|"]
    found = []
    for name, rows in results.items():
        for row in rows:
            if row["halved"]:
                continue
            label = f"| {name}: {row['version']} | {row['published_us']:.4g} us |"
            if "us" not in row:
                lines.append(f"{label} {row['fault'].replace('|', '/')[:120]} | | | | |")
                continue
            inside = row["least_us"] <= row["published_us"] <= row["most_us"]
            found.append((error(row), inside))
            lines.append(f"{label} {row['us']:.4g} us | {row['least_us']:.4g} us | {row['most_us']:.4g} us | "
                         f"{100 * (row['us'] / row['published_us'] - 1):+.0f}% | {'yes' if inside else 'no'} |")  # fmt: skip
    if found:
        errors = [e for e, _ in found]
        lines += ["", f"{len(found)} kernels: error {100 * statistics.median(errors):.0f}% in the median, {100 * max(errors):.0f}% "
                  f"at most, {100 * sum(i for _, i in found) / len(found):.0f}% inside the interval"]  # fmt: skip
    return lines


SITES = {"tutorial": "aws-neuron/nki-samples", "autocomp": "ucb-bar/autocomp", "cs149": "xaviergonzalez/asst4-trainium2",
         "fusion": "allenkchau/trainium-kernel-fusion", "nki-autotune": "awslabs/nki-autotune", "nkibench": "zhang677/AccelOpt"}  # fmt: skip


def records(results: dict[str, list[Row]]) -> list[dict[str, Any]]:
    """The same kernels as `times` has, for `trellis validate`: nki.TABLE.KERNEL, a table in its first two words."""
    found = []
    for name, rows in results.items():
        words = name.split()
        for row in rows:
            if row["halved"] or "us" not in row:
                continue
            rest = "_".join([*words[2:], row["version"]]).replace(" ", "_").replace(".", "_")
            found.append({"id": f"nki.{'_'.join(words[:2])}.{rest}", "value": round(row["published_us"], 3), "unit": "us",
                          "source": f"github.com/{SITES[words[0]]}",
                          "parameters": {"simulated": row["us"], "low": row["low_us"], "high": row["high_us"]}})  # fmt: skip
    return sorted(found, key=lambda record: record["id"])


def table(results: dict[str, list[Row]]) -> list[str]:
    lines = list(HEAD)
    for source in SOURCES:
        mine = {name: rows for name, rows in results.items() if name.split()[0] == source or
                (source == "autotune" and name.startswith("nki-autotune"))}  # fmt: skip
        lines += [summary(name, [rows]) for name, rows in mine.items()] if len(mine) < 8 or source == "kda" else []
        if len(mine) > 1:
            lines.append(summary(f"**{source}, all**", list(mine.values())))
    return [*lines, summary("**all**", [rows for rows in results.values() if rows and rows[0]["alike"]])]


def model_version() -> str:
    """Of what makes the times: rows of one version can be compared."""
    at = subprocess.run(["git", "rev-parse", "--short=10", "HEAD:python/trellis/nki"], cwd=pathlib.Path(__file__).parent,
                        capture_output=True, text=True, check=False)  # fmt: skip
    return at.stdout.strip() if at.returncode == 0 else ""


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=pathlib.Path, help="a folder that is not there: only tables of what --output had")
    p.add_argument("--only", action="append", default=[], help="ladders whose name has this; more than once: any")
    p.add_argument("--missing", action="store_true", help="versions that --output has are not timed again")
    p.add_argument("-o", "--output", type=pathlib.Path, help="the results as JSON; ladders that are there stay")
    p.add_argument("--table", type=pathlib.Path, help="a table of these and of what --output had; in a page that has one, in its place")
    p.add_argument("--times", type=pathlib.Path, help="a table of times against published ones, likewise")
    p.add_argument("--records", type=pathlib.Path, help="records with those times for trellis validate")
    options = p.parse_args()
    import trellis.nki as nki

    nki.settings.compute = nki.settings.prints = False
    known = json.loads(options.output.read_text()) if options.output and options.output.exists() else {}
    results: dict[str, list[Row]] = known
    model = model_version()
    with nki.as_nki():
        for folders, make in SOURCES.values():
            roots = [options.folder / f for f in folders]
            for case in make(*roots) if all(r.exists() for r in roots) else ():
                if options.only and not any(each in case.name for each in options.only):
                    continue
                print(f"{case.name} on {case.chip}", flush=True)
                nki.settings.chip = case.chip
                before = {row["version"]: row for row in results.get(case.name, ())} if options.missing else {}
                results[case.name] = rows = [before[v.name] for v in case.versions if v.name in before]
                for version in case.versions:
                    if version.name in before:
                        continue
                    rows.append(timed(version, case) | {"alike": case.alike, "halved": case.halved, "model": model})
                    if options.output:
                        options.output.write_text(json.dumps(results, indent=1) + "\n")
    lines = table(results)
    print("\n".join([*lines, "", *times(results)]))
    for path, text in ((options.table, lines), (options.times, times(results))):
        if path:
            put(text, path)
    if options.records:
        lines = [json.dumps(record) for record in records(results)]
        options.records.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
