"""Kernel.with_schedule: an order between instructions that a kernel names."""

from collections.abc import Callable
from typing import Any

from trellis.nki.kernels.session import active, refuse, session
from trellis.nki.trace import Trace

__all__ = ["keep_schedule", "labelled", "read_schedule"]

Edge = tuple[str, str, bool]  # later, earlier, whether it waits for the result


def labelled(work: Callable[..., Any]) -> Callable[..., Any]:
    """The same, and what it records is known by the call's name=."""

    def call(**given: Any) -> Any:
        label = given.get("name")
        if label is None or not active():
            return work(**given)
        s = session()
        trace, core, first = s.trace, s.core, len(s.trace)
        made = work(**given)
        mine = [at for at in range(first, len(trace)) if trace.core[at] == core]
        trace.labels.setdefault((str(label), core), []).extend(mine)
        return made

    call.__doc__ = work.__doc__
    return call


def read_schedule(pairs: Any, kind: Any = None) -> list[Edge]:
    waits = getattr(kind, "name", kind) == "runtime"
    edges = []
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not isinstance(pair[0], str):
            raise refuse(f"with_schedule of {pair!r}; expected pairs (later, earlier) of instructions' names")
        later, earlier = pair
        for name in (earlier,) if isinstance(earlier, str) else tuple(earlier):
            if not isinstance(name, str) or name == later:
                raise refuse(f"with_schedule of {pair!r}; expected the names of two instructions")
            edges.append((later, name, waits))
    return edges


def keep_schedule(trace: Trace, edges: Any) -> None:
    """What each core runs keeps the order; a name that none has is refused."""
    for later, earlier, waits in edges:
        for name in (later, earlier):
            if not any(label == name for label, _ in trace.labels):
                known = ", ".join(sorted({label for label, _ in trace.labels})) or "none: give instructions a name="
                raise refuse(
                    f"with_schedule of {name!r}, which no instruction of {trace.name} is called; it has {known}"
                )
        for (label, core), instructions in trace.labels.items():
            if label == later:
                before = trace.labels.get((earlier, core), ())
                (trace.depends if waits else trace.after).extend((at, b) for at in instructions for b in before)
