"""Registration of plugins on a bus."""

from .errors import DuplicatePluginError, UnknownPluginError


class PluginManager:
    """Keeps track of the plugins on one bus and of their subscriptions."""

    def __init__(self, bus):
        self._bus = bus
        self._plugins = {}
        self._subscriptions = {}

    def register(self, plugin):
        """Subscribe all hooks of `plugin`.

        Nothing is subscribed if one of the hooks is invalid.
        """
        if plugin.name in self._plugins:
            raise DuplicatePluginError(f"plugin {plugin.name!r} is registered already")
        callbacks = [(hook, plugin.resolve(hook)) for hook in plugin.hooks]
        self._plugins[plugin.name] = plugin
        self._subscriptions[plugin.name] = [
            self._bus.subscribe(hook.event, callback, priority=hook.priority)
            for hook, callback in callbacks
        ]

    def unregister(self, name):
        """End all subscriptions of the plugin called `name` and return it."""
        if name not in self._plugins:
            raise UnknownPluginError(name)
        for subscription in self._subscriptions.pop(name):
            self._bus.unsubscribe(subscription)
        return self._plugins.pop(name)

    def names(self):
        """Return the names of the plugins in the order of registration."""
        return list(self._plugins)
