"""The object that listeners receive."""


class Event:
    """One emission: a name, its payload and the results so far."""

    def __init__(self, name, payload):
        self.name = name
        self.payload = payload
        self.results = []
        self.stopped = False

    def __getitem__(self, key):
        return self.payload[key]

    def __repr__(self):
        return f"Event({self.name!r}, {self.payload!r})"

    def get(self, key, default=None):
        """Return the payload value of `key`, or `default`."""
        return self.payload.get(key, default)

    def stop(self):
        """Keep this event from the listeners that have not run yet."""
        self.stopped = True
