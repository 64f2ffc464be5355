"""The table of known units."""

from .errors import UnknownUnitError
from .quantity import Quantity

_LENGTH = (1, 0, 0, 0, 0)
_MASS = (0, 1, 0, 0, 0)
_TIME = (0, 0, 1, 0, 0)
_TEMPERATURE = (0, 0, 0, 1, 0)
_CURRENT = (0, 0, 0, 0, 1)
_FORCE = (1, 1, -2, 0, 0)
_ENERGY = (2, 1, -2, 0, 0)
_POWER = (2, 1, -3, 0, 0)

_UNITS = {
    "m": Quantity(1.0, _LENGTH),
    "km": Quantity(1000.0, _LENGTH),
    "cm": Quantity(0.01, _LENGTH),
    "kg": Quantity(1.0, _MASS),
    "g": Quantity(0.001, _MASS),
    "s": Quantity(1.0, _TIME),
    "min": Quantity(60.0, _TIME),
    "h": Quantity(3600.0, _TIME),
    "K": Quantity(1.0, _TEMPERATURE),
    "A": Quantity(1.0, _CURRENT),
    "N": Quantity(1.0, _FORCE),
    "J": Quantity(1.0, _ENERGY),
    "W": Quantity(1.0, _POWER),
    "V": Quantity(1.0, (2, 1, -3, 0, -1)),
    "Pa": Quantity(1.0, (-1, 1, -2, 0, 0)),
    "L": Quantity(0.001, (3, 0, 0, 0, 0)),
}


def lookup(name):
    """Return one unit called `name` as a quantity."""
    try:
        return _UNITS[name]
    except KeyError:
        raise UnknownUnitError(f"unknown unit {name!r}") from None
