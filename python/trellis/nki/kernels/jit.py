"""Kernels: decorated functions that are run, traced, timed."""

import functools
import os
from collections.abc import Callable
from typing import Any

from trellis.nki.kernels import session as sessions
from trellis.nki.kernels.launch import Launch
from trellis.nki.kernels.schedule import read_schedule
from trellis.nki.kernels.session import NkiError, Session
from trellis.nki.trace import Trace

__all__ = ["chip_for", "decorator", "Kernel", "settings"]

DEFAULT_CHIP = "trn2"


class settings:  # noqa: N801 (a name space)
    """What every kernel that is called from now on does, where its call says nothing."""

    chip: str = ""
    rules: str = "strict"
    compute: bool = True
    prints: bool = True
    watchers: list[Callable[[Trace, Any], None]] = []
    stand_in: Callable[["Kernel", tuple[Any, ...], dict[str, Any]], Any] | None = None  # called in a kernel's place


def chip_for(target: Any = None) -> str:
    asked = settings.chip or os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE") or target or DEFAULT_CHIP
    word = str(asked).lower().split(".")[0]
    return {"gen2": "trn1", "gen3": "trn2", "gen4": "trn3", "inf2": "inf2", "trn1n": "trn1", "trn2n": "trn2",
            "trn3pre": "trn3", "trn3pds98": "trn3"}.get(word, word)


class Kernel:
    """A function decorated with nki.jit, and how it is launched."""

    def __init__(
        self, func: Callable[..., Any], *, beta: bool = False, grid: tuple[Any, ...] = (), **options: Any
    ) -> None:
        self.func, self.beta, self.grid, self.options = func, beta, grid, options
        self.trace: Trace | None = None  # of the last run
        self.session: Session | None = None
        functools.update_wrapper(self, func)

    @property
    def name(self) -> str:
        return str(getattr(self.func, "__name__", "kernel"))

    def __repr__(self) -> str:
        return f"Kernel({self.name})"

    def __getitem__(self, grid: Any) -> "Kernel":
        dims = grid if isinstance(grid, tuple) else (grid,)
        return type(self)(self.func, beta=self.beta, grid=tuple(dims), **self.options)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return type(self)(self.func.__get__(instance, owner), beta=self.beta, grid=self.grid, **self.options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if sessions.active():
            return self.func(*args, **kwargs)
        if settings.stand_in is not None:
            return settings.stand_in(self, args, kwargs)
        return self.launch(args, kwargs)

    def with_schedule(self, pairs: Any, kind: Any = None) -> "Kernel":
        """Pairs (later, earlier) of the names that instructions have by name=; earlier may be a list of names."""
        schedule = read_schedule(pairs, kind)
        return type(self)(self.func, beta=self.beta, grid=self.grid, **self.options | {"schedule": schedule})

    def specialize(self, *args: Any, **kwargs: Any) -> "Kernel":
        self.launch(args, kwargs, compute=False)
        return self

    def timing(self) -> Any:
        """How long the last run takes on its chip, as trellis.nki.timing models it."""
        from trellis.nki.kernels.benchmark import seconds_of

        if self.trace is None:
            raise NkiError(f"{self.name} has not run; expected a call before its time is asked for")
        return seconds_of(self.trace)

    profile = timing

    def programs(self) -> tuple[tuple[int, ...], int]:
        """The grid's dimensions, and how many cores they are spread over."""
        sizes = tuple(int(d) for d in self.grid) or (1,)
        if min(sizes) < 1:
            raise NkiError(
                f"{sessions.where()}: {self.name} on a grid of {'x'.join(map(str, sizes))}; expected 1 or more of each"
            )
        if not self.beta and sizes not in ((1,), (2,)):
            raise NkiError(
                f"{sessions.where()}: {self.name} on {'x'.join(map(str, sizes))} cores; expected kernel[1] or "
                "kernel[2]: a logical core has one or two (nki/get-started/about/lnc.rst)"
            )
        cores = 1
        for d in self.grid:
            cores = max(cores, getattr(d, "cores", 1))
        if not self.beta and len(sizes) == 1:
            cores = sizes[0]
        return sizes, cores

    def launch(self, args: Any, kwargs: Any, *, compute: bool | None = None, chip: str | None = None,
               repeats: bool = True) -> Any:
        """Runs the kernel's programs; its results, as arrays. `repeats`: without arithmetic, iterations of a loop may
        be told from some of them."""
        launch = self.launched(args, kwargs, compute=compute, chip=chip, repeats=repeats)
        try:
            returned = launch.run()
        except Exception:
            if not launch.session.repeated:
                raise
            launch.session.repeats = False
        if not launch.session.repeats and repeats:  # a list that the loop fills, perhaps: each iteration is traced
            return self.launch(args, kwargs, compute=compute, chip=chip, repeats=False)
        self.keep(launch, returned)
        return returned

    def launched(
        self, args: Any, kwargs: Any, *, compute: bool | None = None, chip: str | None = None, **more: Any
    ) -> Launch:
        """A run that is ready to start. `more`: fields of its session."""
        return Launch(self, args, kwargs, chip or chip_for(self.options.get("platform_target")),
                      compute=settings.compute if compute is None else compute, strict=settings.rules == "strict",
                      prints=settings.prints, **more)  # fmt: skip

    def keep(self, launch: Launch, returned: Any) -> None:
        """As the last run."""
        self.trace, self.session = launch.session.trace, launch.session
        for watch in settings.watchers:
            watch(launch.session.trace, returned)


def decorator(beta: bool, kind: type[Kernel] = Kernel) -> Callable[..., Any]:
    """nki.jit of a dialect: with or without options in brackets."""

    def jit(func: Any = None, **options: Any) -> Any:
        if func is None:
            return lambda f: jit(f, **options)
        if isinstance(func, Kernel):
            return kind(func.func, beta=func.beta, grid=func.grid, **func.options | options)
        if not callable(func):
            raise NkiError(f"{sessions.where()}: nki.jit of {func!r}; expected a function")
        return kind(func, beta=beta, **options)

    return jit
