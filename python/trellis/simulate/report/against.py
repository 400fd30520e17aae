"""Two answers compared: what changed, and where."""

from trellis.simulate.price import Priced
from trellis.simulate.report import words

__all__ = ["against"]


def _change(now: float, before: float) -> str:
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
    here, there = _events(now), _events(before)
    for word in [w for w in {**there, **here} if here.get(w) != there.get(w)][:10]:
        lines.append(f"  {'communication':<13} {word}: {there.get(word, 0)} -> {here.get(word, 0)} times")
    return "\n".join(lines) + "\n"


def _busy(out: Priced) -> float:
    return out.timed.classes[out.slowest].busy
