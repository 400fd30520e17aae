"""Records what a rank does: operations of the device in their streams, and what is communicated."""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from trellis.simulate import routing
from trellis.simulate.record import Operation, Place, RankRecord
from trellis.simulate.record.steps import Event, KernelTime
from trellis.simulate.world import flops
from trellis.simulate.world.allocations import Allocations
from trellis.simulate.world.errors import CannotRecord
from trellis.simulate.world.fakes import losses, recurrent
from trellis.simulate.world.places import Places
from trellis.simulate.world.settings import Settings
from trellis.simulate.world.streams import Streams
from trellis.simulate.world.values import Values, compared, made_without_data, onto_host, read

__all__ = ["Recorder", "size_of"]

_PLAIN = (torch.Tensor, FakeTensor, torch.nn.Parameter, torch.nn.Buffer)
_NO_WORK = {"aten::detach", "aten::_unsafe_view", "aten::lift_fresh", "aten::alias", "aten::empty", "aten::new_empty",
            "aten::empty_like", "aten::empty_strided", "aten::new_empty_strided", "aten::set_", "aten::resize_",
            "aten::is_same_size", "aten::record_stream", "aten::_local_scalar_dense", "aten::lift"}  # fmt: skip

_REPLACING = {"aten::copy_", "aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_", "aten::bernoulli_",
              "aten::random_", "aten::exponential_", "aten::_foreach_copy_", "aten::_foreach_zero_"}  # fmt: skip
_INTO_VIEWS = "fsdp.all_gather_copy_in"  # writes into a part of a tensor that it is given
_COMPARING = (torch.ops.aten.equal.default, torch.ops.aten.allclose.default)
_PACKING = torch.ops.aten._pack_padded_sequence.default
_CTC = (torch.ops.aten._ctc_loss.default, torch.ops.aten._ctc_loss.Tensor)
_COUNTING = (torch.ops.aten.histc.default, torch.ops.aten.bincount.default)


