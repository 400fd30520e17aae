"""What a program may do while a run trains: in Lightning's shape, every rank in one order, between steps."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trellis.train.module import Module
    from trellis.train.trainer import Trainer

__all__ = ["Callback", "EarlyStopping", "Lines"]


class Callback:
    """Each method may be overridden, with fewer arguments, too.

    A batch's `outputs` have loss, learning_rate, gradient_norm, seconds and more. A `checkpoint` is an empty dict, of
    which nothing is kept.
    """

    def on_train_start(self, trainer: "Trainer", module: "Module") -> None: ...

    def on_train_batch_start(self, trainer: "Trainer", module: "Module", batch: Any, batch_idx: int) -> None: ...

    def on_train_batch_end(
        self, trainer: "Trainer", module: "Module", outputs: Any, batch: Any, batch_idx: int
    ) -> None: ...

    def on_validation_end(self, trainer: "Trainer", module: "Module") -> None: ...

    def on_save_checkpoint(self, trainer: "Trainer", module: "Module", checkpoint: Any = None) -> None: ...

    def on_train_end(self, trainer: "Trainer", module: "Module") -> None: ...


class EarlyStopping(Callback):
    """Ends training when a figure has not become better for so many looks at it."""

    def __init__(self, monitor: str = "val_loss", min_delta: float = 0, patience: int = 3, mode: str = "min") -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode is {mode!r}: expected min or max")
        self.monitor, self.min_delta, self.patience, self.mode = monitor, min_delta, patience, mode
        self.best: float | None = None
        self.waited = 0

    def _look(self, trainer: "Trainer") -> None:
        now = trainer.callback_metrics[self.monitor]
        gain = 0.0 if self.best is None else (self.best - now if self.mode == "min" else now - self.best)
        if self.best is None or gain > self.min_delta:
            self.best, self.waited = now, 0
            return
        self.waited += 1
        if self.waited >= self.patience:
            trainer.should_stop = True

    def on_validation_end(self, trainer: "Trainer", module: "Module") -> None:
        if self.monitor == "val_loss":
            self._look(trainer)

    def on_train_batch_end(
        self, trainer: "Trainer", module: "Module", outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.monitor != "val_loss":
            self._look(trainer)


class Lines(Callback):
    """A line on rank 0 every so many steps."""

    def __init__(self, every: int = 1) -> None:
        self.every = max(1, every)

    def on_train_batch_end(
        self, trainer: "Trainer", module: "Module", outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        step = trainer.global_step
        if trainer.is_global_zero and (step % self.every == 0 or step == trainer.max_steps):
            print(
                f"step {step}/{trainer.max_steps}  loss {outputs.loss:.4f}  lr {outputs.learning_rate:.3g}  "
                f"{outputs.tokens_per_second:.0f} tokens/s",
                flush=True,
            )
