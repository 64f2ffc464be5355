"""Values with a dimension."""

from dataclasses import dataclass

from .errors import DimensionError

#: Order of the base dimensions in `Quantity.dimension`.
BASE = ("length", "mass", "time", "temperature", "current")
DIMENSIONLESS = (0,) * len(BASE)


@dataclass(frozen=True)
class Quantity:
    """A value in SI base units, with the exponent of each base dimension."""

    value: float
    dimension: tuple = DIMENSIONLESS

    def __neg__(self):
        return Quantity(-self.value, self.dimension)

    def __add__(self, other):
        self.require_same_dimension(other)
        return Quantity(self.value + other.value, self.dimension)

    def __sub__(self, other):
        return self + -other

    def __mul__(self, other):
        dimension = tuple(a + b for a, b in zip(self.dimension, other.dimension))
        return Quantity(self.value * other.value, dimension)

    def __truediv__(self, other):
        dimension = tuple(a - b for a, b in zip(self.dimension, other.dimension))
        return Quantity(self.value / other.value, dimension)

    def __pow__(self, other):
        if other.dimension != DIMENSIONLESS:
            raise DimensionError("an exponent must be a plain number")
        exponent = other.value
        if self.dimension != DIMENSIONLESS and not float(exponent).is_integer():
            raise DimensionError("units can only be raised to whole powers")
        dimension = tuple(int(a * exponent) for a in self.dimension)
        return Quantity(self.value**exponent, dimension)

    def require_same_dimension(self, other):
        """Raise `DimensionError` unless `other` has the same dimension."""
        if self.dimension != other.dimension:
            raise DimensionError(
                f"incompatible dimensions {self.dimension} and {other.dimension}"
            )
