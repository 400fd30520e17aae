"""One job step by step: numpy in, losses out.

    job = Job({"model": {...}, "data": {...}})
    for step in range(1, 101):
        for micro in range(job.micro_batches):
            job.set_batch(micro, tokens, labels)   # micro_batch_size x seq_length, whole numbers
        loss, norm = job.run(step, learning_rate=1e-3)
"""

import os
import pathlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trellis import _native
from trellis.train.config import as_config
from trellis.train.module import grouped
from trellis.train.trainer import world

__all__ = ["Job", "Parameter"]


@dataclass(frozen=True)
class Parameter:
    """A parameter, whole, and which rows and columns of it this rank has: the first one, and how many."""

    name: str
    shape: tuple[int, int]
    rows: tuple[int, int]
    columns: tuple[int, int]
    decays: bool
    frozen: bool


class Job:
    """A rank's part of a training step, laid out and in memory. Every rank of the job makes one and calls the same."""

    def __init__(
        self,
        config: str | pathlib.Path | Mapping[str, Any],
        *,
        changes: Mapping[str, Any] | None = None,
        groups: Callable[[str], Mapping[str, float] | None] | None = None,
        threads: int = 0,
    ) -> None:
        self.config = as_config(config, changes or {})
        if groups is not None:
            self.config.set_groups(grouped(groups))
        self._job = _native.Job(self.config, world(), threads)

    @property
    def micro_batches(self) -> int:
        """Of a step, on each data-parallel rank."""
        return self._job.micro_batches

    @property
    def data_rank(self) -> tuple[int, int]:
        """Which data-parallel rank this is, of how many: each has other batches."""
        return self._job.data_rank, self._job.data_ranks

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Of this rank's stage."""
        return {each[0]: Parameter(*each) for each in self._job.parameters}

    def set_batch(self, micro: int, tokens: npt.ArrayLike, labels: npt.ArrayLike, starts: Any = None) -> None:
        """labels: for each token the next one, or -100. starts: where attention is cut, the first position it sees."""
        arrays = [np.ascontiguousarray(each, dtype=np.int32) for each in (tokens, labels)]
        cut = None if starts is None else np.ascontiguousarray(starts, dtype=np.int32)
        self._job.set_batch(micro, arrays[0], arrays[1], cut)

    def run(self, step: int, learning_rate: float) -> tuple[float, float]:
        """A step, counted from 1: the mean loss of all ranks, and the gradients' norm before clipping."""
        return self._job.run(step, learning_rate)

    def _here(self, name: str, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        parameter = self.parameters[name]
        return values.reshape(parameter.rows[1], parameter.columns[1])

    def values(self, name: str) -> npt.NDArray[np.float32]:
        """This rank's part of a parameter, as f32."""
        return self._here(name, self._job.values(name))

    def gradients(self, name: str) -> npt.NDArray[np.float32]:
        """Of this rank's part of the parameter, the mean over the last step's whole batch, before clipping. Every rank
        calls it: with ZeRO-1 they exchange it."""
        return self._here(name, self._job.gradients(name))

    def fill(self, name: str, values: npt.ArrayLike) -> None:
        """values: the whole parameter; this rank takes its part."""
        self._job.fill(name, np.ascontiguousarray(values, dtype=np.float32))

    def save(self, folder: str | os.PathLike[str], step: int) -> str:
        """A checkpoint with the optimizer's state; returns its folder."""
        return self._job.save(os.fspath(folder), step)

    def load(self, path: str | os.PathLike[str]) -> int:
        """From any layout, or a .safetensors file. Returns the step to go on after; 0: there were weights alone. Every
        rank calls it, and where one cannot load its part, all raise ValueError; parameters are then of both, until one
        is loaded."""
        return self._job.load(os.fspath(path))
