"""What ranks communicate: c10d's operations and the functional ones, recorded instead of done.

Tensors of the device have no data. Data of the host is real: what a root sends, or a peer, comes from the process of
that rank if one runs, of floats where they are few; in sums and gathers, every rank is taken to have what this one has.
"""

import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves

from trellis.simulate.ranks.line import Line, NoLine
from trellis.simulate.world.contents import Contents
from trellis.simulate.world.errors import CannotRecord
from trellis.simulate.world.groups import Groups, name_of
from trellis.simulate.world.recorder import Recorder, size_of
from trellis.simulate.world.values import packed, unpacked

__all__ = ["Communication"]


class _Work(dist._Work):  # type: ignore[name-defined,misc]
    """Of a recorded communication: the current stream waits for it when the program does."""

    def __init__(self, owner: "Communication", number: int, tensors: list[torch.Tensor]) -> None:
        super().__init__()
        self._owner, self._number = owner, number
        self._tensors = [weakref.ref(t) for t in tensors]  # works outlive their tensors here

    def wait(self, timeout: Any = None) -> bool:
        self._owner.waited(self._number)
        return True

    def synchronize(self) -> None:
        self._owner.waited(self._number)

    def block_current_stream(self) -> None:
        self._owner.waited(self._number)

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def result(self) -> list[torch.Tensor]:
        return [t for ref in self._tensors if (t := ref()) is not None]

    def get_future(self) -> Any:
        """The reducer of DistributedDataParallel waits for it in C++, at the end of the backward pass."""
        self._owner.wait_after_backward(self._number, self.result())
        future: Any = torch.futures.Future()
        future.set_result(self.result())
        return future


