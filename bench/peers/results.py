"""What run.py has measured, and how it is shown: as text, and as the tables of ccl/README.md.

A figure is the median over rounds of a round's median or 99th percentile, each of the slowest rank. A library's is the one of
the setting that was fastest at that size in that mode. Where rounds met several modes, a table has ranges over them.
"""
import statistics

from libraries import TITLES

OURS = [("ours", "malloc"), ("ours", "device")]
CACHED = 1 << 20  # bytes; below it the message itself is the bound, not memory


def size_text(size):
    for unit, shift in (("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def number(value):
    """Two digits, three from 100 on: what such machines repeat."""
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if value >= 100 else f"{value:.2g}"


def span(values, text=number):
    low, high = text(min(values)), text(max(values))
    return low if low == high else f"{low} to {high}"


class Results:
    def __init__(self, op, ranks, cores, start, sizes, libraries):
        self.op, self.ranks, self.cores, self.start, self.sizes = op, ranks, cores, start, sizes
        self.libraries = libraries  # name -> names of settings
        self.seen = {}  # mode -> (library, setting) -> one dictionary by size per round
        self.limit = {}  # mode -> the same for the memory bound
        self.told = ""  # about the cores

    def add(self, mode, runs, limit):
        for who, sizes in runs.items():
            self.seen.setdefault(mode, {}).setdefault(who, []).append(sizes)
        if limit:
            self.limit.setdefault(mode, []).append(limit)

    def modes(self):
        return sorted(self.seen, key=["near", "far", "changing", "one core"].index)

    def rounds(self, mode):
        return len(self.seen[mode][OURS[0]])

    def middle(self, mode, who, size):
        return statistics.median(r[size][0] for r in self.seen[mode][who])

    def tail(self, mode, who, size):
        return statistics.median(r[size][1] for r in self.seen[mode][who])

    def best(self, mode, library, size):
        """The subject with the fastest setting."""
        return min(((library, setting) for setting in self.libraries[library]),
                   key=lambda who: self.middle(mode, who, size))

    def faster(self, mode, memory, size):
        """How many times faster than the best library; None without one."""
        others = [self.middle(mode, self.best(mode, name, size), size) for name in self.libraries]
        return min(others) / self.middle(mode, ("ours", memory), size) if others else None

    def heading(self):
        rounds = ", ".join(f"{self.rounds(mode)} {mode}" for mode in self.modes())
        return (f"{self.op} of f32, {self.ranks} ranks on {self.cores} cores; start: {self.start}; "
                f"us, median and 99th percentile; rounds: {rounds}; {self.told}")

    def text(self):
        return "\n\n".join([self.heading(), *(self.mode_text(mode) for mode in self.modes())])

    def mode_text(self, mode):
        names = ["ours", "ours, device", *(TITLES[name] for name in self.libraries)]
        lines = [f"{mode + ' cores':>10}" + "".join(f"  {name:>21}" for name in names) + f"  {'times faster':>12}  "
                 f"{'device':>7}" + (f"  {'memory':>8}  {'of it':>5}" if self.limit else "") + "  algorithm; best settings"]
        for size in self.sizes:
            best = [self.best(mode, name, size) for name in self.libraries]
            cells = [(self.middle(mode, who, size), self.tail(mode, who, size)) for who in OURS + best]
            ratios = [self.faster(mode, memory, size) for _, memory in OURS]
            settings = [f"{TITLES[library]}: {setting}" for library, setting in best]
            lines.append(f"{size:>10}" + "".join(f"  {m:>10.2f} {t:>10.2f}" for m, t in cells)
                         + "".join(f"  {'-' if r is None else format(r, '.2f'):>{w}}" for r, w in zip(ratios, (12, 7)))
                         + self.bound_text(mode, size)
                         + "  " + "; ".join([self.seen[mode][OURS[0]][0][size][2], *settings]))
        return "\n".join(lines)

    def bound_text(self, mode, size):
        if not self.limit:
            return ""
        if size < CACHED:
            return f"  {'':>8}  {'':>5}"
        least = statistics.median(r[size][0] for r in self.limit[mode])
        return f"  {least:>8.0f}  {least / self.middle(mode, OURS[1], size):>5.0%}"

    def cell(self, who_in, size):
        """Median and 99th percentile, each a range over the modes; `who_in` names the subject of a mode."""
        of = self.modes()
        return (span([self.middle(mode, who_in(mode), size) for mode in of]) + " / "
                + span([self.tail(mode, who_in(mode), size) for mode in of]))

    def ratio(self, memory, size):
        values = [self.faster(mode, memory, size) for mode in self.modes()]
        return "-" if None in values else span(values, lambda v: f"{v:.1f}" if v < 9.95 else f"{v:.0f}")

    def table(self):
        """All that is known of one operation, as Markdown."""
        names = list(self.libraries)
        head = [self.op, "ours", "device", *(TITLES[name] for name in names), "times faster", "device", "best settings"]
        rows = []
        for size in self.sizes:
            chosen = []
            for name in names:
                settings = dict.fromkeys(self.best(mode, name, size)[1] for mode in self.modes())
                chosen.append(f"{TITLES[name]}: {' or '.join(settings)}")
            rows.append([size_text(size), *(self.cell(lambda mode, who=who: who, size) for who in OURS),
                         *(self.cell(lambda mode, name=name: self.best(mode, name, size), size) for name in names),
                         *(self.ratio(memory, size) for _, memory in OURS), "; ".join(chosen)])
        return markdown(head, rows)


def ratios(all_results):
    """A row an operation: how many times faster, with device memory in brackets."""
    sizes = sorted({size for results in all_results for size in results.sizes})
    rows = [[results.op, *(f"{results.ratio('malloc', size)} ({results.ratio('device', size)})" if size in results.sizes
                           else "" for size in sizes)] for results in all_results]
    return markdown(["", *map(size_text, sizes)], rows)


def markdown(head, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])
