"""Several programs of one kernel that wait for each other: one runs at a time, and hands on where it must wait."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from trellis.nki.kernels.session import Session, refuse

__all__ = ["Team"]


class Team:
    """Threads of which exactly one has the turn."""

    def __init__(self, s: Session, programs: list[tuple[int, ...]]) -> None:
        self.session, self.programs = s, programs
        self.turn = 0
        self.ended = [False] * len(programs)
        self.met = [0] * len(programs)
        self.idle = 0  # looks in a row that found nothing to go on with
        self.mail: dict[tuple[Any, ...], deque[Any]] = {}
        self.ready = threading.Condition()
        self.failure: BaseException | None = None
        self.state: list[Any] = [({}, None) for _ in programs]

    def run(self, body: Callable[[], Any]) -> list[Any]:
        results: list[Any] = [None] * len(self.programs)

        def work(me: int) -> None:
            with self.ready:
                self.ready.wait_for(lambda: self.turn == me)
            if self.failure is None:
                self._take(me)
                try:
                    results[me] = body()
                except BaseException as e:  # noqa: BLE001 (it is raised again in run)
                    self.failure = self.failure or e
            self.ended[me] = True
            self._pass(me)

        threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(len(self.programs))]
        self.session.team = self
        for t in threads:
            t.start()
        try:
            for t in threads:
                t.join()
        except BaseException as e:  # the caller was interrupted: its programs end where they next wait
            self.failure = e
            raise
        self.session.team = None
        if self.failure is not None:
            raise self.failure
        return results

    def _take(self, me: int) -> None:
        s = self.session
        s.program, s.core = self.programs[me], me
        s.accumulators, s.mask = self.state[me]

    def _pass(self, me: int) -> None:
        """The turn to the next that has not ended."""
        with self.ready:
            n = len(self.programs)
            for step in range(1, n + 1):
                other = (me + step) % n
                if not self.ended[other]:
                    self.turn = other
                    break
            self.ready.notify_all()

    def wait(self, me: int, until: Callable[[], bool], what: str) -> None:
        """Lets others run until a condition holds. A core looks once in its turn, so where all have looked twice in a row
        for nothing, nobody goes on."""
        while not until():
            self.idle += 1
            if self.failure is not None or all(e for k, e in enumerate(self.ended) if k != me):
                raise self.failure or refuse(f"{what}: the other core has ended")
            if self.idle > 2 * len(self.programs):
                raise refuse(f"{what}: every core waits for another")
            self.state[me] = (self.session.accumulators, self.session.mask)
            self._pass(me)
            with self.ready:
                self.ready.wait_for(lambda: self.turn == me)
            self._take(me)
        self.idle = 0

    def turn_over(self, me: int) -> None:
        """After what others may see: they do as much before this one goes on, as cores side by side would."""
        if self.failure is None and all(e for k, e in enumerate(self.ended) if k != me):
            return
        once = iter((False, True))
        self.wait(me, lambda: next(once), "turn")

    def meet(self, me: int) -> None:
        self.met[me] += 1
        mine = self.met[me]
        self.wait(me, lambda: all(m >= mine for m in self.met), "core_barrier")

    def exchange(self, me: int, to: int, source: int, pipe: Any, values: Any) -> Any:
        self.mail.setdefault((me, to, pipe), deque()).append(values)
        key = (source, me, pipe)
        self.wait(me, lambda: bool(self.mail.get(key)), "sendrecv")
        return self.mail[key].popleft()
