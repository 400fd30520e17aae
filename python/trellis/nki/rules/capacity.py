"""Whether a kernel's tiles fit: what must be there at once is counted from each tile's first use to its last."""

from trellis.nki.kernels.session import NkiError, NkiWarning, Session

__all__ = ["check_capacity"]


def check_capacity(s: Session) -> None:
    """Refuses, or warns of, more bytes a partition at once than SBUF or PSUM has."""
    import warnings

    for space, most in (("sbuf", s.limits.sbuf_bytes), ("psum", s.limits.psum_bytes)):
        peak, line = peak_bytes(s, space)
        if peak <= most:
            continue
        file, number, _ = s.trace.lines[line]
        text = (f"{file}:{number}: {s.trace.name} needs {peak:,} bytes a partition of {space.upper()} at once; "
                f"{s.limits.chip} has {most:,} ({s.limits.source})")
        if s.strict and not s.beta:
            raise NkiError(text)
        warnings.warn(text, NkiWarning, stacklevel=2)


def lifetimes(s: Session) -> dict[int, tuple[int, int]]:
    """Of each buffer that is used: its first and last instruction."""
    t = s.trace
    spans: dict[int, tuple[int, int]] = {}
    place = [v.buffer for v in t.views]
    for i, (outs, ins) in enumerate(zip(t.outputs, t.inputs, strict=True)):
        for v in (*outs, *ins):
            b = place[v]
            first = spans.get(b)
            spans[b] = (i, i) if first is None else (first[0], i)
    return spans


def peak_bytes(s: Session, space: str) -> tuple[int, int]:
    """The most bytes a partition that live at once, and the line of the tile that reaches it."""
    buffers = s.trace.buffers
    events: list[tuple[int, int, int, int]] = []
    addressed = 0
    for b, (first, last) in lifetimes(s).items():
        buffer = buffers[b]
        if buffer.space != space or buffer.core != 0:
            continue
        size = buffer.row_bytes
        if buffer.address is not None:
            addressed = max(addressed, buffer.address[1] + size)
            continue
        events.append((first, 1, size, buffer.line))
        events.append((last + 1, 0, -size, buffer.line))
    now = peak = line = 0
    for _, _, change, at in sorted(events):
        now += change
        if now > peak:
            peak, line = now, at
    return max(peak, addressed), line
