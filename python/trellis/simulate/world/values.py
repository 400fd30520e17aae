"""Values of small tensors that are known though the tensors are fake: counters, flags, scales, sizes. What the host
reads of those that nobody knows."""

import io
import math
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map

from trellis.simulate.world.errors import CannotRecord

if TYPE_CHECKING:
    from trellis.simulate.world.recorder import Recorder

__all__ = ["Values", "compared", "made_without_data", "onto_host", "packed", "plain", "read", "unpacked"]

_MOST = 512  # elements: numbers of tokens of as many experts
_MOST_WHOLE = 1 << 17  # of whole numbers and truths: positions of a sequence, and what is asked of them
_LARGE = 1 << 16  # floats of the host that have no data, if the device is fake: so many of a module, or without values
_HUGE = 1 << 26  # floats of the host that have no data but where a loader makes them: weights, which no script reads
_UNKNOWN = {"rand", "randn", "randint", "bernoulli", "normal", "uniform", "exponential", "empty",
            "empty_like", "empty_strided", "rand_like", "randn_like", "randint_like", "new_empty", "multinomial",
            "new_empty_strided", "native_dropout", "normal_", "uniform_", "bernoulli_", "random_", "exponential_",
            "empty_permuted", "resize_"}  # fmt: skip
_REPLACING = {"copy_", "fill_", "zero_"}  # whatever the first operand had
_DEVICES = {"device", "pin_memory", "layout"}
_KEPT = "found_inf"  # which a scaler's check of gradients writes: what nobody knows is finite, so it stays as it was
_NUMBERS = frozenset((int, float, bool))
_OF_TRUTHS = {"all", "any", "logical_not", "logical_and", "logical_or", "bitwise_not", "bitwise_and", "bitwise_or",
              "mul"}  # fmt: skip


