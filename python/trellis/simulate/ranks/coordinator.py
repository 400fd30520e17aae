"""Starts the processes of ranks, passes messages between them, and gathers their records."""

import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, Listener
from typing import Any

from trellis.simulate.ranks.nursery import Forked

__all__ = ["Coordinator", "RankFailed", "TooShort"]

_SILENCE = 5.0  # seconds


class RankFailed(Exception):
    """A rank's process ended without a record; the text says what it said."""


class TooShort(RankFailed):
    """The job was over before the step that is recorded."""

    def __init__(self, rank: int, updates: int) -> None:
        super().__init__(
            f"rank {rank}: the job ended after {updates} updates by its optimizer, before a step that can be recorded "
            "was over: let it run for more steps, or ask for an earlier one with --step"
            if updates
            else f"rank {rank}: the job ended without an update by an optimizer of torch: a step is what lies between "
            "two"
        )
        self.updates = updates


class Coordinator:
    """`start(rank, address, key)` makes the process of a rank. Ranks that others need are started when they do."""

    def __init__(self, start: Callable[[int, str, bytes], Forked]) -> None:
        self._start = start
        self._folder = tempfile.mkdtemp(prefix="trellis-simulate-")
        self._key = secrets.token_bytes(32)
        self._address = os.path.join(self._folder, "line")
        self._listener = Listener(self._address, "AF_UNIX", backlog=64, authkey=self._key)
        self._changed = threading.Condition()
        self._processes: dict[int, Forked] = {}
        self._posted: dict[Any, bytes] = {}  # keys are used once
        self._waiting: dict[int, tuple[int, str, Any]] = {}  # a rank, what it waits for
        self.records: dict[int, Any] = {}
        self._connected: set[int] = set()
        self._heard: set[int] = set()  # of these all is read once they are not connected
        self._ended: dict[int, float] = {}  # when a process was first seen to have ended
        self._failure = ""
        self._short: tuple[int, int] | None = None
        self._closing = False
        threading.Thread(target=self._accept, daemon=True).start()

    def run(self, ranks: list[int]) -> dict[int, Any]:
        """Runs these, and those that they need; the records of all of them."""
        with self._changed:
            for rank in ranks:
                self._ensure(rank)
        while True:
            with self._changed:
                if self._short:
                    raise TooShort(*self._short)
                if self._failure:
                    raise RankFailed(self._failure)
                if self._processes.keys() <= self.records.keys():
                    return self.records
                self._find_dead()
                self._find_circle()
                self._changed.wait(0.2)

    def close(self) -> None:
        self._closing = True
        for process in self._processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        self._listener.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ensure(self, rank: int) -> None:
        if rank not in self._processes:
            self._processes[rank] = self._start(rank, self._address, self._key)

    def _find_dead(self) -> None:
        """What a process said last may be read after its end, even that it was there."""
        for rank, process in self._processes.items():
            if process.poll() is None or rank in self._connected or rank in self.records or self._failure:
                continue
            silent = time.monotonic() - self._ended.setdefault(rank, time.monotonic())
            if rank in self._heard or silent >= _SILENCE:
                self._failure = f"rank {rank} ended with status {process.returncode} before its step was recorded"

    def _find_circle(self) -> None:
        running = [rank for rank in self._processes if rank not in self.records]
        if running and all(r in self._waiting and self._waiting[r][2] not in self._posted for r in running):
            told = "; ".join(f"rank {r} waits for rank {s} at {where}" for r, (s, where, _) in self._waiting.items())
            self._failure = f"no rank can go on: {told}"

    def _accept(self) -> None:
        while not self._closing:
            try:
                connection = self._listener.accept()
            except Exception:
                if self._closing:
                    return
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: "Connection[Any, Any]") -> None:
        rank = -1
        try:
            while True:
                kind, *told = connection.recv()
                if kind == "rank":
                    rank = told[0]
                    with self._changed:
                        self._connected.add(rank)
                        self._heard.add(rank)
                else:
                    self._take(connection, rank, kind, told)
        except (EOFError, OSError):
            with self._changed:
                self._connected.discard(rank)
                self._changed.notify_all()

    def _take(self, connection: "Connection[Any, Any]", rank: int, kind: str, told: list[Any]) -> None:
        with self._changed:
            if kind == "need":
                self._ensure(told[0])
            elif kind == "post":
                self._posted[told[0]] = told[1]
            elif kind == "fetch":
                self._answer(connection, rank, *told)
            elif kind == "record":
                self.records[rank] = told[0]
            elif kind == "failed" and not self._failure:
                self._failure = told[0]
            elif kind == "short" and not self._failure:
                self._short = told[0]
                self._failure = "it is over"
            self._changed.notify_all()

    def _answer(self, connection: "Connection[Any, Any]", rank: int, key: Any, source: int, where: str) -> None:
        self._ensure(source)
        self._waiting[rank] = (source, where, key)
        while key not in self._posted:
            if self._closing or self._failure:
                return
            if source in self.records:
                self._failure = f"rank {rank} waits at {where} for data of rank {source}, which sends none"
                return
            self._changed.wait(0.5)
        del self._waiting[rank]
        connection.send(("data", self._posted[key]))
