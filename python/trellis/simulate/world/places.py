"""Where in the job something happens: the module, and the line of the job's own source."""

import bisect
import functools
import os
import sys
from typing import Any

import torch
from torch import nn

from trellis.simulate.record import Place

__all__ = ["Places"]

_OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep
_NKI = os.path.join(os.path.dirname(os.path.dirname(_OWN)), "nki") + os.sep
_TORCH = os.path.dirname(torch.__file__) + os.sep
_COMPILED = "_is_compiled_here"
_WRAPPERS = ("_checkpoint_wrapped_module", "_orig_mod", "_fsdp_wrapped_module")


class Places:
    """Follows modules as they are called. What runs backward is placed where its forward operation was."""

    def __init__(self) -> None:
        self._stack: list[str] = []
        self._names: dict[int, str] = {}
        self._forward: dict[int, Place] = {}  # by autograd's sequence number
        self._numbers: list[int] = []  # those, ascending
        self._files: dict[str, str] = {}  # "" for those that are not the job's
        self._last = Place("", "")
        self.compiled = 0  # regions of torch.compile that run
        self._hooks: list[Any] = []

    def start(self) -> None:
        hooks = nn.modules.module
        self._hooks = [
            hooks.register_module_forward_pre_hook(self._enter),
            hooks.register_module_forward_hook(self._leave, always_call=True),
        ]

    def stop(self) -> None:
        for hook in self._hooks:
            hook.remove()

    @property
    def inside(self) -> bool:
        """A module's forward is running."""
        return bool(self._stack)

    @property
    def depth(self) -> int:
        return len(self._stack)

    def new_step(self) -> None:
        """A step may begin within a module, which is still running."""
        self._forward.clear()
        self._numbers.clear()

    def _enter(self, module: nn.Module, _: Any) -> None:
        if id(module) not in self._names or not self._stack:
            self._name_all(module)
        self._stack.append(self._names[id(module)])
        self.compiled += _COMPILED in module.__dict__

    def _leave(self, module: nn.Module, _: Any, __: Any) -> None:
        if self._stack:
            self._stack.pop()
            self.compiled -= _COMPILED in module.__dict__

    def compile(self, what: Any) -> Any:
        """As torch.compile: it does the same, and what it does is known to be compiled."""
        if isinstance(what, nn.Module):
            made = _optimized()(getattr(what, "_orig_mod", what), lambda function: function)
            self.compile_in_place(made)
            return made

        @functools.wraps(what)
        def compiled(*args: Any, **kwargs: Any) -> Any:
            self.compiled += 1
            try:
                return what(*args, **kwargs)
            finally:
                self.compiled -= 1

        return compiled

    def compile_in_place(self, module: nn.Module) -> None:
        module.__dict__[_COMPILED] = True

    def _name_all(self, root: nn.Module) -> None:
        if self._names.get(id(root)) is not None:
            return
        for name, module in root.named_modules():
            own = ".".join(word for word in name.split(".") if word not in _WRAPPERS)
            self._names[id(module)] = own.removeprefix("module.")
        self._keep = getattr(self, "_keep", []) + [root]  # so that no id is used again

    def now(self) -> Place:
        node = torch._C._current_autograd_node()
        if node is None:
            place = Place(self._stack[-1] if self._stack else "", self._line())
            if torch.is_grad_enabled():
                self._made(torch.autograd._get_sequence_nr() - 1, place)
        else:
            place = self._forward.get(node._sequence_nr()) or self._before(node._sequence_nr())
            if self._stack:  # the module is computed again
                place = Place(self._stack[-1], place.line)
        self._last = place
        return place

    def _made(self, number: int, place: Place) -> None:
        if self._forward.setdefault(number, place) is place and number > (self._numbers[-1] if self._numbers else -1):
            self._numbers.append(number)

    def _before(self, number: int) -> Place:
        """Where autograd's last node before it was made: of a node whose operations made others, as a loss on
        distributed tensors does, nothing else is known. Of one whose forward pass was not recorded: the line that goes
        backward."""
        at = bisect.bisect_right(self._numbers, number)
        return (
            self._forward[self._numbers[at - 1]] if at else self._last if self._last.line else Place("", self._line())
        )

    def _line(self) -> str:
        frame = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            short = self._files.get(file)
            if short is None:
                short = self._files[file] = _short(file)
            if short:
                return f"{short}:{frame.f_lineno}"
            frame = frame.f_back  # type: ignore[assignment]
        return ""


@functools.cache
def _optimized() -> type[nn.Module]:
    """The kind of module that torch.compile gives. The module within has its own name, `_orig_mod`, as in its state."""
    from torch._dynamo.eval_frame import OptimizedModule

    class Optimized(OptimizedModule):
        def _initialize(self) -> None:
            self.forward = self._orig_mod.__call__

        # torch's warns of the hooks by which modules are followed
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return nn.Module.__call__(self, *args, **kwargs)

    Optimized.__name__ = Optimized.__qualname__ = OptimizedModule.__name__
    return Optimized


def _short(file: str) -> str:
    if file.startswith((_OWN, _NKI, _TORCH, "<")) or file.endswith(("/runpy.py", "/contextlib.py")):
        return ""
    if "/importlib/" in file:
        return ""
    if "site-packages/" in file:
        return file.rpartition("site-packages/")[2]
    near = os.path.relpath(file)
    return os.path.basename(file) if near.startswith("..") else near
