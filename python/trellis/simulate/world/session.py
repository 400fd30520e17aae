"""A rank's world, from the moment it is entered."""

from collections.abc import Callable
from typing import Any

import torch

from trellis.simulate.ranks.line import Line, NoLine
from trellis.simulate.world import autocast, device, patches
from trellis.simulate.world.communication import Communication
from trellis.simulate.world.groups import Groups
from trellis.simulate.world.names import Names
from trellis.simulate.world.recorder import Recorder
from trellis.simulate.world.settings import Settings
from trellis.simulate.world.steps import Steps

__all__ = ["Session"]


class Session:
    """Entered once in a process: what it replaces in torch stays replaced."""

    def __init__(self, settings: Settings, line: Line | NoLine, ended: Callable[[], None]) -> None:
        self.settings = settings
        self.torch_version = torch.__version__
        if settings.device != "cpu":
            device.rename()
        self.recorder = Recorder(settings)
        self.groups = Groups(settings.rank, settings.world)
        self.communication = Communication(self.recorder, self.groups, line)
        self.steps = Steps(self.recorder, settings.step, ended)
        self.communication.reducer = self.steps.has_reducer
        self.steps.shards_of = self._shards_of
        self._names = Names(self.recorder)

    def _shards_of(self, tensor: Any) -> frozenset[int]:
        """Families of groups along which fully_shard cuts a distributed tensor."""
        mesh = getattr(tensor, "device_mesh", None)
        if mesh is None:
            return frozenset()
        families = {self.groups.of(mesh.get_group(i).group_name)[0]
                    for i, placement in enumerate(tensor.placements) if hasattr(placement, "dim")}  # fmt: skip
        return frozenset(families & self.communication.sharding)

    def __enter__(self) -> "Session":
        if self.settings.device != "cpu":
            device.install(self.settings, self.recorder.streams)
            autocast.install()
        patches.install(self.settings, self.recorder, self.groups, self.communication, self._names)
        self.recorder.places.start()
        self.steps.start()
        if self.settings.device != "cpu":
            self._names.__enter__()
        self.recorder.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.recorder.__exit__(*error)
        if self.settings.device != "cpu":
            self._names.__exit__(*error)
        self.steps.stop()
        self.recorder.places.stop()
