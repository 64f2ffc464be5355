"""The event bus."""

from .event import Event
from .registry import SubscriptionRegistry
from .subscription import Subscription


class EventBus:
    """Calls the listeners of the events that are emitted on it."""

    def __init__(self):
        self._registry = SubscriptionRegistry()

    def subscribe(self, event, callback, *, priority=0, once=False):
        """Call `callback(event)` on each `event`; return the subscription."""
        subscription = Subscription(event, callback, priority, once)
        self._registry.add(subscription)
        return subscription

    def unsubscribe(self, subscription):
        """End `subscription`. Ending it twice is harmless."""
        self._registry.remove(subscription)

    def on(self, event, *, priority=0):
        """Decorator form of `subscribe`."""

        def decorate(callback):
            self.subscribe(event, callback, priority=priority)
            return callback

        return decorate

    def emit(self, name, /, **payload):
        """Run the listeners of `name` and return their results.

        Results that are None are left out.
        """
        event = Event(name, payload)
        for subscription in self._registry.listeners(name):
            if subscription.once:
                self.unsubscribe(subscription)
            result = subscription.callback(event)
            if result is not None:
                event.results.append(result)
            if event.stopped:
                break
        return event.results

    def events(self):
        """Return the event names that have listeners, sorted."""
        return self._registry.events()
