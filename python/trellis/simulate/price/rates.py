"""Times of single operations and communications on a machine, each asked for once."""

from collections.abc import Iterator, Sequence
from math import gcd
from typing import Any

from trellis import sim
from trellis.simulate.price.rules import Rule, rule_of
from trellis.simulate.record import Family, Operation
from trellis.simulate.record.steps import KernelTime

__all__ = ["COMPUTE_FACTOR", "Rates", "ranks_words", "shift_ends"]

COMPUTE_FACTOR = 1.25  # published step times lie within it of the model, four of five

# As in `trellis train price`: an exchange's algorithm may be slower than the fastest by this part, it is searched for
# with this effort, and at most so many groups are simulated at once.
_ENOUGH, _EFFORT, _GROUPS = 0.03, 500_000, 64


def ranks_words(group: tuple[int, ...]) -> str:
    """ "0-63:8": as few words as say it; the order of the members is kept."""
    steps = {b - a for a, b in zip(group, group[1:], strict=False)}
    if len(group) > 2 and len(steps) == 1 and (step := steps.pop()) > 0:
        return f"{group[0]}-{group[-1]}" + (f":{step}" if step > 1 else "")
    return ",".join(map(str, group))


def _alike(size: int) -> int:
    """The size for which an algorithm is chosen: up to it, by a fourth of a power of two, and up to 1 KiB the same."""
    if size <= 1024:
        return 1024
    step = 1 << (size - 1).bit_length() - 3
    return -(-size // step) * step


def _words(kind: str, size: int, root: int) -> str:
    sized = f" {max(size, 1)}B" if kind != "barrier" else ""
    return f"{kind} c{sized} on g" + (f" root {root}" if root >= 0 else "")


def shift_ends(groups: Sequence[tuple[int, ...]], by: int) -> list[tuple[str, str]]:
    """Who sends, and to whom: to the member of the own group that is `by` places further. In rounds that are begun at
    once, in each of which a rank stands once: as places along a cycle are even, odd, or the last of an odd number."""
    size = len(groups[0])
    cycle = size // gcd(size, by)
    rounds: dict[int, list[int]] = {}
    for start in range(size // cycle):
        for step in range(cycle):
            which = 2 if step == cycle - 1 and cycle % 2 else step % 2
            rounds.setdefault(which, []).append((start + step * by) % size)
    return [(",".join(str(g[p]) for g in groups for p in places),
             ",".join(str(g[(p + by) % size]) for g in groups for p in places))
            for places in rounds.values()]  # fmt: skip


def _figures(machine: sim.Machine) -> dict[str, float]:
    return {name: figure.value for name, figure in machine.figures.items()}


_UNITS = {"rate": "B/s", "frequency": "Hz", "time": "s", "bytes": "B", "cycles": "cycles"}


def _changes(machine: sim.Machine) -> list[str]:
    """Figures of the chip that this machine has otherwise."""
    stock = sim.chip_figures(machine.chip) if machine.chip else {}
    changed = [(n, f) for n, f in machine.figures.items() if n in stock and f.value != stock[n].value]
    return [f"{name}={f.value!r} {_UNITS.get(f.dimension, '')}".strip() for name, f in changed]


class Rates:
    """Seconds."""

    def __init__(self, machine: sim.Machine, families: list[Family], era: str = "") -> None:
        self.machine, self.families, self.era = machine, families, era
        self._what_if = _changes(machine)
        self._cores = machine.figures["cores"].value * machine.chips / machine.ranks if machine.chip else 0.0
        self._operations: dict[tuple[Operation, float], float] = {}
        self.rules: dict[Operation, Rule] = {}
        self._collectives: dict[tuple[str, int, int, int], float] = {}
        self._messages: dict[tuple[int, int, int, int], float] = {}
        self._low_high: dict[tuple[str, int, int], tuple[float, float]] = {}
        self._algorithms: dict[tuple[str, tuple[int, ...], int, int], str] = {}
        self.algorithms: dict[tuple[str, int, int, int], str] = {}
        self.largest: dict[tuple[str, int], int] = {}

    def operation(self, o: Operation, memory: float = 1.0) -> float:
        """`memory`: how many times as long as usual the rank's HBM takes. A kernel's own time is of usual memory."""
        if (o, memory) not in self._operations:
            self.rules[o] = rule_of(o)
            self._operations[o, memory] = self._kernel(o).seconds if o.times else self.time(self.rules[o], memory)
        return self._operations[o, memory]

    def operation_end(self, o: Operation, high: bool, memory: float = 1.0) -> float:
        """An end of its interval."""
        if not o.times:
            return self.operation(o, memory) * (COMPUTE_FACTOR if high else 1 / COMPUTE_FACTOR)
        kernel = self._kernel(o)
        return kernel.high if high else kernel.low

    def _kernel(self, o: Operation) -> KernelTime:
        found = next((t for t in o.times if t.chip == self.machine.chip), None)
        if found is None:
            raise ValueError(f"{o.name}: the kernel runs on {', '.join(t.chip for t in o.times)}, and "
                             f"{self.machine.base} has chips of {self.machine.chip}")  # fmt: skip
        return found

    def time(self, rule: Rule, memory: float = 1.0) -> float:
        """Of tensors without elements, as an expert's that gets no tokens: nothing is done."""
        if any(rule.shape.get(name) == 0 for name in ("batch", "rows", "columns", "inner")):
            return 0.0
        what_if = self._what_if
        if memory != 1:
            what_if = [*what_if, f"hbm.rate={self.machine.figures['hbm.rate'].value / memory!r} B/s"]
        return sim.operation_time(rule.kind, chip=self.machine.chip, cores=self._cores, what_if=what_if,
                                  **rule.shape).total

    def collective(self, kind: str, family: int, size: int, root: int) -> float:
        """Of all groups of the family at once: they share links."""
        key = (kind, family, size, root)
        if key not in self._collectives:
            self._collectives[key], self.algorithms[key] = self._collective(*key)
            self.largest[kind, family] = max(size, self.largest.get((kind, family), 0))
        return self._collectives[key]

    def _collective(self, kind: str, family: int, size: int, root: int) -> tuple[float, str]:
        groups = self.families[family].groups
        if len(groups[0]) < 2:
            return 0.0, "nothing moves"
        return max(self._together(kind, beside, size, root) for beside in self._beside(groups))

    def _together(self, kind: str, groups: list[tuple[int, ...]], size: int, root: int) -> tuple[float, str]:
        if kind == "shift":
            return self._shift(groups, size, root), "messages"
        chosen = self._chosen(kind, groups[0], _alike(size), root)
        named = f"group g {' '.join(ranks_words(g) for g in groups)}"
        return self._play(named, f"{_words(kind, size, root)} by {chosen}").time, chosen

    def _chosen(self, kind: str, group: tuple[int, ...], size: int, root: int) -> str:
        """The algorithm of a group that is alone."""
        key = (kind, group, size, root)
        if key not in self._algorithms:
            alone = self._play(f"group g {ranks_words(group)}", _words(kind, size, root))
            self._algorithms[key] = alone.parts[0][4]
        return self._algorithms[key]

    def _play(self, *lines: str) -> sim.Played:
        text = "\n".join([f"ranks {self._world()}", *lines, ""])
        return sim.play(text, self.machine, era=self.era, within=_ENOUGH, most_effort=_EFFORT)

    def _beside(self, groups: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
        """The first group, and those that share hosts with it: they do the same at about the same time, and what other
        hosts do is nothing to them. Then the same of each other group that is on a host with a defect."""
        host = self.machine.host_ranks
        hosts_of = [{rank // host for rank in group} for group in groups]
        defects = {rank // host for rank in self.machine.at_defects}
        done: set[int] = set()
        for lead, hosts in enumerate(hosts_of):
            if lead and (lead in done or not hosts & defects):
                continue
            order = [*range(lead, len(groups)), *range(lead)]
            beside = [g for g in order if hosts_of[g] & hosts][:_GROUPS]
            done.update(g for g in beside if hosts_of[g] <= hosts)
            yield [groups[g] for g in beside]

    def _shift(self, groups: list[tuple[int, ...]], size: int, by: int) -> float:
        return self._play(*(f"send_recv m{number} {max(size, 1)}B from {source} to {target} stream s{number}"
                            for number, (source, target) in enumerate(shift_ends(groups, by)))).time  # fmt: skip

    def _world(self) -> int:
        return len(self.families[0].groups[0])

    def message(self, family: int, source: int, target: int, size: int) -> float:
        """Of all groups of the family at once."""
        key = (family, source, target, size)
        if key not in self._messages:
            pairs = [(g[source], g[target]) for g in self.families[family].groups]
            self._messages[key] = max(self._sent(beside, size) for beside in self._beside(pairs))
        return self._messages[key]

    def _sent(self, pairs: list[tuple[int, ...]], size: int) -> float:
        ends = [",".join(map(str, each)) for each in zip(*pairs, strict=True)]
        return self._play(f"send_recv m {max(size, 1)}B from {ends[0]} to {ends[1]}").time

    def spread(self, kind: str, family: int) -> tuple[float, float]:
        """The ends of the machine's interval as factors of the time, of the largest collective of the kind."""
        key = (kind, self.families[family].size, _alike(self.largest.get((kind, family), 1)))
        if key not in self._low_high:
            told: dict[str, Any] = {"ranks": key[1], "explain": False, "era": self.era}
            try:
                named = "send_recv" if kind == "shift" else kind
                price = sim.price(named, self.machine, key[2], **told)
                low, high = price.interval.low / price.time, price.interval.high / price.time  # type: ignore[union-attr]
            except ValueError:
                low, high = 1.0, 1.0
            self._low_high[key] = (min(low, 1.0), max(high, 1.0))
        return self._low_high[key]
