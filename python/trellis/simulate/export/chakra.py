"""A job as Chakra execution traces (length-delimited protobuf messages, schema 0.0.4), one for each rank."""

import json
from collections.abc import Iterator

from trellis.simulate.export.tasks import Task, tasks
from trellis.simulate.price import Priced
from trellis.simulate.record.steps import Event

__all__ = ["chakra", "chakra_groups"]

_COMPUTE, _SEND, _RECEIVE, _COLLECTIVE = 4, 5, 6, 7
_SHIFTED = 1 << 20  # a tag that programs hardly have
_TYPES = {"all_reduce": 0, "reduce": 1, "all_gather": 2, "gather": 3, "scatter": 4, "broadcast": 5, "all_to_all": 6,
          "reduce_scatter": 7, "barrier": 9}  # fmt: skip
# Chakra's own reader looks into one field for each name, and takes what is in another one for 0.
_STRING, _INT64 = 29, 9
_FIELDS = {"tensor_size": 13, "comm_src": 7, "comm_dst": 7, "comm_tag": 7}


def _varint(value: int) -> bytes:
    told = bytearray()
    while value > 127:
        told.append(value & 127 | 128)
        value >>= 7
    return bytes([*told, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _attribute(name: str, value: int | str) -> bytes:
    told = _number(_FIELDS.get(name, _INT64), value) if isinstance(value, int) else _bytes(_STRING, value.encode())
    return _bytes(10, _bytes(1, name.encode()) + told)


def _group_number(out: Priced, family: int, group: tuple[int, ...]) -> int:
    """ASTRA-sim wants a number: of a family and the group's first rank."""
    return family * out.job.world + group[0] + 1


class _Trace:
    """Of one rank. Durations are whole microseconds there, so what is cut off is added to the next one."""

    def __init__(self, out: Priced, which: int, rank: int) -> None:
        self.out, self.rank = out, rank
        self.record = out.job.classes[which].record
        self.last: dict[str, int] = {}
        self.rest = 0.0

    def encoded(self, told: list[Task]) -> bytes:
        messages = [_bytes(1, b"0.0.4"), *(node for task in told for node in self._nodes(task))]
        return b"".join(_varint(len(m)) + m for m in messages)

    def _nodes(self, task: Task) -> list[bytes]:
        """A task's id is twice its number; a shift is a send before a receive, which is what others wait for."""
        event = task.event
        before = [*([self.last[task.lane]] if task.lane in self.last else []), *task.after]
        self.last[task.lane] = task.number
        tail = b"".join(_number(5, 2 * number + 2) for number in dict.fromkeys(before))
        if event[0] == "collective" and event[3] == "shift":
            group = self.out.job.families[event[4]].of(self.rank) or ()
            place = group.index(self.rank)
            ends = [(place + event[8]) % len(group), (place - event[8]) % len(group)]
            halves = [(kind, event[1], 0, event[4], end, event[5], event[6], _SHIFTED)
                      for kind, end in zip(("send", "receive"), ends, strict=True)]  # fmt: skip
            return [_number(1, 2 * task.number + 1 + i) + self._communication(half, tail)
                    for i, half in enumerate(halves)]  # fmt: skip
        return [_number(1, 2 * task.number + 2) + self._node(event, tail)]

    def _node(self, event: Event, tail: bytes) -> bytes:
        if event[0] == "op":
            operation = self.record.operations[event[2]]
            time = self.out.rates.operation(operation) * 1e6 + self.rest
            self.rest = time - int(time)
            return (_bytes(2, operation.name.encode()) + _number(3, _COMPUTE) + tail + _number(7, int(time))
                    + _attribute("num_ops", operation.flops)
                    + _attribute("tensor_size", operation.read + operation.written))  # fmt: skip
        return self._communication(event, tail)

    def _communication(self, event: Event, tail: bytes) -> bytes:
        which = event[4] if event[0] == "collective" else event[3]
        group = self.out.job.families[which].of(self.rank) or ()
        if event[0] != "collective":
            sends, other = event[0] == "send", group[event[4]]
            ends = (self.rank, other) if sends else (other, self.rank)
            return (_bytes(2, event[0].encode()) + _number(3, _SEND if sends else _RECEIVE) + tail
                    + _attribute("comm_size", event[5]) + _attribute("comm_tag", event[7])
                    + _attribute("comm_src", ends[0]) + _attribute("comm_dst", ends[1]))  # fmt: skip
        size = event[5] // len(group) if event[3] in ("all_gather", "gather") else event[5]
        return (_bytes(2, event[3].encode()) + _number(3, _COLLECTIVE) + tail
                + _attribute("comm_type", _TYPES[event[3]]) + _attribute("comm_size", size)
                + _attribute("pg_name", str(_group_number(self.out, which, group)))
                + _attribute("root_rank", max(event[8], 0)))  # fmt: skip


def chakra(out: Priced) -> Iterator[tuple[int, bytes]]:
    """(rank, its trace), for all ranks. A collective's size is a rank's input, as ASTRA-sim takes it."""
    told = [tasks(out.job, one.record) for one in out.job.classes]
    class_of = {rank: which for which, one in enumerate(out.job.classes) for rank in one.ranks}
    for rank in range(out.job.world):
        which = class_of[rank]
        yield rank, _Trace(out, which, rank).encoded(told[which])


def chakra_groups(out: Priced) -> str:
    """The process groups that traces name by numbers, and their ranks: JSON, as ASTRA-sim reads it beside them."""
    groups = {str(_group_number(out, which, group)): list(group)
              for which, family in enumerate(out.job.families) for group in family.groups}  # fmt: skip
    return json.dumps(groups) + "\n"
