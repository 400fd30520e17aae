#!/usr/bin/env python3
"""How much slower the algorithms of a selection table are than the best ones that were measured: regret.py COSTS [TABLE]

COSTS is a file of this folder, TABLE one that `trellis tune` writes (ccl/selections/host.txt, which is built in). For each
collective, number of ranks and memory it prints the time of the table's choice over that of the fastest algorithm at each
size, and at the end the median, the 90th percentile and the worst of all. A choice that was not measured, for lack of a
candidate of its shape, is left out.
"""
import json
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent


def rules_in(path):
    """(collective, ranks) -> [(from bytes, config)], of the rules for any machine and type."""
    rules = {}
    for line in path.read_text().splitlines():
        words = line.split("#")[0].split()
        if len(words) == 4:
            rules.setdefault((words[0], int(words[1])), []).append((int(words[2]), words[3]))
    return rules


def chosen(rules, collective, ranks, size):
    counts = [n for name, n in rules if name == collective]
    if not counts:
        return None
    nearest = min(counts, key=lambda n: abs(n - ranks))
    fitting = [config for least, config in sorted(rules[collective, nearest]) if least <= size]
    return fitting[-1] if fitting else None


def regrets(costs, rules):
    """(key, size, config, regret) for each size of each key."""
    for key, configs in costs.items():
        collective, ranks, _ = key.split()
        for size in sorted({int(s) for times in configs.values() for s in times}):
            times = {config: t[str(size)][0] for config, t in configs.items() if str(size) in t}
            config = chosen(rules, collective, int(ranks), size)
            if config in times:
                yield key, size, min(times, key=times.get), times[config] / min(times.values())


def main(costs, table=HERE.parent.parent / "ccl/selections/host.txt"):
    data = json.loads(pathlib.Path(costs).read_text())
    found = list(regrets(data["costs"], rules_in(pathlib.Path(table))))
    for key in data["costs"]:
        row = [f"{size}: {ratio:.2f} ({best})" for k, size, best, ratio in found if k == key]
        print(f"{key}\n    " + "\n    ".join(row))
    ratios = sorted(ratio for *_, ratio in found)
    print(f"\n{len(ratios)} choices: median {statistics.median(ratios):.2f}, 90th percentile "
          f"{ratios[len(ratios) * 9 // 10]:.2f}, worst {ratios[-1]:.2f}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or "-h" in sys.argv[1:] or "--help" in sys.argv[1:]:
        sys.exit(__doc__)
    main(*sys.argv[1:])