class Communication:
    def __init__(self, recorder: Recorder, groups: Groups, line: Line | NoLine) -> None:
        self.recorder, self.groups, self.line = recorder, groups, line
        self.contents = Contents(recorder.values, groups)
        self.reducer: Callable[[], None] = lambda: None  # told that a reducer is at work
        self.at_barrier: Callable[[tuple[Any, ...]], None] = lambda key: None  # told which of them; rank 0 is in it
        self._next = 0
        self._pending: dict[int, int] = {}  # a functional result's storage: the communication
        self._after_backward: list[int] = []
        self._counts: dict[Any, int] = {}
        self.sharding: set[int] = set()  # families along which fully_shard gathers
        self._works: deque[_Work] = deque(maxlen=1 << 16)
        recorder.before_operation = self._before_operation
        recorder.communicate = {
            "c10d": self._c10d, "_c10d_functional": self._functional, "_c10d_functional_autograd": self._functional,
            "_dtensor": self._functional,
        }  # fmt: skip

    # Events

    def waited(self, number: int) -> None:
        if number >= 0:
            self.recorder.add(("wait", self.recorder.streams.current.number, number))

    def wait_after_backward(self, number: int, buckets: list[torch.Tensor]) -> None:
        self.reducer()
        if torch._C._current_graph_task_id() != -1 and number >= 0:
            self._after_backward.append(number)
            for bucket in buckets:  # made in a forward pass, they would be activations
                self.recorder.memory.is_(bucket, "buckets")
        else:
            self.waited(number)

    def _before_operation(self) -> None:
        """After the last node of a backward pass the reducer waits for its buckets, then copies them."""
        if self._after_backward and torch._C._current_autograd_node() is None and not self.recorder.places.inside:
            self.backward_ended()

    def backward_ended(self) -> None:
        waits, self._after_backward = self._after_backward, []
        for number in waits:
            self.waited(number)

    def _recorded(self, tensors: list[torch.Tensor]) -> bool:
        return any(self.recorder._here(t) for t in tensors)

    def collective(self, kind: str, group: str, tensors: list[torch.Tensor], size: int, reduction: str = "",
                   root: int = -1) -> int:  # fmt: skip
        """`size`: bytes of the larger buffer. Its number, -1 where it is of the host's data in a job of the device."""
        if not self._recorded(tensors):
            return -1
        family, _ = self.groups.of(group)
        number = self._next
        self._next += 1
        r = self.recorder
        kind_of = str(tensors[0].dtype).removeprefix("torch.")
        r.add(("collective", r.streams.current.number, number, kind, family, size, kind_of, reduction, root,
               r.placed(), r.now()) if r.on else ())  # fmt: skip
        return number

    def message(self, kind: str, group: str, peer: int, tag: int, tensors: list[torch.Tensor]) -> int:
        family, members = self.groups.of(group)
        self.line.need(members[peer])
        if not self._recorded(tensors):
            return -1
        number = self._next
        self._next += 1
        r = self.recorder
        size = sum(size_of(t) for t in tensors)
        kind_of = str(tensors[0].dtype).removeprefix("torch.")
        r.add((kind, r.streams.current.number, number, family, peer, size, kind_of, tag, r.placed(), r.now())
              if r.on else ())  # fmt: skip
        return number

    # Real data of the host

    def _count(self, *key: Any) -> int:
        self._counts[key] = self._counts.get(key, 0) + 1
        return self._counts[key]

    def _is_data(self, tensor: torch.Tensor) -> bool:
        """Of the host, whole numbers or small."""
        if isinstance(tensor, FakeTensor) or tensor.device.type != "cpu":
            return False
        return not tensor.dtype.is_floating_point or self.recorder.values.travels(tensor)

    def _travels(self, tensor: torch.Tensor) -> bool:
        """Its value goes to other ranks for real: data of the host, and what is small on the device."""
        return self._is_data(tensor) or (isinstance(tensor, FakeTensor) and self.recorder.values.travels(tensor))

    def _exchange(self, key: tuple[Any, ...], source: int, tensor: torch.Tensor) -> None:
        fake = isinstance(tensor, FakeTensor)
        if source == self.groups.rank:
            value = self.recorder.values.of(tensor) if fake else tensor
            self.line.post(key, packed(value))
        elif isinstance(tensor, FakeTensor):
            where = str(self.recorder.places.now())
            self.recorder.values.know_later(tensor, lambda: unpacked(self.line.fetch(key, source, where)))
        elif (data := unpacked(self.line.fetch(key, source, str(self.recorder.places.now())))) is not None:
            tensor.copy_(data)

    # torch's operations

    def _c10d(self, func: Any, args: Any, kwargs: Any) -> Any:
        self.recorder.on_first()
        name = func._schema.name.partition("::")[2].strip("_")
        given = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs
        method: Callable[..., Any] | None = getattr(self, f"_do_{name}", None)
        if method is None:
            any_source = name == "recv_any_source"
            raise CannotRecord(self.recorder.places.now(),
                               "a message comes from any rank" if any_source else f"{func} is not known here",
                               "name its source (src=)" if any_source else "use another collective")  # fmt: skip
        group = name_of(dist.ProcessGroup.unbox(given["process_group"]))
        number, results = method(given, group)
        work = _Work(self, number, [t for t in tree_leaves(results) if isinstance(t, torch.Tensor)])
        self._works.append(work)  # C++ holds only its own half
        boxed = work.boxed()
        return boxed if results is None else (results, boxed)

    def _do_allreduce(self, given: Any, group: str) -> Any:
        tensors = given["tensors"]
        reduction = _reduction(given["reduce_op"])
        self.contents.add_up(tensors, group, reduction)
        return self.collective("all_reduce", group, tensors, _sum(tensors), reduction), tensors

    def _do_allreduce_coalesced(self, given: Any, group: str) -> Any:
        return self._do_allreduce(given, group)[0], None

    def _do_broadcast(self, given: Any, group: str) -> Any:
        tensors, root = given["tensors"], given["root_rank"]
        self.of_root(tensors, group, root)
        return self.collective("broadcast", group, tensors, _sum(tensors), root=root), tensors

    def of_root(self, tensors: list[torch.Tensor], group: str, root: int) -> None:
        members = self.groups.of(group)[1]
        for tensor in tensors:
            if self._travels(tensor) and len(members) > 1:
                self._exchange(("broadcast", members, self._count("broadcast", members)), members[root], tensor)
            elif members[root] != self.groups.rank:
                self.contents.put(tensor, None)

    def _do_reduce(self, given: Any, group: str) -> Any:
        tensors = given["tensors"]
        if given["root_rank"] == self.contents.place(group):
            self.contents.add_up(tensors, group, _reduction(given["reduce_op"]))
        return self.collective("reduce", group, tensors, _sum(tensors), _reduction(given["reduce_op"]),
                               given["root_rank"]), None  # fmt: skip

    def _do_allgather(self, given: Any, group: str) -> Any:
        outputs, inputs = given["output_tensors"], given["input_tensors"]
        for per_rank, mine in zip(outputs, inputs, strict=True):
            self.contents.each(per_rank, mine)
        return self.collective("all_gather", group, inputs, sum(_sum(o) for o in outputs)), outputs

    def _do_allgather_base(self, given: Any, group: str) -> Any:
        out, mine = given["output_tensor"], given["input_tensor"]
        self._gathered(out, mine)
        self.sharding.add(self.groups.of(group)[0])
        return self.collective("all_gather", group, [mine], size_of(out)), out

    def _gathered(self, out: torch.Tensor, mine: torch.Tensor) -> None:
        if isinstance(out, FakeTensor):
            self.recorder.memory.see(out, self.recorder.now(), "gathered")
        self.contents.gathered(out, mine)

    def _do_allgather_into_tensor_coalesced(self, given: Any, group: str) -> Any:
        for out, mine in zip(given["outputs"], given["inputs"], strict=True):
            self._gathered(out, mine)
        return self.collective("all_gather", group, given["inputs"], _sum(given["outputs"])), None

    def _do_allgather_coalesced(self, given: Any, group: str) -> Any:
        for of_rank in given["output_lists"]:
            for out, mine in zip(of_rank, given["input_list"], strict=True):
                self.contents.put(out, self.contents.value(mine))
        return self.collective("all_gather", group, given["input_list"],
                               sum(_sum(o) for o in given["output_lists"])), None  # fmt: skip

    def _do_reduce_scatter(self, given: Any, group: str) -> Any:
        outputs, inputs = given["output_tensors"], given["input_tensors"]
        reduction = _reduction(given["reduce_op"])
        for out, per_rank in zip(outputs, inputs, strict=True):
            mine = self.contents.value(per_rank[self.contents.place(group)])
            self.contents.put(out, self.contents.reduced(mine, group, reduction))
        return self.collective("reduce_scatter", group, outputs, sum(_sum(i) for i in inputs),
                               reduction), outputs  # fmt: skip

    def _do_reduce_scatter_base(self, given: Any, group: str) -> Any:
        out, given_in = given["output_tensor"], given["input_tensor"]
        self.contents.scattered(out, given_in, group, _reduction(given["reduce_op"]))
        family = self.groups.of(group)[0]
        if family in self.sharding and isinstance(out, FakeTensor):
            self.recorder.memory.see(out, self.recorder.now())
            self.recorder.memory.is_shard(out, frozenset([family]))
        return self.collective("reduce_scatter", group, [out], size_of(given_in), _reduction(given["reduce_op"])), out

    def _do_reduce_scatter_tensor_coalesced(self, given: Any, group: str) -> Any:
        for out, given_in in zip(given["outputs"], given["inputs"], strict=True):
            self.contents.scattered(out, given_in, group, _reduction(given["reduce_op"]))
        return self.collective("reduce_scatter", group, given["outputs"], _sum(given["inputs"]),
                               _reduction(given["reduce_op"])), None  # fmt: skip

    def _do_alltoall_base(self, given: Any, group: str) -> Any:
        out, mine = given["output"], given["input"]
        return self.exchange(out, mine, given.get("output_split_sizes"), given.get("input_split_sizes"), group), None

    def exchange(self, out: torch.Tensor, mine: torch.Tensor, takes: Any, sends: Any, group: str) -> int:
        """All to all; "shift" where each rank sends all that it has to the one that is `root` places further."""
        self.contents.exchanged(out, mine, group)
        size, sends = len(self.groups.of(group)[1]), list(sends or [])
        to = [place for place, rows in enumerate(sends) if rows]
        if size > 1 and len(to) == 1:
            by = to[0] - self.contents.place(group)
            return self.collective("shift", group, [out], size_of(mine), root=by % size)
        moved = self.exchanged_size(out, mine, [list(takes or []), sends], group)
        return self.collective("all_to_all", group, [out], moved)

    def exchanged_size(self, out: torch.Tensor, mine: torch.Tensor, splits: list[list[int]], group: str) -> int:
        """Bytes of the fullest buffer of all ranks, each of which is taken to send and take what this one does: it
        decides how long the exchange takes."""
        row = size_of(mine) // mine.shape[0] if mine.dim() and mine.shape[0] else 0
        size = len(self.groups.of(group)[1])
        return max(size_of(out), size_of(mine), *(size * max(one, default=0) * row for one in splits))

    def _do_alltoall(self, given: Any, group: str) -> Any:
        outputs, inputs = given["output_tensors"], given["input_tensors"]
        self.contents.each(outputs, inputs[self.contents.place(group)])
        return self.collective("all_to_all", group, outputs, max(_sum(outputs), _sum(inputs))), outputs

    def _do_gather(self, given: Any, group: str) -> Any:
        inputs = given["input_tensors"]
        for per_rank in given["output_tensors"]:
            self.contents.each(per_rank, inputs[0])
        size = _sum(inputs) * len(self.groups.of(group)[1])
        return self.collective("gather", group, inputs, size, root=given["root_rank"]), None

    def _do_scatter(self, given: Any, group: str) -> Any:
        outputs, root = given["output_tensors"], given["root_rank"]
        members = self.groups.of(group)[1]
        if self._is_data(outputs[0]):
            count = self._count("scatter", members)
            for lists in given["input_tensors"]:
                for member, tensor in zip(members, lists, strict=True):
                    if member == self.groups.rank:
                        outputs[0].copy_(tensor)
                    else:
                        self._exchange(("scatter", members, member, count), self.groups.rank, tensor)
            if members[root] != self.groups.rank:
                self._exchange(("scatter", members, self.groups.rank, count), members[root], outputs[0])
        else:
            mine = [lists[self.contents.place(group)] for lists in given["input_tensors"]]  # none but the root's
            self.contents.put(outputs[0], self.contents.value(mine[0]) if mine else None)
        size = _sum(outputs) * len(members)
        return self.collective("scatter", group, outputs, size, root=root), outputs

    def _do_barrier(self, given: Any, group: str) -> Any:
        if 0 in (members := self.groups.of(group)[1]):
            self.at_barrier((members, self._count("barrier", members)))
        return self.collective("barrier", group, [given["tensor"]], 0), None

    def _do_send(self, given: Any, group: str) -> Any:
        peer, tag, tensors = given["dst"], given["tag"], given["tensors"]
        members = self.groups.of(group)[1]
        for tensor in tensors:
            if self._travels(tensor):
                count = self._count("p2p", members, self.groups.rank, members[peer], tag)
                self._exchange(("p2p", members, self.groups.rank, members[peer], tag, count), self.groups.rank, tensor)
        return self.message("send", group, peer, tag, tensors), None

    def _do_recv(self, given: Any, group: str) -> Any:
        peer, tag, tensors = given["src"], given["tag"], given["tensors"]
        members = self.groups.of(group)[1]
        for tensor in tensors:
            if self._travels(tensor):
                count = self._count("p2p", members, members[peer], self.groups.rank, tag)
                self._exchange(("p2p", members, members[peer], self.groups.rank, tag, count), members[peer], tensor)
            elif isinstance(tensor, FakeTensor):
                self.contents.put(tensor, None)
            else:
                tensor.zero_()
        return self.message("receive", group, peer, tag, tensors), None

    # The functional ones

    def _functional(self, func: Any, args: Any, kwargs: Any) -> Any:
        from trellis.simulate.world.functional import done

        self.recorder.on_first()
        return done(self, func, args, kwargs)

    def pending(self, tensor: torch.Tensor, number: int) -> torch.Tensor:
        if number >= 0:
            self._pending[id(tensor.untyped_storage())] = number
        return tensor

    def wait_tensor(self, tensor: torch.Tensor) -> None:
        number = self._pending.pop(id(tensor.untyped_storage()), -1)
        self.waited(number)


def _sum(tensors: list[torch.Tensor]) -> int:
    return sum(size_of(t) for t in tensors)


_REDUCTIONS = ("sum", "average", "product", "min", "max", "band", "bor", "bxor", "scaled sum")  # c10d's numbers


def _reduction(op: Any) -> str:
    return _REDUCTIONS[int(op.op())]
