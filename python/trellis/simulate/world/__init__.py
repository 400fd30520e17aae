"""The world that a rank's process believes to be in: a fake device, fake groups, and a recorder of all that is done."""

from trellis.simulate.world.settings import Settings

__all__ = ["Settings"]
