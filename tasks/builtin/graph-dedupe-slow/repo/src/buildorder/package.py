"""The record that the rest of the library passes around."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Package:
    """A package and the names of the packages it requires."""

    name: str
    version: str = "0"
    requires: tuple = ()

    def __str__(self):
        return f"{self.name} {self.version}"
