"""Train from Python: the trainer of `trellis train`, with data, callbacks and schedules of one's own.

    from trellis.train import Callback, Trainer

    class Shown(Callback):
        def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
            trainer.log("loss_squared", outputs.loss ** 2)

    Trainer("llama.yaml", callbacks=[Shown()], max_steps=100).fit(ckpt_path=None)

`Job` runs one step after the other, with numpy in and out. `python3 -m trellis.train prepare` makes tokens of data
sets. Models are those of Trellis, and plug-ins' (`trellis train --plugin`). Arbitrary torch models train on the
backend: trellis.torch, with DDP, FSDP2 or Lightning on it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trellis.train.callbacks import Callback, EarlyStopping, Lines
    from trellis.train.config import Config, as_config
    from trellis.train.data import DataModule, Samples
    from trellis.train.job import Job, Parameter
    from trellis.train.module import Module
    from trellis.train.trainer import Trainer, world

_WHERE = {
    "Callback": "callbacks", "EarlyStopping": "callbacks", "Lines": "callbacks", "Config": "config",
    "as_config": "config", "DataModule": "data", "Samples": "data", "Job": "job", "Parameter": "job",
    "Module": "module", "Trainer": "trainer", "world": "trainer",
}  # fmt: skip
__all__ = [
    "Callback", "Config", "DataModule", "EarlyStopping", "Job", "Lines", "Module", "Parameter", "Samples", "Trainer",
    "as_config", "world",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # so that `prepare` needs no library
    if name in _WHERE:
        return getattr(importlib.import_module(f"trellis.train.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'trellis.train' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
