"""One policy for all workers of a cluster: `serve_policy` puts it into a Ray actor, `RemotePolicy` asks it."""

from __future__ import annotations

import threading
import time
import uuid
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from gagar_env.acting import Actor, Policy, SampledTokens, TokenUsage
from gagar_env.actions import ActionFormat, get_format
from gagar_env.errors import GagarError, PolicyLimitError
from gagar_env.integrations.ray_cluster import import_ray
from gagar_env.integrations.ray_setup import one_line
from gagar_env.tasks.task import Task


class _Said(NamedTuple):
    action: Any = None
    usage: TokenUsage | None = None
    sampled: SampledTokens | None = None
    limit: str = ""
    error: str = ""


class PolicyServer:
    """Holds a policy, and an actor of it for each episode that is under way. Lives in a Ray actor.

    Args:
        factory: Makes the policy there.
        idle_s: An episode that has not asked for so long is forgotten: its worker died.
    """

    def __init__(self, factory: Callable[[], Policy], idle_s: float = 6 * 3600.0) -> None:
        self._policy = factory()
        self._idle_s = idle_s
        self._actors: dict[str, tuple[Actor, float]] = {}
        self._lock = threading.Lock()

    def name(self) -> str:
        """Of the policy."""
        return self._policy.name

    def start(self, key: str, task: Task, actions: str, seed: int) -> str:
        """Begin an episode; why it cannot begin, or nothing."""
        try:
            actor = self._policy.start(task=task, actions=get_format(actions), seed=seed)
        except Exception as error:
            return one_line(error)
        now = time.monotonic()
        with self._lock:
            old = [k for k, (_, last) in self._actors.items() if now - last > self._idle_s]
            for k in old:
                del self._actors[k]
            self._actors[key] = actor, now
        return ""

    def act(self, key: str, observation: str) -> _Said:
        """The next action of an episode."""
        with self._lock:
            actor = self._actors[key][0] if key in self._actors else None
            if actor is not None:
                self._actors[key] = actor, time.monotonic()
        if actor is None:
            return _Said(error="the policy's process does not know this episode: it was started anew")
        try:
            action = actor.act(observation)
            return _Said(action, getattr(actor, "usage", None), getattr(actor, "sampled", None))
        except PolicyLimitError as limit:
            return _Said(limit=str(limit))
        except Exception as error:
            return _Said(error=one_line(error))

    def end(self, key: str) -> None:
        """Forget an episode."""
        with self._lock:
            self._actors.pop(key, None)

    def episodes(self) -> int:
        """How many are under way."""
        with self._lock:
            return len(self._actors)

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the policy itself: to load new weights, say."""
        return getattr(self._policy, method)(*args, **kwargs)


class RemotePolicy:
    """Acts through a policy in a Ray actor. Small, and pickles: every worker has one.

    Args:
        handle: Of a `PolicyServer` actor, as `serve_policy` makes it.
        name: Recorded with each episode.
    """

    def __init__(self, handle: Any, name: str) -> None:
        self.handle = handle
        self.name = name

    def start(self, *, task: Task, actions: ActionFormat, seed: int) -> RemoteActor:
        """See `gagar_env.rollout.Policy`."""
        return RemoteActor(self.handle, task, actions.name, seed)

    def call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the policy itself, and wait for what it returns."""
        return import_ray().get(self.handle.call.remote(method, *args, **kwargs))


class RemoteActor:
    """One episode of a `RemotePolicy`."""

    def __init__(self, handle: Any, task: Task, actions: str, seed: int) -> None:
        self.usage: TokenUsage | None = None
        self.sampled: SampledTokens | None = None
        self._get = import_ray().get
        self._handle, self._key = handle, uuid.uuid4().hex
        if fault := self._get(handle.start.remote(self._key, task, actions, seed)):
            raise GagarError(fault)
        weakref.finalize(self, _forget, handle, self._key).atexit = False

    def act(self, observation: str) -> str:
        """See `gagar_env.rollout.Actor`."""
        said: _Said = self._get(self._handle.act.remote(self._key, observation))
        if said.limit:
            raise PolicyLimitError(said.limit)
        if said.error:
            raise GagarError(said.error)
        self.usage, self.sampled = said.usage, said.sampled
        return said.action  # type: ignore[no-any-return]  # what it is, the caller checks


def _forget(handle: Any, key: str) -> None:
    if import_ray().is_initialized():
        handle.end.remote(key)


def serve_policy(
    factory: Callable[[], Policy], *, max_concurrency: int = 256, idle_s: float = 6 * 3600.0, **options: Any
) -> RemotePolicy:
    """Put a policy into a Ray actor of its own, for all workers: a batched local model, on one node with a GPU.

    Args:
        factory: Makes the policy, in the actor's process.
        max_concurrency: Episodes that can ask at one time; each waits in a thread there.
        idle_s: See `PolicyServer`.
        options: Of the actor: `num_gpus`, `num_cpus`, `resources`, `scheduling_strategy`, ...

    Raises:
        MissingDependencyError: If Ray is missing.
        GagarError: If the policy cannot be made; one line says why.
    """
    ray = import_ray()
    made = ray.remote(PolicyServer).options(max_concurrency=max_concurrency, **options)
    handle = made.remote(factory, idle_s)
    try:
        name = ray.get(handle.name.remote())
    except Exception as error:
        cause = getattr(error, "cause", None) or error
        raise GagarError(f"the policy cannot be made in its Ray actor: {one_line(cause)}") from None
    return RemotePolicy(handle, name)
