"""What is trained, in the shape of Lightning's modules."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trellis.train.callbacks import Callback

if TYPE_CHECKING:
    from trellis.train.trainer import Trainer

__all__ = ["Module", "Optimizers", "grouped", "optimizers_of"]

Optimizers = Mapping[str, Any] | Sequence[Any]


class Module(Callback):
    """A model of Trellis by its configuration, and how it is optimized. Its hooks are called before callbacks'.

    A hook takes what a callback's takes, or what Lightning's module has: on_train_batch_end(outputs, batch, batch_idx),
    on_train_start(), and so on. The step itself - forward, backward, the exchange of gradients, the update - is laid
    out once for the layout, proved, and run by the library, so there is no training_step to write. Steps of one's own:
    `Job`.
    """

    trainer: "Trainer"

    def configure_model(self) -> Mapping[str, Any]:
        """Keys of the configuration: {"model.hidden_size": 64}."""
        return {}

    def configure_optimizers(self) -> Optimizers:
        """Keys below model.optim (name, lr, betas, weight_decay), and two callables; also in Lightning's forms:
        {"optimizer": {...}, "lr_scheduler": ...} and [{...}], [{"scheduler": ...}].

        lr_scheduler: from a step, counted from 1, to its rate. groups: from a parameter's name to {"lr_scale": 0.1,
        "weight_decay": 0.0}, either or none.
        """
        return {}

    def log(self, name: str, value: float, **how: Any) -> None:
        """A figure for TensorBoard, and for callback_metrics; how: what Lightning takes besides, without effect."""
        self.trainer.log(name, value)

    @property
    def global_step(self) -> int:
        return self.trainer.global_step


def optimizers_of(said: Any) -> dict[str, Any]:
    """What configure_optimizers returned, as one dict."""
    if isinstance(said, (tuple, list)):
        lists = [each if isinstance(each, (tuple, list)) else [each] for each in said]
        if len(lists) not in (1, 2) or any(len(each) != 1 for each in lists):
            raise ValueError("configure_optimizers returned several optimizers or schedulers: expected one")
        said = {"optimizer": lists[0][0]} | ({"lr_scheduler": lists[1][0]} if len(lists) == 2 else {})
    if said is not None and not isinstance(said, Mapping):
        raise TypeError(
            f"configure_optimizers returned {type(said).__name__}: expected a dict of keys of model.optim, as models "
            "are the library's; a torch optimizer belongs to a torch model, which the backend trains"
        )
    keys = dict(said or {})
    optimizer, rate = keys.pop("optimizer", {}), keys.get("lr_scheduler")
    keys = optimizers_of(optimizer) | keys if optimizer else keys
    if isinstance(rate, Mapping):
        keys["lr_scheduler"] = rate["scheduler"]
    return keys


def grouped(groups: Callable[[str], Mapping[str, float] | None]) -> Callable[[str], tuple[float, float]]:
    """As the library asks for it."""

    def of(name: str) -> tuple[float, float]:
        group = groups(name) or {}
        unknown = set(group) - {"lr_scale", "weight_decay"}
        if unknown:
            raise ValueError(f"the group of {name} has {', '.join(sorted(unknown))}: expected lr_scale, weight_decay")
        return float(group.get("lr_scale", 1)), float(group.get("weight_decay", float("nan")))

    return of
