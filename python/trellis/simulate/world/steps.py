"""Where a step begins and ends: after the update of the job's first optimizer."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from trellis.simulate.world.recorder import Recorder

__all__ = ["Steps"]


class Steps:
    """Counts steps; the recorder is on during one of them. `ended` is called at its end."""

    def __init__(self, recorder: Recorder, wanted: int, ended: Callable[[], None]) -> None:
        self._recorder, self._wanted, self._ended = recorder, wanted, ended
        self.step = 1
        self._reducer = False
        self._awaits_tokens = False
        self._over = False  # the first optimizer has made its update
        self._first: int | None = None  # its id
        self._depth = 0
        self._done = False
        self._hooks: list[Any] = []
        self.shards_of: Callable[[Any], frozenset[int]] = lambda tensor: frozenset()  # families that cut it

    def start(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        self._recorder.on_first = self._before
        self._hooks = [
            register_optimizer_step_pre_hook(self._update_begins),
            register_optimizer_step_post_hook(self._update_ends),
            nn.modules.module.register_module_forward_pre_hook(self._called),
        ]

    def has_reducer(self) -> None:
        """DistributedDataParallel orders its buckets in the second step: then the third is like all others."""
        self._reducer = True

    def stop(self) -> None:
        self._recorder.on_first = lambda: None
        for hook in self._hooks:
            hook.remove()

    def finish(self) -> bool:
        """The job has ended: whether its step is recorded."""
        if self._over and not self._done:
            self._boundary()
        if self._recorder.on:
            self._end()
        return self._done

    def _before(self) -> None:
        if self._done or self._recorder.phase == "optimizer":
            return
        if self._over:
            self._boundary()
        elif self._wanted == 1 and not self._recorder.on and self._recorder.places.inside:
            self._recorder.begin_step()

    def _boundary(self) -> None:
        self._over = False
        if self._recorder.on:
            self._end()
            return
        self.step += 1
        if self._wanted == 0 and not (self.step == 2 and self._reducer):
            self._wanted = self.step
        self._recorder.places.new_step()
        if self.step == self._wanted:
            self._recorder.begin_step()

    def _end(self) -> None:
        self._done = True
        self._recorder.end_step()
        self._ended()

    def _called(self, module: nn.Module, inputs: Any) -> None:
        """Counts the tokens of a model's input: whole numbers of at least two dimensions. Arguments that are named, as
        Hugging Face's are, are not seen here; then it is what the first embedding within gets."""
        outermost = self._recorder.places.depth == 1
        if outermost and self._over:
            self._before()
        if not self._recorder.on or torch._C._current_graph_task_id() != -1:
            return
        if outermost:
            self._awaits_tokens = True
        if not self._awaits_tokens or not (outermost or isinstance(module, nn.Embedding)):
            return
        for tensor in inputs:
            if isinstance(tensor, torch.Tensor) and tensor.dtype in (torch.int64, torch.int32) and tensor.dim() > 1:
                self._recorder.record.tokens += tensor.numel()
                self._awaits_tokens = False
                return

    def _update_begins(self, optimizer: Any, *_: Any) -> None:
        r = self._recorder
        if self._over and id(optimizer) == self._first:
            self._boundary()
        if self._first is None:
            self._first = id(optimizer)
        r.phase = "optimizer"
        count = 0
        for group in optimizer.param_groups:
            for p in group["params"]:
                r.memory.is_(p, "parameters")
                local = getattr(p, "_local_tensor", p)
                count += local.numel()
                families = self.shards_of(p)
                r.memory.is_shard(local, families)
                for family in families if r.on else ():
                    told = r.record.sharded.setdefault(str(family), {})
                    told["weights"] = told.get("weights", 0) + local.numel()
                if p.grad is not None:
                    r.memory.is_(p.grad, "gradients")
        if r.on:
            r.record.parameters += count

    def _update_ends(self, optimizer: Any, *_: Any) -> None:
        r = self._recorder
        r.phase = "other"
        for state in optimizer.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                if isinstance(value, torch.Tensor):
                    r.memory.is_(value, "optimizer")
                    r.memory.is_shard(getattr(value, "_local_tensor", value), self.shards_of(value))
        if id(optimizer) == self._first:
            self._over = True
