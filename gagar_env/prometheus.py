"""Numbers of a long run for Prometheus: an endpoint that serves them as text.

    with PrometheusEndpoint(9464) as endpoint:
        endpoint.watch(pipeline)
        for batch in pipeline.run(jobs):
            endpoint.count(batch)

Everything here may be called from any thread.
"""

from __future__ import annotations

import logging
import re
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from gagar_env.envs.observation import clean_text
from gagar_env.episode import Episode
from gagar_env.errors import GagarError, MissingDependencyError
from gagar_env.jobs import GroupBatch
from gagar_env.loggers.base import Numbers, known_numbers
from gagar_env.sandbox import live_sandboxes

logger = logging.getLogger(__name__)

SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
COUNTS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def outcome_of(episode: Episode) -> str:
    """One word for how an episode came out: `passed`, `failed`, `masked`, `cut` or `error`."""
    if episode.valid:
        return "passed" if episode.passed else "failed"
    if episode.status.value == "cut":
        return "cut"
    return "masked" if episode.report is not None and episode.report.outcome.value == "masked" else "error"


class PrometheusEndpoint:
    """Serves `http://HOST:PORT/metrics` in Prometheus' text format until it is closed.

    | metric | labels | what |
    | --- | --- | --- |
    | `gagar_groups_total` | `reason` | groups that ended: kept, all_passed, ... |
    | `gagar_failed_jobs_total` | | groups that could not be run: their task is broken |
    | `gagar_episodes_total` | `outcome` | passed, failed, masked, cut, error |
    | `gagar_grader_fallbacks_total` | | kept groups without the ranking that was wanted |
    | `gagar_tokens_total` | `by`, `kind` | of `policy` and `grader`; `prompt` and `completion` |
    | `gagar_cost_usd_total` | `by` | of graders, as far as prices are known |
    | `gagar_episode_seconds` | `phase` | histogram: reset, steps, capture, verify |
    | `gagar_grading_seconds` | | histogram: of a graded group |
    | `gagar_grader_confidence` | | histogram: of the rankings that were used |
    | `gagar_turns`, `gagar_patch_lines` | | histograms: of valid and of passing episodes |
    | `gagar_live_sandboxes` | | open now in this process |
    | `gagar_level` | `name` | what is watched: lengths of queues, groups at work |
    | `gagar_logged` | `name` | what was logged last, see `log` |
    | `process_...` | | memory, processor time, open files of this process |

    It is a `Logger` too: what a learner logs (a loss, a norm) is served as `gagar_logged`.

    Args:
        port: To listen on; 0 takes a free one, see `address`.
        host: By default this machine alone. There is no password: what listens elsewhere is read by everybody.

    Raises:
        GagarError: If the port is in use, or is none.
        MissingDependencyError: Without prometheus_client.
    """

    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        try:
            from prometheus_client import (
                CollectorRegistry,
                Counter,
                Gauge,
                Histogram,
                ProcessCollector,
                make_wsgi_app,
            )
        except ImportError as error:
            raise MissingDependencyError(
                "a Prometheus endpoint needs prometheus_client: pip install 'gagar-env[prometheus]'"
            ) from error
        if not 0 <= port <= 65535:
            raise GagarError(f"a port is 0 to 65535, got {port}")
        self._registry = registry = CollectorRegistry(auto_describe=True)
        self._lock = threading.Lock()
        self._levels: list[Callable[[], Mapping[str, Any]]] = []

        def counter(name: str, text: str, *labels: str) -> Any:
            return Counter(f"gagar_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Any:
            return Histogram(f"gagar_{name}", text, labels, buckets=buckets, registry=registry)

        self._groups = counter("groups", "groups that ended, by verdict", "reason")
        self._failed = counter("failed_jobs", "groups that could not be run")
        self._episodes = counter("episodes", "episodes that ended, by outcome", "outcome")
        self._fallbacks = counter("grader_fallbacks", "kept groups without the ranking that was wanted")
        self._tokens = counter("tokens", "tokens of models", "by", "kind")
        self._cost = counter("cost_usd", "what models cost, as far as prices are known", "by")
        self._phases = histogram("episode_seconds", "seconds of an episode, by phase", SECONDS, "phase")
        self._grading = histogram("grading_seconds", "seconds of grading a group", SECONDS)
        self._confidence = histogram("grader_confidence", "confidence of rankings that were used", SHARES)
        self._turns = histogram("turns", "turns of a valid episode", COUNTS)
        self._lines = histogram("patch_lines", "lines of source that a passing episode changed", COUNTS)
        self._logged = Gauge("gagar_logged", "what was logged last", ["name"], registry=registry)
        live = Gauge("gagar_live_sandboxes", "sandboxes that are open in this process", registry=registry)
        live.set_function(live_sandboxes)
        ProcessCollector(registry=registry)
        registry.register(_Levels(self._now))
        try:
            self._server = _serve(make_wsgi_app(registry), host, port)
        except OSError as error:
            raise GagarError(
                f"a Prometheus endpoint cannot listen on {host}:{port}: {error.strerror or error}"
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="gagar-prometheus", daemon=True
        )
        self._thread.start()
        self.port: int = self._server.server_port
        self.address = f"http://{f'[{host}]' if ':' in host else host}:{self.port}/metrics"
        self._closed = False

    def count(self, batch: GroupBatch) -> None:
        """Count a group that ended, with its episodes. Never raises."""
        try:
            self._count(batch)
        except Exception as error:
            logger.warning("group %s is not in the numbers for Prometheus: %r", batch.result.group_id, error)

    def _count(self, batch: GroupBatch) -> None:
        from gagar_env.evaluation.rows import row_of  # late: a dozen modules that a run without an endpoint needs not

        result = batch.result
        self._groups.labels(result.reason.value).inc()
        if result.fallback:
            self._fallbacks.inc()
        if result.verdict is not None:
            usage = result.verdict.usage
            self._tokens.labels("grader", "prompt").inc(usage.prompt_tokens)
            self._tokens.labels("grader", "completion").inc(usage.completion_tokens)
            self._cost.labels("grader").inc(usage.cost_usd)
            self._grading.observe(result.seconds)
            if result.graded:
                self._confidence.observe(result.verdict.confidence)
        for episode in batch.episodes:
            self._episodes.labels(outcome_of(episode)).inc()
            self._tokens.labels("policy", "prompt").inc(sum(turn.prompt_tokens for turn in episode.turns))
            self._tokens.labels("policy", "completion").inc(sum(turn.completion_tokens for turn in episode.turns))
            for phase in ("reset", "steps", "capture", "verify"):
                self._phases.labels(phase).observe(getattr(episode.timings, f"{phase}_s"))
            if episode.valid:
                self._turns.observe(len(episode.turns))
            if episode.passed and (lines := row_of(episode, digest="").lines) is not None:
                self._lines.observe(lines)

    def count_failed(self) -> None:
        """Count a group that could not be run."""
        self._failed.inc()

    def watch(self, source: Any) -> None:
        """Serve what something says of itself, asked at each scrape: lengths of queues, groups at work.

        Args:
            source: With a method `levels()`, such as a `Pipeline`, or a function: both give name -> number. What has
                neither is left alone, and one that raises is left out of that scrape.
        """
        levels = getattr(source, "levels", source)
        if callable(levels):
            with self._lock:
                self._levels.append(levels)

    def log(self, step: int, numbers: Numbers) -> None:
        """Serve numbers of a step as `gagar_logged`, the step itself as `step`."""
        for name, value in {**known_numbers(numbers), "step": int(step)}.items():
            self._logged.labels(clean_text(name)).set(value)

    def close(self) -> None:
        """Stop listening. May be called again."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._levels.clear()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def __enter__(self) -> PrometheusEndpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _now(self) -> dict[str, float]:
        with self._lock:
            sources = list(self._levels)
        found: dict[str, float] = {}
        for levels in sources:
            found |= _asked(levels)
        return found


class _Handler(WSGIRequestHandler):
    """Writes no line for each scrape, and none for a client that went away."""

    def log_message(self, format: str, *args: Any) -> None:
        logger.debug(format, *args)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # without asking a name server what this machine is called
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        logger.debug("a scrape from %s broke off", client_address, exc_info=True)


def _serve(metrics: Any, host: str, port: int) -> _Server:
    def app(environ: dict[str, Any], start_response: Any) -> Any:
        if environ["PATH_INFO"] in ("/metrics", "/"):
            return metrics(environ, start_response)
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"the numbers are at /metrics\n"]

    kind = type("_Server6", (_Server,), {"address_family": socket.AF_INET6}) if ":" in host else _Server
    server: _Server = kind((host, port), _Handler)
    server.set_app(app)
    return server


def _asked(levels: Callable[[], Mapping[str, Any]]) -> dict[str, int | float]:
    try:
        return known_numbers(levels())
    except Exception as error:  # a scrape while a run ends
        logger.debug("levels are left out of a scrape: %r", error)
        return {}


class _Levels:
    """Asks what is watched; a level that is not there any more is not served any more."""

    def __init__(self, now: Callable[[], dict[str, float]]) -> None:
        self._now = now

    def describe(self) -> Iterator[Any]:
        return iter(())

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(
            "gagar_level", "what is watched now: lengths of queues, groups at work", labels=["name"]
        )
        for name, value in self._now().items():
            family.add_metric([clean_text(re.sub(r"\s+", " ", name))], value)
        yield family
