"""One run of a kernel on one rank: its session, its arguments, its programs, its results."""

import contextlib
import inspect
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trellis.nki.kernels import session as sessions
from trellis.nki.kernels.arguments import Arguments
from trellis.nki.kernels.cores import Seat, Team
from trellis.nki.kernels.schedule import keep_schedule
from trellis.nki.kernels.session import new_session
from trellis.nki.rules.capacity import check_capacity
from trellis.nki.rules.overlaps import check_overlaps
from trellis.nki.rules.placement import check_placement
from trellis.nki.rules.races import check_races

if TYPE_CHECKING:
    from trellis.nki.kernels.jit import Kernel

__all__ = ["Launch"]


class Launch:
    """`settings`: fields of the session."""

    def __init__(self, kernel: "Kernel", args: Any, kwargs: Any, chip: str, **settings: Any) -> None:
        sizes, cores = kernel.programs()
        self.kernel = kernel
        self.session = s = new_session(kernel.name, chip, beta=kernel.beta, grid=sizes, **settings)
        s.trace.dialect = "beta1" if kernel.beta else "0.7"
        s.trace.lnc, s.trace.grid = cores, sizes
        s.trace.skip_middle_end = bool(getattr(kernel.func, "_nki_skip_middle_end", False))
        self.programs = list(itertools.product(*(range(n) for n in sizes)))
        self.taken = Arguments(s)
        with self.running():
            self.args, self.kwargs = self._bound(args, kwargs)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        sessions.enter(self.session)
        try:
            yield
        finally:
            sessions.leave()

    def _bound(self, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        try:
            names = list(inspect.signature(self.kernel.func).parameters)
        except (TypeError, ValueError):
            names = []
        label = [*names, *(f"argument{k}" for k in range(len(args)))]
        return (tuple(self.taken.convert(a, label[k]) for k, a in enumerate(args)),
                {k: self.taken.convert(v, k) for k, v in kwargs.items()})

    def seats(self) -> list[Seat]:
        """The programs that run side by side; neuronxcc's run one after the other."""
        if self.kernel.beta:
            return [Seat(self.session, self.programs[0], 0)]
        return [Seat(self.session, program, core) for core, program in enumerate(self.programs)]

    def body(self) -> Any:
        """A seat's program, or all that run one after the other."""
        if not self.kernel.beta or len(self.programs) == 1:
            return self.kernel.func(*self.args, **self.kwargs)
        result: Any = None
        for program in self.programs:
            self.session.program = program
            result = self.kernel.func(*self.args, **self.kwargs)
        return result

    def close(self, result: Any) -> Any:
        """The results as arrays. The session has to be the one that is running."""
        s = self.session
        keep_schedule(s.trace, self.kernel.options.get("schedule", ()))
        check_capacity(s)
        check_overlaps(s)
        check_placement(s)
        check_races(s)
        self.taken.written_back()
        return self.taken.results(result)

    def run(self) -> Any:
        """The kernel alone, on one rank."""
        seats = self.seats()
        with self.running():
            self.session.program = seats[0].program
            return self.close(self.body() if len(seats) == 1 else Team(seats).run(lambda _: self.body())[0])
