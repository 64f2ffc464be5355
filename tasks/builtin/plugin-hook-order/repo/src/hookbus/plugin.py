"""Base class of plugins."""

from dataclasses import dataclass

from .errors import InvalidHookError


@dataclass(frozen=True)
class Hook:
    """Asks for `method` of the plugin to be called on `event`."""

    event: str
    method: str
    priority: int = 0


class Plugin:
    """A named bundle of listeners.

    Subclasses set `name` and list their hooks in `hooks`.
    """

    name = ""
    hooks = []

    def add_hook(self, hook):
        """Add `hook` to this plugin."""
        self.resolve(hook)
        self.hooks.append(hook)

    def remove_hook(self, hook):
        """Remove `hook`; a hook that the plugin lacks is a ValueError."""
        self.hooks.remove(hook)

    def resolve(self, hook):
        """Return the bound method that `hook` names."""
        method = getattr(self, hook.method, None)
        if not callable(method):
            raise InvalidHookError(f"{type(self).__name__} has no method {hook.method!r}")
        return method
