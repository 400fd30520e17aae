"""Two answers compared: what changed, and where."""

from trellis.simulate.price import Priced
from trellis.simulate.report import words

__all__ = ["against"]


def _change(now: float, before: float) -> str:
    if now == before:
        return "+0%"
    return f"{(now / before - 1) * 100:+.3g}%" if before else "new"


def _events(out: Priced) -> dict[str, int]:
    """How often each communication and product happens, of the slowest class."""
    told: dict[str, int] = {}
    for event in out.record.events:
        if event[0] == "collective":
            word = f"{event[3]} of {words.size(event[5])} on {out.job.families[event[4]].name}"
        elif event[0] in ("send", "receive"):
            word = f"{event[0]} of {words.size(event[5])} on {out.job.families[event[3]].name}"
        else:
            continue
        told[word] = told.get(word, 0) + 1
    return told


def against(now: Priced, before: Priced) -> str:
    rows = [("step", now.time, before.time), ("compute", _busy(now), _busy(before)),
            ("exposed", sum(now.exposed.values()), sum(before.exposed.values()))]  # fmt: skip
    lines = [f"against {' '.join(before.job.command)}, {before.job.world} ranks:"]
    for name, a, b in rows:
        lines.append(f"  {name:<13} {words.seconds(b)} -> {words.seconds(a)}, {_change(a, b)}")
    peak = [max(c.record.memory.peak for c in one.job.classes) for one in (now, before)]
    lines.append(f"  {'memory':<13} {words.size(peak[1])} -> {words.size(peak[0])}, {_change(*peak)}")
    lines += _layout(now, before)
    for name in sorted({*now.exposed, *before.exposed}):
        a, b = now.exposed.get(name, 0.0), before.exposed.get(name, 0.0)
        if abs(a - b) > 0.001 * max(now.time, before.time):
            lines.append(f"  {'waits':<13} {name}: {words.seconds(b)} -> {words.seconds(a)}")
    times = {o.name: o.time for o in now.operators}
    earlier = {o.name: o.time for o in before.operators}
    moved = sorted({*times, *earlier}, key=lambda n: -abs(times.get(n, 0.0) - earlier.get(n, 0.0)))
    for name in moved[:5]:
        a, b = times.get(name, 0.0), earlier.get(name, 0.0)
        if abs(a - b) > 0.001 * max(now.time, before.time):
            lines.append(f"  {'operator':<13} {name}: {words.seconds(b)} -> {words.seconds(a)}")
    lines += _prices(now, before)
    here, there = _events(now), _events(before)
    for word in [w for w in {**there, **here} if here.get(w) != there.get(w)][:10]:
        lines.append(f"  {'communication':<13} {word}: {there.get(word, 0)} -> {here.get(word, 0)} times")
    return "\n".join(lines) + "\n"


def _layout(now: Priced, before: Priced) -> list[str]:
    """Why: another machine, another number of ranks, axes of other sizes, other code."""
    told = []
    if now.machine.base != before.machine.base:
        told.append(f"machine: {before.machine.base} -> {now.machine.base}")
    if now.job.world != before.job.world:
        told.append(f"ranks: {before.job.world} -> {now.job.world}")
    here, there = ({f.name: f.size for f in one.job.families if f.name != "world"} for one in (now, before))
    for name in [n for n in {**there, **here} if here.get(n) != there.get(n)]:
        told.append(f"axis {name}: {there.get(name, 'none')} -> {here.get(name, 'none')} ranks")
    flops = [sum(c.record.operations[e[2]].flops for c in one.job.classes[:1] for e in c.record.events if e[0] == "op")
             for one in (now, before)]  # fmt: skip
    if flops[0] != flops[1]:
        told.append(f"products of a rank: {words.count(flops[1])}FLOP -> {words.count(flops[0])}FLOP")
    return [f"  {'why':<13} {line}" for line in told]


def _prices(now: Priced, before: Priced) -> list[str]:
    """Collectives that both have, whose price or algorithm is another one now."""
    told = []
    for kind, family in now.rates.largest:
        name = now.job.families[family].name
        same = [f for k, f in before.rates.largest if k == kind and before.job.families[f].name == name]
        if not same:
            continue
        (a, by), (b, was) = (_largest(one, kind, f) for one, f in ((now, family), (before, same[0])))
        if by != was or abs(a - b) > 0.01 * b:
            told.append(f"  {'each':<13} largest {kind} of {name}: {words.seconds(b)} by {was} -> {words.seconds(a)} "
                        f"by {by}")  # fmt: skip
    return told


def _largest(out: Priced, kind: str, family: int) -> tuple[float, str]:
    size = out.rates.largest[kind, family]
    key = next(k for k in out.rates.algorithms if k[:3] == (kind, family, size))
    return out.rates.collective(*key), out.rates.algorithms[key]


def _busy(out: Priced) -> float:
    return out.timed.classes[out.slowest].busy