class Values:
    """A tensor that is a view of another shares its known values, too."""

    def __init__(self) -> None:
        self._known: dict[int, torch.Tensor] = {}
        self._later: dict[int, Callable[[], torch.Tensor | None]] = {}
        self._sharing: dict[int, dict[int, weakref.ref[FakeTensor]]] = {}  # by storage: those that were known
        self._ends: dict[int, Any] = {}  # what is called when one of them is gone

    def of(self, tensor: Any) -> torch.Tensor | None:
        if isinstance(tensor, FakeTensor):
            if (later := self._later.pop(id(tensor), None)) is not None and (value := later()) is not None:
                self.know(tensor, value)
            return self._known.get(id(tensor))
        if isinstance(tensor, torch.Tensor) and _small(tensor) and tensor.device.type == "cpu":
            return tensor
        return None

    def know(self, fake: FakeTensor, value: torch.Tensor) -> None:
        self._keep(fake)
        self._known[id(fake)] = value

    def know_alike(self, fake: FakeTensor, value: torch.Tensor | bool) -> None:
        """That all elements are this one, however many there are."""
        told = torch.as_tensor(value).expand(fake.shape)
        self.know(fake, told.clone() if _small(fake) else told)

    def _keep(self, fake: FakeTensor) -> None:
        storage = _storage(fake)
        sharing = self._sharing.setdefault(storage, {})
        if id(fake) not in sharing:
            sharing[id(fake)] = weakref.ref(fake)
            self._ends[id(fake)] = end = weakref.finalize(fake, self._gone, storage, id(fake))
            end.atexit = False

    def release(self, fake: Any) -> None:
        """As if it were gone: nothing is known of it, and no weak reference to it is left here."""
        if (end := self._ends.get(id(fake))) is not None and (ended := end.detach()) is not None:
            ended[1](*ended[2])

    def _gone(self, storage: int, which: int) -> None:
        self._ends.pop(which, None)
        self._drop(which)
        sharing = self._sharing.get(storage, {})
        sharing.pop(which, None)
        if not sharing:
            self._sharing.pop(storage, None)

    def _drop(self, which: int) -> None:
        self._known.pop(which, None)
        self._later.pop(which, None)

    def put(self, fake: FakeTensor, value: torch.Tensor | None) -> None:
        """What a communication writes there; none: nobody knows."""
        mine = self._known.get(id(fake))
        if mine is not None and value is not None and mine.shape == value.shape and _small(fake):
            mine.copy_(value)  # and so into what is known of its views
            self._later.pop(id(fake), None)
            return
        self.forget(fake)
        if value is not None and _small(fake):
            self.know(fake, value)

    def travels(self, tensor: torch.Tensor) -> bool:
        """Small enough for its value to go to another rank."""
        return _small(tensor)

    def know_later(self, fake: FakeTensor, value: Callable[[], torch.Tensor | None]) -> None:
        """The value is asked for when it is first used, as what another rank sends."""
        self.forget(fake)
        self._keep(fake)
        self._later[id(fake)] = value

    def forget(self, fake: Any) -> None:
        """And all that shares elements with it."""
        if isinstance(fake, FakeTensor):
            self._drop(id(fake))
            for which, ref in list(self._sharing.get(_storage(fake), {}).items()):
                if (other := ref()) is not None and _overlap(fake, other):
                    self._drop(which)

    def _forget_written(self, func: Any, args: Any, kwargs: Any) -> None:
        given = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs
        for argument in func._schema.arguments:
            if argument.alias_info is not None and argument.alias_info.is_write and argument.name != _KEPT:
                for one in tree_leaves(given.get(argument.name)):
                    self.forget(one)

    def _all(self, tensors: list[torch.Tensor]) -> list[torch.Tensor] | None:
        real: list[torch.Tensor] = []
        for tensor in tensors:
            if (value := self.of(tensor)) is None:
                return None
            real.append(value)
        return real

    def _replace(self, tensors: list[torch.Tensor]) -> None:
        """The first one is written over: it is as good as known."""
        if tensors and isinstance(tensors[0], FakeTensor) and self.of(tensors[0]) is None:
            self.forget(tensors[0])
            self.know(tensors[0], torch.empty(tensors[0].shape, dtype=tensors[0].dtype))

    def follow(self, func: Any, flat: list[Any], args: Any, kwargs: Any, outputs: list[Any]) -> None:
        """Computes `func` for real where all that goes in is known and what comes out is small. Of large tensors whose
        elements are alike, truths follow from one of them."""
        tensors = [x for x in flat if isinstance(x, torch.Tensor)]
        name = func._schema.name.partition("::")[2]
        alike = any(_large_alike(self._known.get(id(t))) for t in tensors)
        known = name in _OF_TRUTHS if alike else name not in _UNKNOWN and all(map(_small, outputs))
        if known and name in _REPLACING and self._all(tensors[1:]) is not None:
            self._replace(tensors)
        real = self._all(tensors) if known and outputs else None
        if alike and real is not None:
            real = None if any(any(r.stride()) for r in real) else [r[(slice(1),) * r.dim()] for r in real]
        if real is None:
            self._forget_written(func, args, kwargs)
            return
        by_id = {id(t): r for t, r in zip(tensors, real, strict=True)}
        swap = lambda x: by_id[id(x)] if isinstance(x, torch.Tensor) else x  # noqa: E731
        here = {k: v for k, v in kwargs.items() if k not in _DEVICES}
        try:
            done = func(*tree_map(swap, args), **tree_map(swap, here))
        except Exception:  # no kernel of the host for it: then the value is not known
            self._forget_written(func, args, kwargs)
            return
        for output, value in zip(outputs, done if isinstance(done, (list, tuple)) else [done], strict=False):
            if isinstance(output, FakeTensor) and isinstance(value, torch.Tensor):
                (self.know_alike if alike else self.know)(output, value)


def read(recorder: "Recorder", tensor: torch.Tensor) -> torch.Tensor:
    """A real tensor with what a fake one has, for which the host waits."""
    if tensor.device.type == recorder.device.type:
        recorder.host_waits(recorder.streams.current.number)
    value = taken(recorder, tensor)
    return value if any(value.stride()) else value.clone()


def taken(recorder: "Recorder", tensor: torch.Tensor) -> torch.Tensor:
    """What nobody knows is taken as 1 (false, of a condition), and listed. Several whole numbers are not: they may be
    numbers of tokens, by which what follows is split."""
    if (value := recorder.values.of(tensor)) is not None:
        return value
    place, kind, count = recorder.places.now(), tensor.dtype, tensor.numel()
    if _whole(tensor) and count > 1:
        raise CannotRecord(
            place, f"{count} whole numbers are read that depend on data",
            "--routing answers only for what torch.histc and torch.bincount count: count tokens by one of them"
            if recorder.settings.routing else "say --routing uniform or skew=S if they are numbers of tokens for "
            "experts; of others, as predictions, nothing is known here: leave out what reads them",
        )  # fmt: skip
    one = torch.tensor(kind != torch.bool, dtype=kind)
    what = "a value that depends" if count == 1 else f"{count} values that depend"
    recorder.assume(f"{place} reads {what} on data: taken as {one.item()}")
    return one.expand(tensor.shape)


