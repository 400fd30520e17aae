"""What is written: parts while it goes on, each whole or absent, and at the end Megatron's .bin and .idx with a .mask.

A mask has a byte for each token: 0 where it is not to be predicted.
"""

import contextlib
import json
import os
import pathlib
import shutil
import struct
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from trellis.train.prepare.wrong import Wrong

__all__ = ["Parts", "width_of"]

_CODES = {2: 8, 4: 4}  # Megatron's numbers of uint16 and int32
_TYPES = {2: np.uint16, 4: np.int32}


def width_of(vocabulary: int) -> int:
    """Bytes of a token."""
    return 2 if vocabulary <= 1 << 16 else 4


@contextlib.contextmanager
def _whole(path: pathlib.Path) -> Iterator[IO[bytes]]:
    """Written beside it, and renamed when all of it is on disk."""
    beside = path.with_name(path.name + ".part")
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.rename(path)
    except OSError as e:
        beside.unlink(missing_ok=True)
        raise Wrong(f"{path}: {e.strerror}") from e
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


class Parts:
    """The parts of OUT in the folder OUT.parts. plan: what they depend on."""

    def __init__(self, out: pathlib.Path, plan: dict[str, Any], masked: bool | None = None) -> None:
        self.out, self.plan, self.masked = out, plan, masked
        self.folder = out.with_name(out.name + ".parts")
        self.done: list[dict[str, Any]] = []
        self._documents: list[Any] = []
        self._masks: list[Any] = []

    def ending(self, ending: str) -> pathlib.Path:
        return self.out.with_name(self.out.name + ending)

    def finished(self) -> bool:
        """Whether OUT is there, made of the same."""
        if not self.ending(".idx").exists():
            return False
        with contextlib.suppress(OSError, ValueError, KeyError):
            return bool(json.loads(self.ending(".json").read_text())["plan"] == self.plan)
        return False

    def open(self, restart: bool) -> None:
        """Finds what an interrupted command has left."""
        if restart:
            shutil.rmtree(self.folder, ignore_errors=True)
        plan = self.folder / "plan.json"
        begun = self._path(0, ".json").exists()
        if begun and plan.exists() and json.loads(plan.read_text()) != self.plan:
            raise Wrong(f"{self.folder} is of another command or of other files; --restart begins anew")
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise Wrong(f"{self.folder}: {e.strerror}") from e
        with _whole(plan) as file:
            file.write(json.dumps(self.plan, indent=1).encode())
        while (of := self._path(len(self.done), ".json")).exists():
            self.done.append(json.loads(of.read_text()))
        if self.done:
            self.masked = self.done[-1]["masked"]

    def _path(self, part: int, ending: str) -> pathlib.Path:
        return self.folder / f"{part:06}{ending}"

    def add(self, tokens: list[int], mask: list[int] | None) -> None:
        """The first mask may come late: of what was before it, all is predicted."""
        if mask is not None and not self.masked:
            self.masked = True
            self._masks = [np.ones(len(each), np.uint8) for each in self._documents]
        self._documents.append(np.asarray(tokens, dtype=_TYPES[self.plan["width"]]))
        if self.masked:
            self._masks.append(np.ones(len(tokens), np.uint8) if mask is None else np.asarray(mask, dtype=np.uint8))

    def close_part(self, place: dict[str, Any]) -> None:
        """place: where reading goes on after it."""
        part = len(self.done)
        lengths = np.asarray([len(each) for each in self._documents], dtype=np.int32)
        for ending, arrays in ((".bin", self._documents), (".mask", self._masks), (".len", [lengths])):
            with _whole(self._path(part, ending)) as file:
                for array in arrays:
                    file.write(array.tobytes())
        tokens = int(lengths.sum(dtype=np.int64))
        about = {**place, "masked": self.masked, "documents": len(self._documents), "tokens": tokens}
        with _whole(self._path(part, ".json")) as file:
            file.write(json.dumps(about).encode())
        self.done.append(about)
        self._documents, self._masks = [], []

    def finish(self, about: dict[str, Any]) -> None:
        of_parts = [np.fromfile(self._path(i, ".len"), dtype=np.int32) for i in range(len(self.done))]
        lengths = np.concatenate(of_parts)
        self.ending(".idx").unlink(missing_ok=True)  # no index of other tokens beside these
        self.ending(".mask").unlink(missing_ok=True)
        for ending in (".bin", ".mask") if self.masked else (".bin",):
            with _whole(self.ending(ending)) as out:
                for i, about_part in enumerate(self.done):
                    if ending == ".mask" and not about_part["masked"]:
                        out.write(np.ones(about_part["tokens"], np.uint8).tobytes())
                        continue
                    with self._path(i, ending).open("rb") as part:
                        shutil.copyfileobj(part, out, 1 << 22)
        width = self.plan["width"]
        pointers = np.zeros(len(lengths), np.int64)
        np.cumsum(lengths[:-1].astype(np.int64) * width, out=pointers[1:])
        with _whole(self.ending(".json")) as file:
            file.write(json.dumps({**about, "plan": self.plan}, indent=1).encode() + b"\n")
        with _whole(self.ending(".idx")) as file:
            head = struct.pack("<QBQQ", 1, _CODES[width], len(lengths), len(lengths) + 1)
            file.write(b"MMIDIDX\0\0" + head + lengths.tobytes() + pointers.tobytes())
            file.write(np.arange(len(lengths) + 1, dtype=np.int64).tobytes())
        self.drop()

    def drop(self) -> None:
        shutil.rmtree(self.folder)
