"""Tiles that are overwritten as a whole, as so many tiles of one declaration.

A tile that is declared outside of a loop and filled anew in each iteration need not be one place: the back end rotates
the addresses of tiles by default (nki's release notes, "Address rotation"), so that the next load need not wait for the
last use of what was there. Where a kernel gives an address, it does not."""

from dataclasses import replace

from trellis.nki.trace import Buffer, Trace, View

__all__ = ["rotated"]

# Instructions that may leave a part of what they write as it was, add to it, or tell another core of it.
PARTIAL = (
    "tensor_copy_predicated",
    "nc_stream_shuffle",
    "dma_scatter",
    "dma_compute",
    "sendrecv",
    "register",
    "core_barrier",
)


def _whole(view: View, buffer: Buffer, element_bytes: int) -> bool:
    """Whether a view is all of its buffer."""
    if view.first_row or view.offset or view.rows != buffer.rows:
        return False
    return len(view.pattern) == 1 and view.pattern[0][1] == 1 and view.pattern[0][0] * element_bytes == buffer.row_bytes


class Versions:
    """Of each tile of a trace, the one that holds what was written last."""

    def __init__(self, trace: Trace) -> None:
        from trellis import _native

        self.trace = trace
        self.buffers, self.views = list(trace.buffers), list(trace.views)
        self.now: dict[int, int] = {}  # a tile that was overwritten: the buffer that stands for it
        self.known: dict[tuple[int, int], int] = {}  # a view and the buffer that it is of now: the view's number
        self.used: set[int] = set()
        self.fills = [b.space != "hbm" and b.address is None and b.role == "internal" for b in trace.buffers]
        self.whole = [self.fills[v.buffer] and _whole(v, trace.buffers[v.buffer], _native.element_bytes(v.dtype))
                      for v in trace.views]  # fmt: skip

    def view(self, v: int) -> int:
        """Its number, of the buffer that stands for its own."""
        mine = self.trace.views[v].buffer
        self.used.add(mine)
        buffer = self.now.get(mine)
        if buffer is None:
            return v
        if (v, buffer) not in self.known:
            self.known[v, buffer] = len(self.views)
            self.views.append(self.trace.views[v]._replace(buffer=buffer))
        return self.known[v, buffer]

    def refill(self, at: int) -> None:
        """Before an instruction's outputs: a tile that it fills is another one."""
        t = self.trace
        if t.kind[at].startswith(PARTIAL) or t.partial[at] or t.attributes[at].get("accumulate"):
            return
        read = {t.views[v].buffer for v in t.inputs[at]}
        for v in t.outputs[at]:
            mine = t.views[v].buffer
            if self.whole[v] and mine in self.used and mine not in read and t.buffers[mine].core == t.core[at]:
                self.now[mine] = len(self.buffers)
                self.buffers.append(replace(t.buffers[mine], index=len(self.buffers)))


def rotated(trace: Trace) -> Trace:
    """The same kernel, whose tiles are one for each time that they are filled."""
    versions = Versions(trace)
    outputs, inputs = [], []
    for at in range(len(trace)):
        inputs.append(tuple(map(versions.view, trace.inputs[at])))
        versions.refill(at)
        outputs.append(tuple(map(versions.view, trace.outputs[at])))
    if not versions.now:
        return trace
    return replace(trace, buffers=versions.buffers, views=versions.views, outputs=outputs, inputs=inputs)