class Recorder(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.device = torch.device("neuron" if settings.device != "cpu" else "cpu")
        self.record = RankRecord(settings.rank)
        self.streams = Streams(self)
        self.places = Places()
        self.values = Values()
        self.memory = Allocations()
        self.memory.stream = lambda: self.streams.current.number
        self.phase = "other"  # beside forward and backward, which are seen
        self.on = False  # this step is recorded
        self.on_first = lambda: None  # called before an operation that may begin a step
        self.before_operation: Callable[[], None] = lambda: None
        self.failed: Callable[[BaseException], None] = lambda error: None
        self.communicate: dict[str, Any] = {}  # by namespace
        self.assumed: dict[str, None] = {}
        self._operations: dict[Operation, int] = {}
        self._places: dict[Place, int] = {}

    # What is recorded

    def add(self, event: Event) -> None:
        if self.on and event:
            self.record.events.append(event)
            self.memory.events += 1

    def host_waits(self, stream: int) -> None:
        if self.on:
            self.add(("host", stream, self.placed()))

    def host_waits_for(self, event: int) -> None:
        if self.on:
            self.add(("reached", event, self.placed()))

    def placed(self) -> int:
        place = self.places.now()
        index = self._places.setdefault(place, len(self._places))
        if index == len(self.record.places):
            self.record.places.append(place)
        if self.places.compiled and index not in self.record.compiled:
            self.record.compiled.append(index)
        return index

    def now(self) -> str:
        """The phase."""
        if torch._C._current_graph_task_id() != -1:
            return "recompute" if self.places.inside else "backward"
        return "forward" if self.places.inside else self.phase

    def saved(self, own: int, whole: int) -> None:
        """A checkpoint is written: bytes of this rank's shards, and of tensors that many ranks have."""
        self.host_waits(-1)
        if self.on:
            self.record.saves.append((self.placed(), own, whole))

    def assume(self, what: str) -> None:
        self.assumed[what] = None

    def begin_step(self) -> None:
        self.on = True
        self.memory.begin_step()

    def end_step(self) -> RankRecord:
        self.on = False
        self.record.streams = list(self.streams.names)
        self.record.memory, sharded = self.memory.peak()
        for family, told in sharded.items():
            self.record.sharded.setdefault(family, {}).update(told)
        self.record.assumptions = list(self.assumed)
        return self.record

    # What torch calls

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None:
            return func(*args, **(kwargs or {}))  # somebody asks for shapes, as DTensor does of whole tensors: no work
        kwargs = {k: v for k, v in (kwargs or {}).items() if k != "pin_memory"}
        if func is torch.ops.prim.device.default:
            return args[0].fake_device if isinstance(args[0], FakeTensor) else func(*args)
        if func is torch.ops.aten.is_pinned.default and self.settings.device != "cpu":
            return True  # nothing is copied, so all memory of the host is as good
        if any(t not in _PLAIN and not issubclass(t, FakeTensor) for t in types if t.__torch_dispatch__ is not
               torch._C._disabled_torch_dispatch_impl):  # fmt: skip
            return NotImplemented
        handler = self.communicate.get(getattr(func, "namespace", ""))
        if handler is not None:
            return self._told(lambda: handler(func, args, kwargs))
        flat = tree_flatten((args, kwargs))[0]
        if self._is_fake(func, flat, args, kwargs):
            return self._told(lambda: self._on_device(func, flat, args, kwargs))
        if self.settings.device == "cpu":
            self.on_first()
        done = self._on_host(func, args, kwargs)
        if self.settings.device == "cpu":
            self._recorded(func, flat, args, kwargs, [o for o in tree_flatten(done)[0] if isinstance(o, torch.Tensor)])
        return done

    def _on_host(self, func: Any, args: Any, kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except RuntimeError as error:
            if "DefaultCPUAllocator" not in str(error):
                raise
            raise CannotRecord(
                self.places.now(), f"for what {func} makes, the memory of the host has no room",
                "make it on the device, where tensors have no data",
            ) from None  # fmt: skip

    def _told(self, work: Callable[[], Any]) -> Any:
        """An error in a backward pass would have to go through destructors of torch that end the process."""
        try:
            return work()
        except Exception as error:
            if torch._C._current_graph_task_id() != -1:
                self.failed(error)
            raise

    def _is_fake(self, func: Any, flat: list[Any], args: Any, kwargs: dict[str, Any]) -> bool:
        if self.settings.device == "cpu":
            return False
        tensors = [x for x in flat if isinstance(x, torch.Tensor)]
        if any(isinstance(t, FakeTensor) for t in tensors):
            return True
        device = kwargs.get("device")
        if device is not None and device.type == self.device.type:
            return True
        if not tensors and made_without_data(func, args, kwargs):
            return True
        return any(t.device.type == "meta" for t in tensors) and device is not None and device.type != "meta"

    def _on_device(self, func: Any, flat: list[Any], args: Any, kwargs: Any) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            return read(self, args[0]).item()
        if func in _COMPARING:
            return compared(self, func, args, kwargs)
        if _is_composed(func):
            with self:
                return func.decompose(*args, **kwargs)
        name = func.name().partition(".")[0]
        if name not in _NO_WORK:
            self.on_first()
        try:
            if func is torch.ops.aten.bincount.default and self.settings.routing and "minlength" in kwargs:
                with self.fake:
                    done = args[0].new_empty(kwargs["minlength"], dtype=torch.int64)
            elif not any(isinstance(x, FakeTensor) for x in flat):
                with self.fake:
                    done = func(*tree_map(self._copied, args), **tree_map(self._copied, kwargs))
            else:
                with self.fake:
                    done = func(*args, **kwargs)
        except fake_tensor.DynamicOutputShapeException:
            if (known := self._computed(func, args, kwargs)) is not None:
                return known
            raise CannotRecord(
                self.places.now(),
                f"the shape of what {func} gives depends on data, and there is no data here",
                "make the shape a fixed one (a capacity, padding), or say --routing uniform where tokens are routed"
                if any(self._here(x) for x in flat if isinstance(x, torch.Tensor)) else "on the host, what comes from "
                "the device has none, nor what a module's constructor or torch.empty makes of 65,536 floats or more, "
                "or a script of 2^26",
            ) from None  # fmt: skip
        except RuntimeError as error:
            unknown = isinstance(error, (fake_tensor.UnsupportedOperatorException, NotImplementedError))
            if not unknown and "no fake impl" not in str(error):
                raise
            raise CannotRecord(
                self.places.now(),
                f"{func} has no fake implementation",
                "register one with torch.library.register_fake: it says the shapes of the results",
            ) from None
        outputs = [o for o in tree_flatten(done)[0] if isinstance(o, torch.Tensor)]
        if any(o.layout is not torch.strided for o in outputs):
            raise CannotRecord(self.places.now(), f"{func} gives a sparse tensor, and only data says how large it is",
                               "make it dense (sparse=False)")  # fmt: skip
        if isinstance(func, torch._ops.OpOverload):
            if (
                name not in _NO_WORK
                and (onto := _written(func, args, kwargs))
                and not any(isinstance(t, FakeTensor) for t in onto)
            ):
                self._arrived(func, flat, args, kwargs, done, outputs)
                return onto_host(self, func, args, kwargs, done)
            self.values.follow(func, flat, args, kwargs, outputs)
            if func in _COUNTING:
                self._route(args[0], outputs[0])
        return self._arrived(func, flat, args, kwargs, done, outputs)

    def _computed(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What an operator gives whose shape depends on data, if that is known: a tensor of the device with these
        values."""
        made: Any
        real = {id(t): self.values.of(t) for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)}
        if func is _PACKING and (lengths := self.values.of(args[1])) is not None:
            made = recurrent.packed(self.fake, args[0], lengths, *args[2:])
            return self._arrived(func, tree_flatten((args, kwargs))[0], args, kwargs, made, [made[0]])
        if func in _CTC and (made := losses.ctc(self, args[0], args[1], args[3])) is not None:
            return self._arrived(func, tree_flatten((args, kwargs))[0], args, kwargs, made, [*made])
        if any(value is None for value in real.values()):
            return None
        told = func(*tree_map(lambda x: real.get(id(x), x), args), **tree_map(lambda x: real.get(id(x), x), kwargs))
        if not isinstance(told, torch.Tensor):
            return None
        with self.fake:
            made = torch.empty_strided(told.shape, told.stride(), dtype=told.dtype, device=self.device)
        self.values.know(made, told)
        return self._arrived(func, tree_flatten((args, kwargs))[0], args, kwargs, made, [made])

    def _route(self, chosen: torch.Tensor, counted: torch.Tensor) -> None:
        """How often each expert was chosen, where data would say it."""
        policy = self.settings.routing
        if policy and isinstance(counted, FakeTensor) and self.values.of(counted) is None:
            told = torch.tensor(routing.counts(chosen.numel(), counted.numel(), policy))
            self.values.know(counted, told.to(counted.dtype))
            self.assume(f"{self.places.now()} counts what data says: {chosen.numel()} in {counted.numel()} bins taken "
                        f"as {policy}")  # fmt: skip

    def _copied(self, x: Any) -> Any:
        """A fake tensor like a real one of the host."""
        if not isinstance(x, torch.Tensor) or isinstance(x, FakeTensor):
            return x
        return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device)

    def _arrived(self, func: Any, flat: list[Any], args: Any, kwargs: Any, done: Any,
                 outputs: list[torch.Tensor]) -> Any:  # fmt: skip
        tensors = [x for x in flat if isinstance(x, torch.Tensor)]
        to_host = outputs and not any(self._here(o) for o in outputs) and any(self._here(t) for t in tensors)
        if to_host and not any(x is True for x in flat if func is torch.ops.aten._to_copy.default):
            self.host_waits(self.streams.current.number)
        if to_host and (value := self.values.of(outputs[0])) is not None and len(outputs) == 1:
            return value
        if any(self._here(t) for t in [*outputs, *tensors]):
            self._recorded(func, flat, args, kwargs, outputs)
        return done

    def _shards(self, inputs: list[torch.Tensor], outputs: list[torch.Tensor], read: list[torch.Tensor],
                written: list[torch.Tensor]) -> Any:  # fmt: skip
        """Which of an operation's tensors fully_shard cut. What is made of shards, and is as large, is a shard, too."""
        found = [self.memory.shard_of(t) for t in inputs]
        families: frozenset[int] = frozenset().union(*found)
        if not families:
            return ()
        sizes = {t.numel() for t, of in zip(inputs, found, strict=True) if of}
        sizes.add(sum(t.numel() for t, of in zip(inputs, found, strict=True) if of))
        shards = [bool(o.dim()) and (o.numel() in sizes or bool(self.memory.shard_of(o))) for o in outputs]
        made, given = {id(t) for t in written}, {id(t) for t in inputs}
        for output, shard in zip(outputs, shards, strict=True):
            if shard and id(output) in made - given and output.untyped_storage().size() == size_of(output):
                self.memory.is_shard(output, families)
        reads = {id(t) for t in read}
        told = []
        for family in sorted(families):
            mine = [i for i, of in enumerate(found) if family in of and inputs[i].dim()]
            theirs = [i for i, shard in enumerate(shards) if shard]
            changed = {id(t): t for t in [*(outputs[i] for i in theirs), *(inputs[i] for i in mine)] if id(t) in made}
            told.append((family, tuple(mine), tuple(theirs),
                         sum(_bytes(inputs[i]) for i in mine if id(inputs[i]) in reads),
                         sum(map(_bytes, changed.values()))))  # fmt: skip
        return tuple(told)

    def _here(self, tensor: torch.Tensor) -> bool:
        return tensor.device.type == self.device.type

    def _recorded(self, func: Any, flat: list[Any], args: Any, kwargs: Any, outputs: list[torch.Tensor]) -> None:
        phase = self.now()
        for output in outputs:
            if self._here(output):
                self.memory.see(output, phase)
        if not self.on or func.name().partition(".")[0] in _NO_WORK:
            return
        inputs = [x for x in flat if isinstance(x, torch.Tensor)]
        name = func.name().replace("::", ".")
        mutable = not isinstance(func, torch._ops.OpOverload) or func._schema.is_mutable
        held = {id(t.untyped_storage()) for t in inputs}
        made = [o for o in outputs if id(o.untyped_storage()) not in held]
        if name.startswith(_INTO_VIEWS):
            made = outputs[:1]
        if not made and not mutable:
            return  # a view
        self.before_operation()
        shapes = tuple(tuple(t.shape) for t in inputs)
        results = tuple(tuple(t.shape) for t in outputs)
        kind = str((outputs or inputs)[0].dtype).removeprefix("torch.") if outputs or inputs else ""
        written = made or _written(func, args, kwargs) or inputs[:1]
        unread = {id(t) for t in _unread(func, args, kwargs)}
        read = [t for t in inputs if id(t) not in unread]
        operation = Operation(name, shapes, results, kind, flops.of(name, flat, shapes, results),
                              sum(map(_bytes, read)), sum(map(_bytes, written)),
                              self._shards(inputs, outputs, read, written))  # fmt: skip
        self._append(operation, phase)

    def kernel(self, name: str, inputs: list[torch.Tensor], outputs: list[torch.Tensor], flops: int,
               times: tuple[KernelTime, ...]) -> None:  # fmt: skip
        """A call of a kernel of NKI, which is one operation."""
        if not self.on:
            return
        self.before_operation()
        shapes, results = (tuple(tuple(t.shape) for t in tensors) for tensors in (inputs, outputs))
        kind = str((outputs or inputs)[0].dtype).removeprefix("torch.")
        read, written = (sum(_bytes(t) for t in tensors) for tensors in (inputs, outputs))
        sharded = self._shards(inputs, outputs, inputs, outputs)
        self._append(Operation(f"nki.{name}", shapes, results, kind, flops, read, written, sharded, times), self.now())

    def launched(self, name: str, tensors: list[torch.Tensor]) -> None:
        """A kernel that writes to what it is given."""
        for tensor in tensors:
            self.values.forget(tensor)
        if not self.on:
            return
        self.before_operation()
        kind = str(tensors[0].dtype).removeprefix("torch.")
        shapes = tuple(tuple(t.shape) for t in tensors)
        self._append(Operation(f"triton.{name}", shapes, (), kind, 0, sum(map(_bytes, tensors)), 0), self.now())

    def _append(self, operation: Operation, phase: str) -> None:
        index = self._operations.setdefault(operation, len(self._operations))
        if index == len(self.record.operations):
            self.record.operations.append(operation)
        self.add(("op", self.streams.current.number, index, self.placed(), phase))


def size_of(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


@functools.cache
def _is_composed(func: Any) -> bool:
    """Made of other operators, which it is where autograd is off, too."""
    composed = "CompositeImplicitAutograd"
    return isinstance(func, torch._ops.OpOverload) and func.namespace == "aten" and bool(
        torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), composed))  # fmt: skip


def _bytes(tensor: torch.Tensor) -> int:
    """What moves: a value that is repeated along an axis is read once."""
    count = 1
    for extent, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= extent if stride or not extent else 1
    return count * tensor.element_size()


def _unread(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """Tensors whose values are replaced and do not matter: what is copied to, filled, or given as `out`."""
    replaced = args[:1] if isinstance(func, torch._ops.OpOverload) and func._schema.name in _REPLACING else ()
    return [t for t in tree_flatten((replaced, kwargs.get("out")))[0] if isinstance(t, torch.Tensor)]


def _written(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """Of an operator in place: what it changes. A fused optimizer may scale gradients, and does not."""
    told: list[Any] = []
    for index, one in enumerate(func._schema.arguments if isinstance(func, torch._ops.OpOverload) else ()):
        if one.alias_info is not None and one.alias_info.is_write and one.name != "grads":
            told.append(args[index] if index < len(args) else kwargs.get(one.name))
    return [t for t in tree_flatten(told)[0] if isinstance(t, torch.Tensor)]
