"""Lookups that configurations and sections have in common."""

from .convert import to_bool, to_int, to_list
from .errors import ConversionError

REQUIRED = object()


class TypedAccess:
    """Typed lookups on top of ``get``."""

    def get(self, key, fallback=REQUIRED):
        """Return the value of *key*, or *fallback* if there is none."""
        raise NotImplementedError

    def get_int(self, key, fallback=REQUIRED):
        """Like get(), for whole numbers."""
        return self._converted(key, fallback, to_int, "a whole number")

    def get_bool(self, key, fallback=REQUIRED):
        """Like get(), for yes and no."""
        return self._converted(key, fallback, to_bool, "a yes or no")

    def get_list(self, key, fallback=REQUIRED):
        """Like get(), for comma separated lists."""
        return self._converted(key, fallback, to_list, "a list")

    def _converted(self, key, fallback, convert, kind):
        if fallback is not REQUIRED and key not in self:
            return fallback
        value = self.get(key)
        try:
            return convert(value)
        except (TypeError, ValueError):
            raise ConversionError(key, value, kind) from None
