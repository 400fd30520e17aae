"""The trainer: `trellis train`'s, with data, callbacks and schedules of one's own."""

import atexit
import inspect
import math
import os
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trellis import _native
from trellis.train.callbacks import Callback, Lines
from trellis.train.config import Config, as_config
from trellis.train.data import DataModule, Samples
from trellis.train.module import Module, grouped, optimizers_of

__all__ = ["Trainer", "world"]

_world: _native.World | None = None


def world() -> _native.World:
    """The ranks of the job that `trellis launch`, torchrun, mpirun or srun started; this process alone without them."""
    global _world
    if _world is None:
        _world = _native.World()
        atexit.register(_leave, _world)
    return _world


def _leave(ranks: _native.World) -> None:
    """All ranks leave together, unless this one ends with an error: others then hear of it."""
    if not hasattr(sys, "last_value"):
        ranks.finalize()


def _takes(hook: Callable[..., None], arguments: tuple[Any, ...]) -> bool:
    try:
        inspect.signature(hook).bind(*arguments)
    except TypeError:
        return False
    return True


def _tell(hook: Callable[..., None], trainer: "Trainer", module: Module, arguments: tuple[Any, ...]) -> None:
    """With a callback's arguments, or those of Lightning's module, or fewer: with the first that the hook takes."""
    whole, who = (trainer, module, *arguments), (trainer, module)
    forms = [whole, who, arguments, ()]
    if getattr(hook, "__self__", None) is module:
        forms = [whole, arguments, who, ()]
    hook(*next((each for each in forms if _takes(hook, each)), whole))


class Trainer:
    """Trains what a configuration describes. Every rank makes one, and calls the same.

    config: a YAML file or a dict of its keys; `changes` are more of them. What a Trainer of Lightning takes by these
    names is a key here, too: max_steps, log_every_n_steps, val_check_interval, limit_val_batches, gradient_clip_val,
    default_root_dir. log_every_n_steps thins the printed lines, too.
    """

    def __init__(
        self,
        config: str | pathlib.Path | Mapping[str, Any] | None = None,
        *,
        callbacks: Sequence[Callback] = (),
        changes: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        log_every_n_steps: int | None = None,
        val_check_interval: int | None = None,
        limit_val_batches: int | float | None = None,
        gradient_clip_val: float | None = None,
        default_root_dir: str | os.PathLike[str] | None = None,
        enable_progress_bar: bool = True,
    ) -> None:
        named = {
            "trainer.max_steps": max_steps,
            "trainer.log_every_n_steps": log_every_n_steps,
            "trainer.val_check_interval": val_check_interval,
            "trainer.limit_val_batches": limit_val_batches,
            "trainer.gradient_clip_val": gradient_clip_val,
            "exp_manager.exp_dir": None if default_root_dir is None else os.fspath(default_root_dir),
        }
        self._config = config if config is not None else {}
        self._changes = {key: value for key, value in named.items() if value is not None} | dict(changes or {})
        self._lines = Lines()
        self.callbacks = [*callbacks, *([self._lines] if enable_progress_bar else [])]
        self.global_step = 0
        self.should_stop = False
        self.callback_metrics: dict[str, float] = {}
        self.history: list[_native.StepRecord] = []
        self.max_steps = max_steps or 0
        # While a run trains. A callback asks for `gradients` on every rank, or with ZeRO-1 the others are waited for.
        self.job: _native.Job | None = None
        self._figures: list[tuple[str, float]] = []
        self._verbose = enable_progress_bar

    @property
    def is_global_zero(self) -> bool:
        return self.global_rank == 0

    @property
    def global_rank(self) -> int:
        return world().rank

    @property
    def world_size(self) -> int:
        return world().ranks

    def log(self, name: str, value: float) -> None:
        """A figure for TensorBoard, at the step that is done, and for callback_metrics."""
        self.callback_metrics[name] = float(value)
        self._figures.append((name, float(value)))

    def fit(
        self,
        model: Module | None = None,
        datamodule: DataModule | None = None,
        *,
        train_dataloaders: Any = None,
        val_dataloaders: Any = None,
        ckpt_path: str | os.PathLike[str] | None = None,
    ) -> list[_native.StepRecord]:
        """Trains to max_steps; returns the steps of this run. ckpt_path: a checkpoint to go on from."""
        module = model if model is not None else Module()
        module.trainer = self
        config, rate = self._configured(module)
        if datamodule is not None:
            datamodule.setup("fit")
            train_dataloaders = train_dataloaders or datamodule.train_dataloader()
            val_dataloaders = val_dataloaders or datamodule.val_dataloader()
        data, val = (
            None if loader is None else Samples(loader, config.seq_length)
            for loader in (train_dataloaders, val_dataloaders)
        )
        if val is not None and config.validation_samples != 0:
            val.count(config.validation_samples)
        self.max_steps, self.should_stop, self.callback_metrics = config.max_steps, False, {}
        self._lines.every = config.log_every_n_steps
        ranks = world()
        for note in config.notes:
            self._say(note)
        if config.cut_attention and (data or val):
            self._say("data.reset_attention_mask: attention is not cut within samples of one's own")
        if hasattr(module, "training_step"):
            self._say(f"{type(module).__name__}.training_step is not called: a step is laid out and proved as a whole")
        try:
            self.history = _native.train_fit(
                config, ranks, self._event(module), self._say, data, val, rate, os.fspath(ckpt_path or ""))  # fmt: skip
        finally:
            self.job = None
        return self.history

    def _say(self, text: str) -> None:
        if self._verbose and self.is_global_zero:
            print(text, flush=True)

    def _configured(self, module: Module) -> tuple[Config, Callable[[int], float] | None]:
        optimizers = optimizers_of(module.configure_optimizers())
        rate, groups = optimizers.pop("lr_scheduler", None), optimizers.pop("groups", None)
        of_module = dict(module.configure_model()) | {f"model.optim.{key}": v for key, v in optimizers.items()}
        config = as_config(self._config, of_module, self._changes)
        if groups is not None:
            config.set_groups(grouped(groups))
        return config, rate

    def _event(self, module: Module) -> Callable[..., tuple[bool, list[tuple[str, float]]]]:
        told: list[Callback] = [module, *self.callbacks]

        def event(name: str, step: int, job: _native.Job, what: Any) -> tuple[bool, list[tuple[str, float]]]:
            self.global_step, self.job, self._figures = step, job, []
            if name == "on_train_batch_end":
                figures = {"loss": what.loss, "train_loss": what.loss, "lr": what.learning_rate}
                self.callback_metrics |= figures | {"gradient_norm": what.gradient_norm}
            if name == "on_validation_end":
                self.callback_metrics["val_loss"] = what
            checkpoint: dict[str, Any] = {}
            arguments = {"on_train_batch_start": (None, step), "on_train_batch_end": (what, None, step - 1),
                         "on_save_checkpoint": (checkpoint,)}  # fmt: skip
            for each in told:
                _tell(getattr(each, name), self, module, arguments.get(name, ()))
            if checkpoint:
                self._say(
                    f"what on_save_checkpoint adds to a checkpoint ({', '.join(map(str, checkpoint))}) is not kept"
                )
            wrong = [figure for figure, value in self._figures if not math.isfinite(value)]
            if wrong:
                raise ValueError(f"{wrong[0]} of step {step} is no finite number")
            return self.should_stop, self._figures

        return event
