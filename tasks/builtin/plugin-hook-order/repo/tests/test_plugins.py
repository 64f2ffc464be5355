import pytest

from hookbus import (
    DuplicatePluginError,
    EventBus,
    Hook,
    InvalidHookError,
    Plugin,
    PluginManager,
    UnknownPluginError,
)


class Greeter(Plugin):
    name = "greeter"
    hooks = [Hook("started", "greet")]

    def greet(self, event):
        return f"hello {event['user']}"


@pytest.fixture
def bus():
    return EventBus()


@pytest.fixture
def manager(bus):
    return PluginManager(bus)


def test_registered_hooks_are_called(bus, manager):
    manager.register(Greeter())
    assert bus.emit("started", user="ann") == ["hello ann"]


def test_unregister_ends_the_hooks(bus, manager):
    plugin = Greeter()
    manager.register(plugin)
    assert manager.unregister("greeter") is plugin
    assert bus.emit("started", user="ann") == []
    assert manager.names() == []


def test_duplicate_name(manager):
    manager.register(Greeter())
    with pytest.raises(DuplicatePluginError):
        manager.register(Greeter())


def test_unknown_name(manager):
    with pytest.raises(UnknownPluginError):
        manager.unregister("greeter")


def test_add_hook_checks_the_method():
    with pytest.raises(InvalidHookError):
        Greeter().add_hook(Hook("stopped", "wave"))


def test_invalid_hook_leaves_nothing_behind(bus, manager):
    class Broken(Plugin):
        name = "broken"
        hooks = [Hook("started", "fine"), Hook("started", "missing")]

        def fine(self, event):
            return "fine"

    with pytest.raises(InvalidHookError):
        manager.register(Broken())
    assert bus.emit("started") == []
    assert manager.names() == []
