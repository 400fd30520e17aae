"""The report as text for a terminal."""

from trellis.simulate.price import Priced
from trellis.simulate.price.rates import COMPUTE_FACTOR
from trellis.simulate.report import words
from trellis.simulate.report.waits import waits

__all__ = ["assumptions", "checkpoints", "fits_words", "rate_words", "text"]


def assumptions(out: Priced) -> list[str]:
    told = [f"computation lies within a factor of {COMPUTE_FACTOR}, collectives within the machine's figures",
            "operations and communications do not slow each other, nor does the host slow them"]  # fmt: skip
    defaults = [o for o in out.operators if o.default]
    if defaults:
        whole = sum(o.time for o in out.operators) or 1.0
        shares = ", ".join(f"{o.name} ({100 * o.time / whole:.2g}%)" for o in defaults[:8])
        told.append(f"operators without a rule of their own: {shares}" + (" and others" if len(defaults) > 8 else ""))
    return told + out.job.assumptions


def _line(name: str, value: str) -> str:
    return f"  {name:<13} {value}"


def _head(out: Priced) -> list[str]:
    job = out.job
    told = [f"{' '.join(job.command)} on {out.machine.base}, {job.world} ranks: a step takes {words.seconds(out.time)}",
            _line("between", f"{words.seconds(out.low)} and {words.seconds(out.high)}")]  # fmt: skip
    told.append(_line("rate", rate_words(out)))
    return told


def rate_words(out: Priced) -> str:
    rate = f"{words.count(out.tokens / out.time)} tokens/s, {out.tokens:,} a step; " if out.tokens and out.time else ""
    return f"{rate}{100 * out.mfu:.3g}% of the tensor engines' FLOPs (MFU)"


def _times(out: Priced) -> list[str]:
    one = out.job.classes[out.slowest]
    busy = out.timed.classes[out.slowest].busy
    exposed = sum(out.exposed.values())
    share = 100 / out.time if out.time else 0.0
    parts = ", ".join(f"{name} {words.seconds(t)}" for name, t in out.exposed.items() if t > 0)
    waited = f"{words.seconds(exposed)}, {share * exposed:.3g}%" + (f": {parts}" if parts else "")
    told = [_line("compute", f"{words.seconds(busy)}, {share * busy:.3g}% of the step, of rank {one.recorded[0]}"),
            _line("exposed", waited)]  # fmt: skip
    if any(e[0] == "send" for e in out.record.events):
        told.append(
            _line("bubble", f"{words.seconds(out.bubble)}, {share * out.bubble:.3g}%, waits for messages included")
        )
    return told


def _memory(out: Priced) -> list[str]:
    most = max(out.job.classes, key=lambda c: c.record.memory.peak)
    memory = most.record.memory
    parts = ", ".join(f"{name} {words.size(n)}" for name, n in sorted(memory.categories.items(), key=lambda x: -x[1]))
    told = [_line("memory", f"{words.size(memory.peak)} at the peak of rank {most.recorded[0]}, of "
                            f"{words.size(out.capacity)}: {fits_words(out)}"),
            _line("", parts),
            _line("", f"beside them the runtime's code {words.size(out.runtime)}; communicators' buffers 0 B, for no "
                      "size is documented")]  # fmt: skip
    if out.cuda_reserved_fits is not None and out.job.device != "neuron":
        told.append(_line("", _reserved(out)))
    return told


def fits_words(out: Priced) -> str:
    if not out.fits:
        return "DOES NOT FIT"
    by_cuda = out.job.device == "cuda"
    return "fits in tensors, DOES NOT FIT as reserved" if by_cuda and out.cuda_reserved_fits is False else "fits"


def _reserved(out: Priced) -> str:
    """A job for any device may be one for Neuron, whose allocator reserves by other rules."""
    most = out.most_reserved
    told = f"torch.cuda's caching allocator would have reserved {words.size(most.record.memory.reserved)}"
    if not out.cuda_reserved_fits:
        told += f" of rank {most.recorded[0]}, more than there is"
        if out.job.device == "cuda":
            told += " (expandable_segments:True may keep it lower)"
    return told if out.job.device == "cuda" else told + "; Neuron's has its own rules, which are not documented"


def _beside(out: Priced) -> list[str]:
    """What is no part of the step's time: what a compiler would merge, and checkpoints."""
    told = []
    if (m := out.merged).operations:
        told.append(_line("compiled", f"merging {m.operations} elementwise operations and norms of compiled regions "
                                      f"with their neighbours would save at most {words.seconds(m.saved)} of "
                                      f"computation: a step of {words.seconds(m.time)}"))  # fmt: skip
    for place, own, whole in checkpoints(out):
        told.append(_line("checkpoint", f"{words.size(own)} of all ranks' shards and {words.size(whole)} of whole "
                                        f"tensors are written in {place}; its time is not in the step's"))  # fmt: skip
    return told


def checkpoints(out: Priced) -> list[tuple[str, int, int]]:
    """(where, bytes of all ranks' shards, bytes of whole tensors, written once) for each save in the step."""
    first = out.job.classes[0].record
    told = []
    for number, (place, _, whole) in enumerate(first.saves):
        own = sum(c.record.saves[number][1] * len(c.ranks) for c in out.job.classes if number < len(c.record.saves))
        told.append((str(first.places[place]), own, whole))
    return told


def _rows(out: Priced) -> list[str]:
    whole = sum(o.time for o in out.operators) or 1.0
    told = [_line("operators", ", ".join(f"{o.name} {100 * o.time / whole:.3g}%" for o in out.operators[:7]))]
    for number, w in enumerate(waits(out)):
        times = f" {w.times} times" if w.times > 1 else ""
        why = f" ({w.why})" if w.why else ""
        told.append(
            _line("waits for" if not number else "", f"{words.seconds(w.seconds)}{times}: {w.what}{why}, in {w.where}")
        )
    for number, one in enumerate(out.job.classes):
        checked = f"recorded {', '.join(map(str, one.recorded))}"
        told.append(
            _line(
                "ranks" if not number else "", f"{words.ranks(one.ranks)}: {checked}, {len(one.record.events)} events"
            )
        )
    proof = out.proof
    told.append(_line("proved", f"{proof.collectives} collectives and {proof.messages} messages' ends fit in "
                                f"{proof.groups} groups, and nobody waits in a circle"))  # fmt: skip
    return told


def text(out: Priced) -> str:
    lines = [*_head(out), *_times(out), *_memory(out), *_beside(out), *_rows(out)]
    for number, one in enumerate(assumptions(out)):
        lines.append(_line("assumed" if not number else "", one))
    return "\n".join(lines) + "\n"
