"""Collectives whose lengths a tensor says: all_gather_v, all_to_all_v, and their two halves of 0.7."""

from typing import Any

import numpy as np

from trellis.nki.instructions.collectives import _checked, _recorded
from trellis.nki.instructions.emit import instruction, refuse, session
from trellis.nki.kernels.ranks import Group, group_of

__all__ = ["Prepared"]


class Prepared:
    """A collective that a trigger starts, once."""

    def __init__(self, kind: str, given: tuple[Any, ...]) -> None:
        self.kind, self.given, self.used = kind, given, False


def _rows(metadata: Any, group: Group, kind: str, has_rdispls: bool) -> Any:
    """Send counts and displacements, receive counts and, if there are, displacements."""
    rows, n = 4 if has_rdispls else 3, len(group.ranks)
    if metadata.size < rows * n:
        raise refuse(
            f"{kind} with {metadata!r} as metadata; expected {rows} rows of {n} numbers (nki.collectives.{kind})"
        )
    return np.array(metadata.read()).reshape(-1, n).astype(np.int64)


def _run(kind: str, srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: bool,
         has_rdispls: bool) -> Any:
    (src,), (dst,) = _checked(kind, srcs, dsts, on_chip=False, most=1)
    group = group_of(replica_group)
    if session().compute:
        rows = _rows(metadata_tensor, group, kind, has_rdispls)
        given = (np.array(src.read()).reshape(-1), rows)
        (parts,) = group.exchange(kind, [given])
        rows = _received(kind, parts, rows, dst, group, has_rdispls)
        if not recv_counts_known:
            metadata_tensor.write(rows.reshape(metadata_tensor.shape))
    return _recorded(kind, [src], [dst], dst.size * dst.itemsize, group)


def _received(kind: str, parts: list[Any], rows: Any, dst: Any, group: Group, has_rdispls: bool) -> Any:
    """Puts each rank's part where it belongs; the metadata with what was received."""
    n, rows = len(group.ranks), np.array(rows)
    flat = np.array(dst.array).reshape(-1)
    slot = flat.size // n
    for sender, (values, theirs) in enumerate(parts):
        column = group.place if kind == "all_to_all_v" else 0
        count, at = int(theirs[0, column]), int(theirs[1, column])
        to = int(rows[3, sender]) if has_rdispls else sender * slot
        if at + count > values.size or to + count > flat.size or (count > slot and not has_rdispls):
            raise refuse(
                f"{kind}: {count} elements of rank {group.ranks[sender]} from {at} on go to {to} on of {dst!r}: "
                f"out of bounds, a rank has {slot} there (nki.collectives.{kind})"
            )
        flat[to:to + count] = values[at:at + count]
        rows[2, sender] = count
    dst.write(flat.reshape(dst.shape))
    return rows


def _trigger(kind: str, handle: Any) -> Any:
    if not isinstance(handle, Prepared) or handle.kind != kind:
        raise refuse(f"{kind}_trigger of {handle!r}; expected what {kind}_prepare returned")
    if handle.used:
        raise refuse(
            f"a second {kind}_trigger of one {kind}_prepare; expected one each (nki.collectives.{kind}_trigger)"
        )
    handle.used = True
    return _run(kind, *handle.given)


def _register(kind: str) -> None:
    def at_once(srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: bool = False,
                has_rdispls: bool = False, priority: Any = None, name: Any = None) -> Any:
        return _run(kind, srcs, dsts, replica_group, metadata_tensor, recv_counts_known, has_rdispls)

    def prepare(srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Any, recv_counts_known: bool = False,
                has_rdispls: bool = False, priority: Any = None, name: Any = None) -> Prepared:
        return Prepared(kind, (srcs, dsts, replica_group, metadata_tensor, recv_counts_known, has_rdispls))

    instruction(kind)(at_once)
    instruction(f"{kind}_prepare")(prepare)
    instruction(f"{kind}_trigger")(lambda handle: _trigger(kind, handle))


_register("all_gather_v")
_register("all_to_all_v")
