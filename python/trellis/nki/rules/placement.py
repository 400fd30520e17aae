"""Where operands may begin in SBUF and PSUM: partitions that an engine's ports reach, and banks."""

import warnings
from collections.abc import Iterator
from typing import Any

from trellis.nki.kernels.session import NkiWarning, Session
from trellis.nki.rules.overlaps import box_in
from trellis.nki.trace import Buffer

__all__ = ["check_placement"]

PARTITIONS_FROM = "nki/guides/architecture/trainium_inferentia2_arch.rst, start_partition"
PRODUCTS_FIT = "nki/guides/architecture/trainium_inferentia2_arch.rst, PSUM"
BANKS_BEGIN = "nki/migration/index.rst, allocation"


def _starts(rows: int) -> tuple[int, ...]:
    """The partitions that an operand of so many may begin at."""
    return (0,) if rows > 64 else (0, 64) if rows > 32 else (0, 32, 64, 96)


def _of_partitions(first: int, rows: int) -> str:
    starts = _starts(rows)
    if first in starts:
        return ""
    return (
        f"{rows} partitions from {first} on; expected to begin at {' or '.join(map(str, starts))} ({PARTITIONS_FROM})"
    )


def _of_declaration(b: Buffer, s: Session) -> str:
    assert b.address is not None
    if b.space == "psum" and b.address[1] % s.limits.bank_bytes and not s.beta:
        return (f"{b.name} begins at byte {b.address[1]:,} of PSUM; expected the beginning of a bank, a multiple of "
                f"{s.limits.bank_bytes:,} ({BANKS_BEGIN})")  # fmt: skip
    said = _of_partitions(b.address[0], b.rows)
    return f"{b.name} takes {said}" if said else ""


def _of_operands(at: int, s: Session) -> Iterator[str]:
    t = s.trace
    for v in (*t.outputs[at], *t.inputs[at]):
        view, b = t.views[v], t.buffers[t.views[v].buffer]
        if b.space != "hbm":
            first = (b.address[0] if b.address else 0) + view.first_row
            if said := _of_partitions(first, view.rows):
                yield f"{t.names[at]} of {b.name}: {said}"
    for v in t.outputs[at] if t.kind[at] == "nc_matmul" and s.limits.generation < 4 else ():
        b = t.buffers[t.views[v].buffer]
        box = box_in(t.views[v], b)
        if b.space == "psum" and box.byte // s.limits.bank_bytes != (box.last_byte - 1) // s.limits.bank_bytes:
            yield (f"nc_matmul to bytes {box.byte:,} to {box.last_byte:,} of {b.name}; expected to fit into one bank "
                   f"of {s.limits.bank_bytes:,} bytes ({PRODUCTS_FIT})")  # fmt: skip


def check_placement(s: Session) -> None:
    """Warns of tiles whose addresses, and of operands of engines whose first partitions or banks, no device takes.

    In neuronxcc's dialect the compiler places operands, so that only addresses are looked at."""
    t = s.trace
    found: list[tuple[int, str]] = []
    for b in t.buffers:
        if b.address is not None and b.space != "hbm" and (said := _of_declaration(b, s)):
            found.append((b.line, said))
    for at in range(0 if s.beta else len(t)):
        if not t.kind[at].startswith(("dma_", "sendrecv")):
            found += [(t.line[at], said) for said in _of_operands(at, s)]
    warned: set[Any] = set()
    for line, said in found:
        if line not in warned:
            warned.add(line)
            file, number, _ = t.lines[line]
            warnings.warn(f"{file}:{number}: {said}", NkiWarning, stacklevel=2)
