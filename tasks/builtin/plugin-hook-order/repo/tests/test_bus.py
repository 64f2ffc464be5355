from hookbus import EventBus


def recorder(calls, label):
    def listener(event):
        calls.append(label)

    return listener


def test_emit_passes_the_payload_and_collects_results():
    bus = EventBus()
    bus.subscribe("saved", lambda event: event["size"] * 2)
    bus.subscribe("saved", lambda event: None)
    assert bus.emit("saved", size=4) == [8]


def test_emit_without_listeners():
    assert EventBus().emit("saved") == []


def test_higher_priorities_run_first():
    bus, calls = EventBus(), []
    bus.subscribe("saved", recorder(calls, "low"), priority=-1)
    bus.subscribe("saved", recorder(calls, "high"), priority=5)
    bus.subscribe("saved", recorder(calls, "middle"))
    bus.emit("saved")
    assert calls == ["high", "middle", "low"]


def test_wildcard_listeners_obey_priorities():
    bus, calls = EventBus(), []
    bus.subscribe("saved", recorder(calls, "saved"))
    bus.subscribe("*", recorder(calls, "any first"), priority=1)
    bus.subscribe("*", recorder(calls, "any last"), priority=-1)
    bus.emit("saved")
    assert calls == ["any first", "saved", "any last"]


def test_stop_ends_the_event():
    bus, calls = EventBus(), []
    bus.subscribe("saved", lambda event: event.stop(), priority=1)
    bus.subscribe("saved", recorder(calls, "late"))
    bus.emit("saved")
    assert calls == []


def test_once_listener_runs_once():
    bus, calls = EventBus(), []
    bus.subscribe("saved", recorder(calls, "once"), once=True)
    bus.emit("saved")
    bus.emit("saved")
    assert calls == ["once"]


def test_unsubscribe_twice_is_harmless():
    bus = EventBus()
    subscription = bus.subscribe("saved", print)
    bus.unsubscribe(subscription)
    bus.unsubscribe(subscription)
    assert bus.events() == []


def test_decorator():
    bus = EventBus()

    @bus.on("saved")
    def listener(event):
        return event.name

    assert bus.emit("saved") == ["saved"]
