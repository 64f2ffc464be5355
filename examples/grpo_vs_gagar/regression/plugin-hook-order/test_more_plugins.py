"""What the README and the docstrings of hookbus say beyond the issue's own tests."""

import pytest
from hookbus import DuplicatePluginError, EventBus, Hook, InvalidHookError, Plugin, PluginManager


class Audit(Plugin):
    name = "audit"
    hooks = (Hook("saved", "on_saved", priority=10),)

    def on_saved(self, event):
        return f"saved {event['path']}"

    def on_closed(self, event):
        return "closed"


def test_hooks_may_be_worked_out():
    """A class lists its hooks in `hooks`, however: here they depend on what the plugin was made with."""

    class Watch(Plugin):
        def __init__(self, *events):
            self.name = "watch"
            self.events = events

        @property
        def hooks(self):
            return [Hook(event, "seen") for event in self.events]

        def seen(self, event):
            return event.name

    bus = EventBus()
    PluginManager(bus).register(Watch("saved", "closed"))
    assert bus.events() == ["closed", "saved"]
    assert bus.emit("closed") == ["closed"]


def test_hooks_are_read_when_a_plugin_is_registered():
    class Late(Plugin):
        name = "late"

        def seen(self, event):
            return event.name

    plugin, bus = Late(), EventBus()
    Late.hooks = [Hook("saved", "seen")]
    PluginManager(bus).register(plugin)
    assert bus.emit("saved") == ["saved"]


def test_plugin_that_shares_its_class_with_another_base():
    class Base:
        def __new__(cls, *args):
            made = super().__new__(cls)
            made.args = args
            return made

    class Both(Plugin, Base):
        name = "both"

    assert Both(1, 2).args == (1, 2)
    assert list(Both().hooks) == []


def test_tuple_of_hooks_can_be_changed_for_one_plugin():
    first, second = Audit(), Audit()
    first.add_hook(Hook("closed", "on_closed"))
    first.remove_hook(Hook("saved", "on_saved", priority=10))
    assert list(first.hooks) == [Hook("closed", "on_closed")]
    assert list(second.hooks) == list(Audit.hooks) == [Hook("saved", "on_saved", priority=10)]


def test_hook_without_method_changes_nothing():
    plugin = Audit()
    with pytest.raises(InvalidHookError, match="Audit has no method 'nope'"):
        plugin.add_hook(Hook("saved", "nope"))
    assert list(plugin.hooks) == list(Audit.hooks)


def test_registration_again_after_unregistration():
    bus = EventBus()
    manager, plugin = PluginManager(bus), Audit()
    manager.register(plugin)
    with pytest.raises(DuplicatePluginError):
        manager.register(Audit())
    assert manager.unregister("audit") is plugin
    assert manager.names() == []
    assert bus.events() == []
    manager.register(plugin)
    assert bus.emit("saved", path="notes.txt") == ["saved notes.txt"]


def test_unregistering_while_its_own_hook_runs():
    bus = EventBus()
    manager = PluginManager(bus)

    class Once(Plugin):
        name = "once"
        hooks = (Hook("saved", "first"), Hook("saved", "second"))

        def first(self, event):
            manager.unregister("once")
            return "first"

        def second(self, event):
            return "second"

    manager.register(Once())
    assert bus.emit("saved") == ["first"]
    assert bus.emit("saved") == []


def test_buses_do_not_share_their_order():
    one, other = EventBus(), EventBus()
    for bus in (one, other, one, other):
        bus.subscribe("saved", print)
    seen = []
    for name in "abc":
        one.subscribe("*", lambda event, name=name: seen.append(name))
        other.subscribe("*", lambda event, name=name: seen.append(name.upper()))
    one.emit("closed")
    other.emit("closed")
    assert seen == ["a", "b", "c", "A", "B", "C"]


def test_payload_and_results():
    bus = EventBus()
    bus.subscribe("saved", lambda event: event.get("missing", "nothing"))
    bus.subscribe("saved", lambda event: None)
    bus.subscribe("saved", lambda event: 0)
    assert bus.emit("saved", name="payload may have a name") == ["nothing", 0]


def test_emit_writes_nothing(capsys, caplog):
    bus = EventBus()
    bus.subscribe("saved", lambda event: event["path"])
    with caplog.at_level("INFO"):
        assert bus.emit("saved", path="notes.txt") == ["notes.txt"]
    assert capsys.readouterr() == ("", "")
    assert caplog.records == []
