"""A job that runs in this process: `with trellis.simulate("trn2.48xlarge x 4") as s: ...`."""

from typing import Any

from trellis import sim
from trellis.simulate.price import Priced, price
from trellis.simulate.ranks.families import joined
from trellis.simulate.record import JobRecord, RankClass

__all__ = ["Report", "Simulation"]


class Report:
    """The answer. It draws itself in a notebook."""

    def __init__(self, priced: Priced) -> None:
        self.priced = priced

    @property
    def time(self) -> float:
        return self.priced.time

    def __str__(self) -> str:
        from trellis.simulate.report.text import text

        return text(self.priced)

    def _repr_html_(self) -> str:
        import html

        from trellis.simulate.report.page import picture

        return f"{picture(self.priced)}<pre>{html.escape(str(self))}</pre>"


class Simulation:
    """Within it, this process is a rank of a world on the machine; all ranks are taken to do what it does.

    The model is made inside. The first step is recorded: from the first call of a module to the end of the optimizer's
    update, or of the block; `step=2` takes the second one. What is replaced in torch stays so until the process ends.
    """

    def __init__(self, machine: str | sim.Machine, world: int = 0, rank: int = 0, device: str = "any",
                 step: int = 1, routing: str = "") -> None:  # fmt: skip
        self.machine = machine if isinstance(machine, sim.Machine) else sim.Machine(machine)
        self.world = world or self.machine.ranks
        if not 0 <= rank < self.world <= self.machine.ranks:
            raise ValueError(f"rank {rank} of {self.world}: expected a rank of at most {self.machine.ranks} "
                             f"that {self.machine.base} has")  # fmt: skip
        self.rank, self.device, self.step, self.routing = rank, device, step, routing
        self._session: Any = None
        self._done = False

    def __enter__(self) -> "Simulation":
        from trellis.simulate.ranks.line import NoLine
        from trellis.simulate.world.job import environment
        from trellis.simulate.world.session import Session
        from trellis.simulate.world.settings import Settings

        memory = int(self.machine.rank_memory)
        settings = Settings(self.rank, self.world, self.world, self.device, self.step, memory, ["step"],
                            self.routing)  # fmt: skip
        environment(settings)
        self._session = Session(settings, NoLine(), ended=lambda: None)
        self._session.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._session.__exit__(*error)
        self._done = self._session.steps.finish()

    def record(self) -> JobRecord:
        if not self._done:
            raise ValueError(f"step {self.step} was not recorded: expected that many calls of a model in the block")
        session = self._session
        record = session.recorder.record
        one = RankClass(list(range(self.world)), [self.rank], record)
        families, assumed = joined(self.world, {self.rank: (session.groups.families(), session.groups.partial)})
        return JobRecord(self.world, session.torch_version, self.device, ["step"], families, [one],
                         [*record.assumptions, *assumed,
                          f"all ranks are taken to do what rank {self.rank} does"])  # fmt: skip

    def report(self) -> Report:
        return Report(price(self.record(), self.machine))
