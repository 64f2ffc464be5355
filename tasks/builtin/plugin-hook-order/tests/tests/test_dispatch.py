"""What happens to subscriptions that change while an event is dispatched."""

import pytest

from hookbus import EventBus, Hook, Plugin, PluginManager


@pytest.fixture(params=["plain", "wildcard"])
def bus(request):
    """A bus, also with a "*" listener that is there but has no part in it."""
    bus = EventBus()
    if request.param == "wildcard":
        bus.subscribe("*", lambda event: None, priority=-100)
    return bus


def test_once_does_not_skip_the_next_listener(bus):
    bus.subscribe("saved", lambda event: "first", once=True, priority=1)
    bus.subscribe("saved", lambda event: "second")
    assert bus.emit("saved") == ["first", "second"]
    assert bus.emit("saved") == ["second"]


def test_several_once_listeners(bus):
    for number in range(4):
        bus.subscribe("saved", lambda event, n=number: n, once=True, priority=-number)
    assert bus.emit("saved") == [0, 1, 2, 3]
    assert bus.emit("saved") == []


def test_unsubscribing_itself(bus):
    def leave(event):
        bus.unsubscribe(subscription)
        return "left"

    subscription = bus.subscribe("saved", leave, priority=1)
    bus.subscribe("saved", lambda event: "stayed")
    assert bus.emit("saved") == ["left", "stayed"]
    assert bus.emit("saved") == ["stayed"]


def test_unsubscribing_a_later_listener(bus):
    bus.subscribe("saved", lambda event: bus.unsubscribe(later), priority=2)
    later = bus.subscribe("saved", lambda event: "later", priority=1)
    bus.subscribe("saved", lambda event: "last")
    assert bus.emit("saved") == ["last"]


def test_unsubscribing_an_earlier_listener(bus):
    earlier = bus.subscribe("saved", lambda event: "earlier", priority=3)
    bus.subscribe("saved", lambda event: bus.unsubscribe(earlier), priority=2)
    bus.subscribe("saved", lambda event: "next", priority=1)
    bus.subscribe("saved", lambda event: "last")
    assert bus.emit("saved") == ["earlier", "next", "last"]


def test_unsubscribing_a_wildcard_listener(bus):
    bus.subscribe("saved", lambda event: bus.unsubscribe(wildcard), priority=1)
    wildcard = bus.subscribe("*", lambda event: "any")
    assert bus.emit("saved") == []


def test_new_listeners_wait_for_the_next_emit(bus):
    def grow(event):
        bus.subscribe("saved", lambda event: "low", priority=-5)
        bus.subscribe("saved", lambda event: "high", priority=5)

    bus.subscribe("saved", grow, once=True)
    bus.subscribe("saved", lambda event: "old", priority=-1)
    assert bus.emit("saved") == ["old"]
    assert bus.emit("saved") == ["high", "old", "low"]


def test_listeners_that_resubscribe_do_not_loop(bus):
    calls = []

    def again(event):
        calls.append(event.name)
        if len(calls) < 20:
            bus.subscribe("saved", again, once=True)

    bus.subscribe("saved", again, once=True)
    bus.emit("saved")
    assert calls == ["saved"]


def test_new_listeners_take_part_in_a_nested_emit(bus):
    def outer(event):
        bus.subscribe("saved", lambda event: "new")
        return bus.emit("saved")

    bus.subscribe("saved", outer, once=True)
    assert bus.emit("saved") == [["new"]]


def test_once_listener_used_up_by_a_nested_emit(bus):
    def nest(event):
        if event.get("depth", 0) == 0:
            bus.emit("saved", depth=1)

    calls = []
    bus.subscribe("saved", nest, priority=1)
    bus.subscribe("saved", lambda event: calls.append(event.get("depth", 0)), once=True)
    bus.emit("saved")
    assert calls == [1]


def test_stop_after_unsubscribing(bus):
    def leave_and_stop(event):
        bus.unsubscribe(subscription)
        event.stop()

    subscription = bus.subscribe("saved", leave_and_stop, priority=1)
    bus.subscribe("saved", lambda event: "after")
    assert bus.emit("saved") == []
    assert bus.emit("saved") == ["after"]


def test_unregistering_a_plugin_that_is_still_to_run(bus):
    class Late(Plugin):
        name = "late"
        hooks = [Hook("saved", "run"), Hook("saved", "run", priority=-1)]

        def run(self, event):
            return "late"

    manager = PluginManager(bus)
    bus.subscribe("saved", lambda event: manager.unregister("late"), priority=1, once=True)
    manager.register(Late())
    bus.subscribe("saved", lambda event: "end", priority=-2)
    assert [r for r in bus.emit("saved") if isinstance(r, str)] == ["end"]


def test_a_raising_once_listener_is_gone(bus):
    def fail(event):
        raise RuntimeError("no")

    bus.subscribe("saved", fail, once=True)
    bus.subscribe("saved", lambda event: "fine", priority=-1)
    with pytest.raises(RuntimeError):
        bus.emit("saved")
    assert bus.emit("saved") == ["fine"]
