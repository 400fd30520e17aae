"""Files that a job saves and that are not there: their structures, by name. A rank has those that it saved itself, and,
from a barrier on, those that rank 0 had saved before it. Into an open file, or a buffer, the structure is written."""

import hashlib
import hmac
import os
import pickle
import secrets
from collections.abc import Callable
from typing import Any

from trellis.simulate.world.communication import Communication
from trellis.simulate.world.errors import CannotRecord

__all__ = ["Files"]

_MARK = b"\0trellis simulate: a structure without data\n"
_SIGNED = hashlib.sha256().digest_size


class Files:
    def __init__(self, communication: Communication) -> None:
        recorder = communication.recorder
        self._line, self._places, self._rank = communication.line, recorder.places, recorder.settings.rank
        self._key = bytes.fromhex(recorder.settings.key) or secrets.token_bytes(32)  # only this job's bytes are read
        self._saved: dict[str, bytes] = {}
        self._posted: dict[str, int] = {}  # those of rank 0 that others may ask for, by number
        self._posts = 0
        self._passed: tuple[Any, ...] = ()  # the last barrier with rank 0
        communication.at_barrier = self._barrier

    def save(self, file: Any, data: bytes) -> None:
        if hasattr(file, "write"):
            file.write(_MARK + hmac.digest(self._key, data, "sha256") + data)
            return
        name = _name(file)
        self._saved[name] = data
        if self._rank == 0:
            self._posts += 1
            self._posted[name] = self._posts
            self._line.post(("file", self._posts), data)

    def forget(self, file: Any) -> None:
        """It is written for real."""
        if not hasattr(file, "write"):
            self._saved.pop(_name(file), None)
            self._posted.pop(_name(file), None)

    def load(self, file: Any) -> bytes | None:
        """The structure, if it is one; else the file is as before."""
        if hasattr(file, "read"):
            return self._written(file)
        name = _name(file)
        if name not in self._saved and not os.path.exists(name):
            return self._of_first(name)
        if name in self._saved:
            return self._saved[name]
        with open(name, "rb") as opened:
            return self._written(opened)

    def _written(self, file: Any) -> bytes | None:
        if not hasattr(file, "seekable") or not file.seekable():
            return None
        at = file.tell()
        if file.read(len(_MARK)) == _MARK:
            signed, data = file.read(_SIGNED), file.read()
            if not hmac.compare_digest(signed, hmac.digest(self._key, data, "sha256")):
                name = getattr(file, "name", "a buffer")
                raise CannotRecord(self._places.now(), f"{name} was saved by another simulated job, without data",
                                   "remove it, or load what a job saved for real")  # fmt: skip
            return bytes(data)
        file.seek(at)
        return None

    def _barrier(self, key: tuple[Any, ...]) -> None:
        if self._rank == 0:
            self._line.post(("files", *key), pickle.dumps(self._posted))
        self._passed = key

    def _of_first(self, name: str) -> bytes | None:
        if self._rank == 0 or not self._passed:
            return None
        where = str(self._places.now())
        told = self._line.fetch(("files", *self._passed), 0, where)
        number = pickle.loads(told).get(name) if told else None
        return None if number is None else self._line.fetch(("file", number), 0, where)

    def _moved(self, name: str, to: str | None) -> bool:
        """Whether the file is one that is not there: it is removed, or gets another name."""
        if name not in self._saved or os.path.exists(name):
            return False
        data = self._saved[name]
        self.forget(name)
        if to is not None:
            self.save(to, data)
        return True

    def install(self) -> None:
        """What a script does to the names of files that it saved; beside others, it names no folder by a descriptor."""

        def removing(remove: Callable[..., None]) -> Callable[..., None]:
            def removed(path: Any, *args: Any, **kwargs: Any) -> None:
                if args or kwargs or not self._moved(_name(path), None):
                    remove(path, *args, **kwargs)

            return removed

        def renaming(rename: Callable[..., None]) -> Callable[..., None]:
            def renamed(path: Any, to: Any, *args: Any, **kwargs: Any) -> None:
                if args or kwargs or not self._moved(_name(path), _name(to)):
                    rename(path, to, *args, **kwargs)

            return renamed

        os.remove, os.unlink = removing(os.remove), removing(os.unlink)  # type: ignore[assignment]
        os.rename, os.replace = renaming(os.rename), renaming(os.replace)  # type: ignore[assignment]


def _name(file: Any) -> str:
    return os.path.abspath(os.fsdecode(file))
