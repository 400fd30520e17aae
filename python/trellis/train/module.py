"""What is trained, in the shape of Lightning's modules."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from trellis.train.callbacks import Callback

if TYPE_CHECKING:
    from trellis.train.trainer import Trainer

__all__ = ["Module", "Optimizers"]

Optimizers = Mapping[str, Any]


class Module(Callback):
    """A model of Trellis by its configuration, and how it is optimized. Its hooks are called before callbacks'.

    The step itself - forward, backward, the exchange of gradients, the update - is laid out once for the layout,
    proved, and run by the library, so there is no training_step to write. Steps of one's own: `Job`.
    """

    trainer: "Trainer"

    def configure_model(self) -> Mapping[str, Any]:
        """Keys of the configuration: {"model.hidden_size": 64}."""
        return {}

    def configure_optimizers(self) -> Optimizers:
        """Keys below model.optim (name, lr, betas, weight_decay), and two callables.

        lr_scheduler: from a step, counted from 1, to its rate. groups: from a parameter's name to {"lr_scale": 0.1,
        "weight_decay": 0.0}, either or none.
        """
        return {}

    def log(self, name: str, value: float) -> None:
        """A figure for TensorBoard, and for callback_metrics."""
        self.trainer.log(name, value)


def grouped(groups: Callable[[str], Mapping[str, float] | None]) -> Callable[[str], tuple[float, float]]:
    """As the library asks for it."""

    def of(name: str) -> tuple[float, float]:
        group = groups(name) or {}
        unknown = set(group) - {"lr_scale", "weight_decay"}
        if unknown:
            raise ValueError(f"the group of {name} has {', '.join(sorted(unknown))}: expected lr_scale, weight_decay")
        return float(group.get("lr_scale", 1)), float(group.get("weight_decay", float("nan")))

    return of