def _whole(tensor: torch.Tensor) -> bool:
    kind = tensor.dtype
    return not (kind.is_floating_point or kind.is_complex or kind == torch.bool)


def onto_host(recorder: "Recorder", func: Any, args: Any, kwargs: Any, done: Any) -> Any:
    """An operator that writes what is not there into tensors of the host, whose data is real."""
    fake = [x for x in tree_leaves((args, kwargs)) if isinstance(x, FakeTensor)]
    if any(_whole(x) and x.numel() > 1 and recorder.values.of(x) is None for x in fake):
        recorder.assume(f"{recorder.places.now()} puts whole numbers that depend on data into a tensor of the host: it "
                        "keeps what it has")  # fmt: skip
        return done
    real = {id(x): taken(recorder, x) for x in fake}
    swap = lambda x: real.get(id(x), x)  # noqa: E731
    return func(*tree_map(swap, args), **tree_map(swap, kwargs))


def compared(recorder: "Recorder", func: Any, args: Any, kwargs: Any) -> bool:
    """Whether two tensors are equal, or nearly."""
    if args[0].device.type == recorder.device.type:
        recorder.host_waits(recorder.streams.current.number)
    one, other = (recorder.values.of(t) for t in args[:2])
    if one is not None and other is not None:
        return bool(func(one, other, *args[2:], **kwargs))
    recorder.assume(f"{recorder.places.now()} compares tensors that depend on data: taken as {args[0] is args[1]}")
    return args[0] is args[1]


def plain(recorder: "Recorder", given: Any) -> Any:
    """A list of values, and of lists of values, with real tensors for fake ones."""
    if type(given) in (list, tuple):
        if _NUMBERS.issuperset(map(type, given)):
            return given
        return [plain(recorder, one) for one in given]
    return read(recorder, given) if isinstance(given, FakeTensor) else given


def made_without_data(func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
    """Makes floats of the host that are many and whose values do not matter: of a model, before it is moved to the
    device, or without values. What a script computes on the host is real, up to `_HUGE`."""
    if getattr(func, "namespace", "") != "aten":
        return False
    given = dict(zip((a.name for a in func._schema.arguments), args, strict=False)) | kwargs
    device, size = given.get("device"), given.get("size")
    kind = given.get("dtype") or _kind_of(func, given)
    if size is None or not kind.is_floating_point or (device is not None and device.type != "cpu"):
        return False
    if (count := math.prod(size)) < _LARGE:
        return False
    return func._schema.name == "aten::empty" or _in_a_constructor() or (count >= _HUGE and not _in_a_loader())


def _kind_of(func: Any, given: dict[str, Any]) -> torch.dtype:
    """Of what is made, where no type is given."""
    whole = isinstance(given.get("fill_value"), int) or func._schema.name in ("aten::randint", "aten::randperm")
    return torch.int64 if whole else torch.get_default_dtype()


def _frames() -> Iterator[Any]:
    frame: Any = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _in_a_constructor() -> bool:
    """Of a module, or where its parameters are set."""
    for frame in _frames():
        code = frame.f_code
        named = code.co_name in ("__init__", "reset_parameters") and code.co_argcount
        if named and isinstance(frame.f_locals.get(code.co_varnames[0]), torch.nn.Module):
            return True
    return False


def _in_a_loader() -> bool:
    """Where a loader of torch's asks for a batch."""
    return any(frame.f_globals.get("__name__") == "torch.utils.data._utils.fetch" for frame in _frames())


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _overlap(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the bytes from the first to the last element have any in common."""
    (a, b), (c, d) = _reach(one), _reach(other)
    return a < d and c < b


def _reach(tensor: torch.Tensor) -> tuple[int, int]:
    begin, size = int(tensor.storage_offset()), tensor.element_size()
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return begin * size, (begin + last + 1) * size if tensor.numel() else begin * size


def _small(tensor: torch.Tensor) -> bool:
    kind = tensor.dtype
    return tensor.numel() <= (_MOST if kind.is_floating_point or kind.is_complex else _MOST_WHOLE)


def _large_alike(value: torch.Tensor | None) -> bool:
    return value is not None and not _small(value) and not any(value.stride())


def packed(value: torch.Tensor | None) -> bytes:
    """No bytes: a value that the sender does not know."""
    stream = io.BytesIO()
    if value is not None:
        torch.save(value.detach().contiguous().clone(), stream)
    return stream.getvalue()


def unpacked(data: bytes | None) -> torch.Tensor | None:
    return torch.load(io.BytesIO(data)) if data else None
