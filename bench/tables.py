#!/usr/bin/env python3
"""Prints the tables of measurements in bench/results as Markdown: tables.py [NAME...]

NAME is a file of bench/results without its .json; without a name all that hold tables are printed. Each says what was
measured, on which machine, when and how. A cell is a number, a text, or
    [low, high]                          medians that range from one to the other
    {"median": ..., "p99": ...}          printed as median / p99
    {"time": ..., "device": ...}         printed as time (device): with memory from malloc, and from the device
    {"time": ..., "by": ...}             printed as time (by): with the fastest setting, or against the best library
"""
import json
import pathlib
import sys

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
PAIRS = {("median", "p99"): "{} / {}", ("time", "device"): "{} ({})", ("time", "by"): "{} ({})"}


def cell(value):
    if value is None:
        return ""
    if isinstance(value, dict):
        return PAIRS[tuple(value)].format(*map(cell, value.values()))
    if isinstance(value, list):
        return " to ".join(map(cell, value))
    return str(value)


def row(cells):
    return "| " + " | ".join(map(cell, cells)) + " |"


def table(one):
    return [one["title"], "", row(one["columns"]), "|" + "---|" * len(one["columns"]), *map(row, one["rows"]), ""]


def printed(result):
    made = ", ".join(f"{key} {value}" for key, value in result["made"].items() if key != "how")
    lines = [f"# {result['what']}", "", ", ".join(map(str, result["machine"].values())) + f". {made}.", "",
             result["made"]["how"], ""]
    for one in result["tables"]:
        lines += table(one)
    return "\n".join(lines)


def results():
    """{name: content} of the files that hold tables."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}
    return {name: result for name, result in found.items() if "tables" in result}


def main(names):
    known = results()
    for name in names:
        if name not in known:
            sys.exit(f"tables.py: no results are called '{name}': expected one of {', '.join(known)}")
    print("\n".join(printed(known[name]) for name in names or known), end="")


if __name__ == "__main__":
    main(sys.argv[1:])
