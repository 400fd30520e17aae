"""The kernel that is being run: its trace, what it may do, and where in its text it is."""

import linecache
import os
import sys
import warnings
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from trellis.nki.rules.chips import ChipLimits, limits_of
from trellis.nki.trace import Trace

__all__ = [
    "active",
    "broken",
    "new_session",
    "NkiError",
    "NkiWarning",
    "refuse",
    "Session",
    "session",
    "switch",
    "where",
]

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_ours: dict[CodeType, bool] = {}


class NkiError(Exception):
    """A kernel breaks a rule, or asks for what is not there. The text begins with the kernel's file and line."""


class NkiWarning(UserWarning):
    """What is legal, and on a device not what its author expects."""


def kernel_frame() -> FrameType:
    """The innermost frame that is not of this package."""
    frame = sys._getframe(1)
    while True:
        code = frame.f_code
        ours = _ours.get(code)
        if ours is None:
            name = code.co_filename
            ours = _ours[code] = name.startswith(PACKAGE) or name.startswith("<nki ")
        if not ours or frame.f_back is None:
            return frame
        frame = frame.f_back


def where() -> str:
    """file:line of the kernel."""
    frame = kernel_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


@dataclass
class Session:
    """One run of a kernel, for all of its programs."""

    trace: Trace
    limits: ChipLimits
    compute: bool = True
    strict: bool = True
    beta: bool = False  # the rules of neuronxcc's dialect
    program: tuple[int, ...] = (0,)
    grid: tuple[int, ...] = (1,)
    mask: Any = None  # of the instruction that is running, in neuronxcc's dialect
    memories: list[Any] = field(default_factory=list)
    warned: set[tuple[str, int]] = field(default_factory=set)
    prints: bool = True
    random: Any = None
    accumulators: dict[str, Any] = field(default_factory=dict)
    uninitialised: int = 0
    core: int = 0
    team: Any = None  # of the programs that run beside this one
    world: Any = None  # of the ranks that run beside this one
    rank: int = 0
    barriers: dict[tuple[int, int], int] = field(default_factory=dict)  # of a buffer and a core: the last core_barrier
    meetings: set[tuple[int, int]] = field(default_factory=set)  # a buffer, and a core_barrier on it of any core
    ones: Any = None  # a row of ones, by which other rows are broadcast
    loops: list[Any] = field(default_factory=list)  # that are running, the outermost first: LoopPlaces
    repeats: bool = True  # without arithmetic, some iterations of a loop may stand for all
    repeated: bool = False  # some iterations of a loop did
    _shared: dict[Any, Any] = field(default_factory=dict)
    _declared: dict[Any, int] = field(default_factory=dict)
    _lines: dict[tuple[CodeType, int], int] = field(default_factory=dict)

    def line(self) -> int:
        """The index in the trace of the kernel's line that is running."""
        frame = kernel_frame()
        key = (frame.f_code, frame.f_lineno)
        index = self._lines.get(key)
        if index is None:
            file = frame.f_code.co_filename
            self.trace.lines.append((file, frame.f_lineno, linecache.getline(file, frame.f_lineno).strip()))
            index = self._lines[key] = len(self.trace.lines) - 1
        return index

    def shared(self, make: Any) -> Any:
        """What all programs of a grid declare at a line is one: the n-th time is the same for each."""
        line = self.line()
        mine = (self.program, line)
        count = self._declared[mine] = self._declared.get(mine, 0) + 1
        if (line, count) not in self._shared:
            self._shared[line, count] = make()
        return self._shared[line, count]

    def warn(self, rule: str, text: str) -> None:
        """Once for each line and rule."""
        line = self.line()
        if (rule, line) not in self.warned:
            self.warned.add((rule, line))
            file, number, _ = self.trace.lines[line]
            warnings.warn(f"{file}:{number}: {text}", NkiWarning, stacklevel=3)


_current: list[Session] = []


def active() -> bool:
    return bool(_current)


def session() -> Session:
    """The session of the kernel that is running."""
    if not _current:
        raise NkiError(f"{where()}: an instruction outside of a kernel; expected to be called from one (@nki.jit)")
    return _current[-1]


def enter(s: Session) -> None:
    _current.append(s)


def switch(s: Session) -> Session:
    """Another session in the place of the one that is running."""
    _current[-1] = s
    return s


def leave() -> None:
    _current.pop()


def new_session(name: str, chip: str, **fields: Any) -> Session:
    return Session(Trace(name, chip=chip), limits_of(chip), **fields)


def broken(rule: str, text: str) -> None:
    """Refuses what breaks a rule of the documentation; with --rules device it is a warning."""
    s = session()
    if s.strict:
        raise refuse(text)
    s.warn(rule, text)


def refuse(text: str) -> NkiError:
    """The error to raise, at the kernel's line."""
    return NkiError(f"{where()}: {text}")
