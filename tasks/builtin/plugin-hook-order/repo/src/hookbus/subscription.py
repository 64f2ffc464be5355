"""The link between an event name and a callback."""

from dataclasses import dataclass
from typing import Callable

#: Event name of listeners that see every event.
WILDCARD = "*"


@dataclass(eq=False)
class Subscription:
    """One listener; equality is identity, so callbacks may repeat."""

    event: str
    callback: Callable
    priority: int = 0
    once: bool = False
    active: bool = True
