"""How long what was recorded takes on a machine."""

from trellis.simulate.price.price import Priced, price

__all__ = ["Priced", "price"]
