"""What operators give that have no fake implementations in torch, so that a simulated job may use them."""

from trellis.simulate.world.fakes.library import give

__all__ = ["give"]
