"""A training step priced: how long it takes on a machine, where the time goes, whether it fits.

>>> from trellis import sim
>>> s = sim.price_step({"model": {"num_layers": 4, "hidden_size": 256, "num_attention_heads": 8},
...                     "data": {"seq_length": 256, "global_batch_size": 8}}, "trn1.2xlarge")
>>> s.low < s.time < s.high, s.fits, 0 < s.mfu < 1
(True, True, True)
"""

import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from trellis._where import PROGRAM

__all__ = ["StepPrice", "price_step"]


@dataclass(frozen=True)
class StepPrice:
    """Seconds and bytes. low, high: the interval. classes: of ranks that do the same, where their time goes in seconds
    and what their memory holds in bytes. exchanges: what is communicated, on which axis, alone and all groups together.
    noise: times with random delays, goodput: what failures leave, where they were asked for. operations: of the ranks
    that compute longest, what each kind takes, and how much of that by programs of sim/core. times: formulas or
    programs, as asked."""

    config: str
    machine: str
    ranks: int
    tensor: int
    pipeline: int
    micro_batches: int
    time: float
    low: float
    high: float
    sequences_per_second: float
    tokens_per_second: float
    mfu: float
    memory: int
    memory_of_rank: float
    fits: bool
    critical_path: str
    classes: list[dict[str, Any]]
    exchanges: list[dict[str, Any]]
    noise: dict[str, Any] | None = None
    goodput: dict[str, Any] | None = None
    times: str = "formulas"
    operations: list[dict[str, Any]] = field(default_factory=list)


def _in_seconds(row: dict[str, Any]) -> dict[str, Any]:
    return {k.removesuffix("_us"): v * 1e-6 if k.endswith("_us") else v for k, v in row.items()}


def _read(p: dict[str, Any]) -> StepPrice:
    told = {f.name: p[f.name] for f in fields(StepPrice) if f.name in p}
    told |= {name: p[f"{name}_ps"] * 1e-12 for name in ("time", "low", "high")}
    told |= {name: p[f"{name}_bytes"] for name in ("memory", "memory_of_rank")}
    told |= {name: [_in_seconds(row) for row in p[name]] for name in ("classes", "exchanges", "operations")}
    return StepPrice(**told)


def price_step(
    config: str | os.PathLike[str] | Mapping[str, Any],
    machine: str = "trn1.32xlarge",
    *,
    set: Mapping[str, Any] | None = None,
    ranks: int = 0,
    what_if: Sequence[str] = (),
    figures: str | os.PathLike[str] = "",
    software: str = "",
    order: str = "data",
    times: str = "formulas",
    noise: int = 0,
    host_mtbf: str = "",
    checkpoint: str = "",
    whole: bool = False,
) -> StepPrice:
    """The step of a configuration with NxD Training's keys: a YAML file, or a mapping. set: keys to change, as in
    {"data.seq_length": 128}. The rest is as the options of `trellis train price`.

    ValueError: what the program says of a configuration, a machine or an option that is wrong.
    """
    words = ["-m", machine, "--order", order, "--times", times]
    for option, given in (("--figures", figures), ("--software", software), ("--host-mtbf", host_mtbf),
                          ("--checkpoint", checkpoint)):  # fmt: skip
        words += [option, str(given)] if given else []
    for option, number in (("-n", ranks), ("--noise", noise)):
        words += [option, str(number)] if number else []
    for change in what_if:
        words += ["--what-if", change]
    for key, value in (set or {}).items():
        words += ["--set", f"{key}={json.dumps(value) if isinstance(value, bool | list) else value}"]
    words += ["--whole"] if whole else []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "config.yaml")
        if isinstance(config, Mapping):
            path.write_text(json.dumps(config))  # JSON is YAML
            config = path
        done = subprocess.run(
            [PROGRAM, "train", "price", os.fspath(config), *words, "--json"], capture_output=True, text=True
        )
    if done.returncode not in (0, 1) or not done.stdout:
        raise ValueError(f"trellis train price: {done.stderr.strip()}")
    return _read(json.loads(done.stdout))
