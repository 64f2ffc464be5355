"""Layered configurations and views of parts of them."""

from .access import REQUIRED, TypedAccess
from .errors import MissingKeyError


class Config(TypedAccess):
    """Settings from *layers*, pairs of a name and a flat dict; later ones win."""

    def __init__(self, *layers):
        self._layers = [(name, dict(values)) for name, values in layers]

    def _find(self, key):
        """Return the pair of layer name and value for *key*, or None."""
        for name, values in reversed(self._layers):
            if key in values:
                return name, values[key]
        return None

    def get(self, key, fallback=REQUIRED):
        """Return the value of *key*.

        If no layer has the key, return *fallback*, or raise MissingKeyError if
        none is given.
        """
        found = self._find(key)
        if found is not None:
            return found[1]
        if fallback is REQUIRED:
            raise MissingKeyError(key)
        return fallback

    def origin(self, key):
        """Return the name of the layer that *key* comes from, or None."""
        found = self._find(key)
        return None if found is None else found[0]

    def section(self, name):
        """Return a view of the keys that start with *name* and a dot."""
        return Section(self, name)

    def keys(self):
        """Return all keys, sorted."""
        return sorted({key for _, values in self._layers for key in values})

    def __contains__(self, key):
        return self._find(key) is not None


class Section(TypedAccess):
    """A view of the keys of *config* below *name*."""

    def __init__(self, config, name):
        self._config = config
        self.name = name

    def _full(self, key):
        return f"{self.name}.{key}"

    def get(self, key, fallback=REQUIRED):
        """Return the value of *key* in this section, see Config.get()."""
        return self._config.get(self._full(key), fallback=fallback)

    def section(self, name):
        """Return a view of a part of this section."""
        return Section(self._config, self._full(name))

    def keys(self):
        """Return the keys of this section, sorted and without its name."""
        start = self._full("")
        return [key[len(start):] for key in self._config.keys() if key.startswith(start)]

    def __contains__(self, key):
        return self._full(key) in self._config
