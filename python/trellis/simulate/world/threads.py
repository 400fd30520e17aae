"""Other threads of a job: torch's modes are a thread's own, so that none of them is followed. What they do on the host
is real. Where one makes a tensor of the device the job ends with an error: who waits for it would wait for ever."""

import threading
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from trellis.simulate.world.errors import CannotRecord
from trellis.simulate.world.names import here
from trellis.simulate.world.recorder import Recorder

__all__ = ["install"]

_OF_DATA = (torch.Tensor.numpy, torch.Tensor.__array__)


class _Calls(TorchFunctionMode):
    """What would need a driver before an operator is reached."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.pin_memory:
            return args[0]
        reads = func in _OF_DATA and isinstance(args[0], FakeTensor)
        if reads or func is torch.Tensor.cuda or self._names_device(func, args, kwargs):
            raise _fault(self._recorder, func.__name__)
        return func(*args, **kwargs)

    def _names_device(self, func: Any, args: Any, kwargs: Any) -> bool:
        given = [kwargs.get("device"), *(args[1:2] if func is torch.Tensor.to else ())]
        named = [str(here(x)) for x in given if type(x) in (str, int, torch.device)]
        return any(name.startswith(self._recorder.device.type) for name in named)


class _Operators(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        recorder, leaves = self._recorder, tree_leaves((args, kwargs or {}))
        if any(isinstance(x, torch.device) and here(x).type == recorder.device.type for x in leaves):
            raise _fault(recorder, func)
        if not any(isinstance(x, FakeTensor) for x in leaves):
            return func(*args, **(kwargs or {}))
        if getattr(func, "namespace", "") in recorder.communicate:
            raise _fault(recorder, func)
        try:
            done = func(*args, **(kwargs or {}))
        except Exception as error:
            raise _fault(recorder, func) from error
        recorder.assume("another thread works with tensors of the device: what it does is not recorded")
        return done


def _fault(recorder: Recorder, func: Any) -> CannotRecord:
    error = CannotRecord(
        recorder.places.now(),
        f"{func} runs on the device in the thread {threading.current_thread().name}, and only the script's own thread "
        "is followed",
        "leave to other threads what is on the host, and move it to the device where it is used",
    )  # fmt: skip
    recorder.failed(error)
    return error


def install(recorder: Recorder) -> None:
    start = threading.Thread.start

    def started(self: threading.Thread) -> None:
        run = self.run

        def watched() -> None:
            with _Calls(recorder), _Operators(recorder):
                run()

        self.run = watched  # type: ignore[method-assign]
        start(self)

    threading.Thread.start = started  # type: ignore[method-assign]
