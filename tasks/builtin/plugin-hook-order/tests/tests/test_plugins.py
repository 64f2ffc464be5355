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


@pytest.fixture(autouse=True)
def restore_hooks():
    """Undo what a test does to the hooks that classes list."""
    lists = [cls.hooks for cls in (Plugin, Greeter) if isinstance(cls.hooks, list)]
    copies = [list(hooks) for hooks in lists]
    yield
    for hooks, copy in zip(lists, copies):
        hooks[:] = copy


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


class Mail(Plugin):
    name = "mail"

    def __init__(self, address):
        self.address = address

    def send(self, event):
        return self.address


def test_add_hook_leaves_other_classes_alone(bus, manager):
    mail = Mail("ann@example.org")
    mail.add_hook(Hook("saved", "send"))
    assert list(Plugin().hooks) == []

    class Chat(Plugin):
        name = "chat"

    manager.register(Chat())
    manager.register(mail)
    assert bus.emit("saved") == ["ann@example.org"]


def test_add_hook_leaves_other_objects_alone():
    one, two = Mail("a"), Mail("b")
    one.add_hook(Hook("saved", "send"))
    two.add_hook(Hook("closed", "send"))
    assert list(one.hooks) == [Hook("saved", "send")]
    assert list(two.hooks) == [Hook("closed", "send")]
    assert list(Mail.hooks) == []


def test_add_hook_keeps_the_hooks_of_the_class():
    plugin = Greeter()
    plugin.add_hook(Hook("stopped", "greet", priority=2))
    assert list(plugin.hooks) == [Hook("started", "greet"), Hook("stopped", "greet", priority=2)]
    assert list(Greeter.hooks) == [Hook("started", "greet")]
    assert list(Greeter().hooks) == [Hook("started", "greet")]


def test_remove_hook_leaves_the_class_alone(bus, manager):
    plugin = Greeter()
    plugin.remove_hook(Hook("started", "greet"))
    assert list(plugin.hooks) == []
    assert list(Greeter.hooks) == [Hook("started", "greet")]
    manager.register(plugin)
    assert bus.emit("started", user="ann") == []


def test_remove_hook_takes_one_of_equal_hooks():
    plugin = Mail("a")
    plugin.add_hook(Hook("saved", "send"))
    plugin.add_hook(Hook("saved", "send"))
    plugin.remove_hook(Hook("saved", "send"))
    assert list(plugin.hooks) == [Hook("saved", "send")]


def test_remove_unknown_hook():
    with pytest.raises(ValueError):
        Mail("a").remove_hook(Hook("saved", "send"))


def test_removed_hook_can_be_added_again():
    plugin = Mail("a")
    plugin.add_hook(Hook("saved", "send"))
    plugin.remove_hook(Hook("saved", "send"))
    plugin.add_hook(Hook("saved", "send", priority=1))
    assert list(plugin.hooks) == [Hook("saved", "send", priority=1)]


def test_hooks_of_plugins_run_in_order_of_registration(bus, manager):
    for name in ("one", "two", "three"):
        plugin = Mail(name)
        plugin.name = name
        plugin.add_hook(Hook("saved", "send"))
        manager.register(plugin)
    assert bus.emit("saved") == ["one", "two", "three"]
    assert manager.names() == ["one", "two", "three"]
