"""Bookkeeping of subscriptions."""

from bisect import insort_left

from .subscription import WILDCARD


class SubscriptionRegistry:
    """Holds the active subscriptions, by event name."""

    def __init__(self):
        self._by_event = {}

    def add(self, subscription):
        """Store `subscription` at the place that its priority gives it."""
        bucket = self._by_event.setdefault(subscription.event, [])
        insort_left(bucket, subscription, key=_rank)

    def remove(self, subscription):
        """Drop `subscription`; do nothing if it was dropped before."""
        if not subscription.active:
            return
        subscription.active = False
        bucket = self._by_event[subscription.event]
        bucket.remove(subscription)
        if not bucket:
            del self._by_event[subscription.event]

    def listeners(self, event):
        """Return the subscriptions that see `event`, in calling order."""
        specific = self._by_event.get(event, [])
        wildcard = self._by_event.get(WILDCARD, [])
        if not wildcard:
            return specific
        return sorted(specific + wildcard, key=_rank)

    def events(self):
        """Return the names that have subscriptions, sorted."""
        return sorted(self._by_event)


def _rank(subscription):
    return -subscription.priority
