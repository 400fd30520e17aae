"""Processes of ranks, forked by one that has imported torch: its import would take most of a small job's time."""

import contextlib
import os
import signal
import subprocess
import sys
import threading

__all__ = ["Forked", "Nursery"]


class Forked:
    """As subprocess.Popen, of a process that another one started."""

    def __init__(self, owner: "Nursery", pid: int) -> None:
        self._owner, self.pid = owner, pid

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        return self._owner.status(self.pid)

    def kill(self) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> None:
        self._owner.wait(self.pid)


class Nursery:
    def __init__(self) -> None:
        told, telling = os.pipe()
        # -P: files of the current folder, such as types.py, do not hide modules.
        words = [sys.executable, "-P", "-m", "trellis.simulate.world.nursery", str(telling)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, pass_fds=[telling])
        os.close(telling)
        self._changed = threading.Condition()
        self._begun: list[int] = []
        self._ended: dict[int, int] = {}
        self._over = False
        threading.Thread(target=self._listen, args=(told,), daemon=True).start()

    def start(self, line: str) -> Forked:
        assert self._process.stdin is not None
        with self._changed:
            before = len(self._begun)
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(line.encode() + b"\n")
                self._process.stdin.flush()
            self._changed.wait_for(lambda: self._over or len(self._begun) > before)
            if len(self._begun) == before:
                raise OSError(f"no rank can be started: {sys.executable} ended with status {self._process.wait()}")
            return Forked(self, self._begun[before])

    def status(self, pid: int) -> int | None:
        with self._changed:
            return self._ended.get(pid, -1 if self._over else None)

    def wait(self, pid: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._over or pid in self._ended)

    def close(self) -> None:
        """Its ranks have ended. It may still import torch, for which nobody waits."""
        assert self._process.stdin is not None
        self._process.terminate()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()

    def _listen(self, told: int) -> None:
        with os.fdopen(told) as lines:
            for line in lines:
                kind, *numbers = line.split()
                with self._changed:
                    if kind == "began":
                        self._begun.append(int(numbers[0]))
                    else:
                        self._ended[int(numbers[0])] = int(numbers[1])
                    self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()
