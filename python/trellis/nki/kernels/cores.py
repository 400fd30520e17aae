"""Several programs of one kernel that wait for each other: the cores of a logical core, and the ranks of a machine.

One runs at a time, in a thread of its own, and hands on where it must wait."""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from trellis.nki.kernels import session as sessions
from trellis.nki.kernels.session import NkiError, Session, refuse, where

__all__ = ["Seat", "Team"]


class Seat(NamedTuple):
    """A program that runs among others: those of one session are cores of one logical core."""

    session: Session
    program: tuple[int, ...]
    core: int


class Team:
    """Threads of which exactly one has the turn."""

    def __init__(self, seats: list[Seat]) -> None:
        self.seats = seats
        self.turn = 0
        self.ended = [False] * len(seats)
        self.until: list[Callable[[], bool] | None] = [None] * len(seats)  # what each waits for
        self.waits_for = [""] * len(seats)  # in words
        self.met = [0] * len(seats)
        self.mail: dict[tuple[Any, ...], deque[Any]] = {}
        self.gates = [threading.Semaphore(0) for _ in seats]
        self.failure: BaseException | None = None
        self.state: list[Any] = [({}, None) for _ in seats]
        self.peers = [[k for k, other in enumerate(seats) if other.session is seat.session] for seat in seats]

    def run(self, body: Callable[[int], Any]) -> list[Any]:
        """What each seat's program gives. `body` gets the seat's number."""
        results: list[Any] = [None] * len(self.seats)

        def work(me: int) -> None:
            self.gates[me].acquire()
            if self.failure is None:
                self._take(me)
                try:
                    results[me] = body(me)
                except BaseException as e:  # noqa: BLE001 (it is raised again in run)
                    self.failure = self.failure or e
            self.ended[me] = True
            self._hand_on(me)

        threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(len(self.seats))]
        for seat in self.seats:
            seat.session.team = self
        for t in threads:
            t.start()
        self.gates[0].release()
        try:
            for t in threads:
                t.join()
        except BaseException as e:  # the caller was interrupted: its programs end where they next wait
            self.failure = e
            raise
        for seat in self.seats:
            seat.session.team = None
        if self.failure is not None:
            raise self.failure
        return results

    def _take(self, me: int) -> None:
        seat = self.seats[me]
        s = sessions.switch(seat.session)
        s.program, s.core = seat.program, seat.core
        s.accumulators, s.mask = self.state[me]
        self.turn = me

    def _next(self, me: int) -> int | None:
        """Who can go on, or end after a failure."""
        n = len(self.seats)
        for step in range(1, n + 1):
            other = (me + step) % n
            until = self.until[other]
            if not self.ended[other] and (self.failure is not None or until is None or until()):
                return other
        return None

    def _hand_on(self, me: int) -> None:
        """From a program that has ended."""
        other = self._next(me)
        if other is None and not all(self.ended):
            waits = next(k for k, e in enumerate(self.ended) if not e)
            self.failure = self.failure or NkiError(f"{self.waits_for[waits]}: the others have ended")
            other = self._next(me)
        if other is not None:
            self.gates[other].release()

    def _give(self, me: int, other: int) -> None:
        self.state[me] = (self.seats[me].session.accumulators, self.seats[me].session.mask)
        self.gates[other].release()
        self.gates[me].acquire()
        if self.failure is not None:
            raise self.failure
        self._take(me)

    def wait(self, until: Callable[[], bool], what: str) -> None:
        """Lets others run until a condition holds."""
        me = self.turn
        if until():
            return
        self.until[me], self.waits_for[me] = until, f"{where()}: {what}"
        other = self._next(me)
        if other is None:
            self.failure = self.failure or refuse(f"{what}: every core waits for another")
            raise self.failure
        self._give(me, other)
        self.until[me] = None

    def turn_over(self) -> None:
        """After what the other core may see: it does as much before this one goes on, as cores side by side would."""
        me = self.turn
        for other in self.peers[me]:
            until = self.until[other]
            if other != me and not self.ended[other] and (until is None or until()):
                return self._give(me, other)

    def meet(self) -> bool:
        """Until the other cores of this logical core have come as often; whether this one was the last."""
        me = self.turn
        self.met[me] += 1
        mine, peers = self.met[me], self.peers[me]
        last = all(self.met[k] >= mine for k in peers)
        self.wait(lambda: all(self.met[k] >= mine for k in peers), "core_barrier")
        return last

    def exchange(self, to: int, source: int, pipe: Any, parcel: Any) -> tuple[Any, bool]:
        """What the other core of this logical core gave, and whether it was there already. `to` and `source` are
        cores."""
        s = self.seats[self.turn].session
        key = (id(s), source, s.core, pipe)
        there = bool(self.mail.get(key))
        self.mail.setdefault((id(s), s.core, to, pipe), deque()).append(parcel)
        self.wait(lambda: bool(self.mail.get(key)), "sendrecv")
        return self.mail[key].popleft(), there
