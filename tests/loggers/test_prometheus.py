"""A real client reads the endpoint, and Prometheus' own parser reads what it gets."""

import http.client
import logging
import threading
import urllib.error
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gagar_env.episode import Outcome
from gagar_env.errors import GagarError, MissingDependencyError
from gagar_env.loggers import Logger
from gagar_env.prometheus import PrometheusEndpoint, outcome_of
from gagar_env.sandbox import SandboxSpec, live_sandboxes, open_sandbox


def scrape(endpoint):
    """`(name, labels) -> value`, and the kind of each family."""
    with urllib.request.urlopen(endpoint.address, timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        text = answer.read().decode()
    values, kinds = {}, {}
    for family in text_string_to_metric_families(text):
        kinds[family.name] = family.type
        for sample in family.samples:
            values[(sample.name, *sorted(sample.labels.values()))] = sample.value
    return values, kinds


@pytest.fixture
def endpoint():
    with PrometheusEndpoint(0) as endpoint:
        yield endpoint


def test_groups_episodes_tokens_and_seconds(endpoint, batch, all_failed):
    for one in (batch, all_failed, all_failed):
        endpoint.count(one)
    endpoint.count_failed()
    values, kinds = scrape(endpoint)
    assert values["gagar_groups_total", "kept"] == 1
    assert values["gagar_groups_total", "all_failed"] == 2
    assert values["gagar_failed_jobs_total",] == 1
    outcomes = {key[1]: value for key, value in values.items() if key[0] == "gagar_episodes_total"}
    assert outcomes == {"passed": 2, "failed": 5, "cut": 1, "masked": 1}
    assert values["gagar_tokens_total", "completion", "policy"] == 5 * (10 + 4 + 4)
    assert values["gagar_episode_seconds_sum", "steps"] == pytest.approx(2.0 * 9)
    assert values["gagar_episode_seconds_bucket", "0.3", "capture"] == 9
    assert values["gagar_episode_seconds_bucket", "0.1", "capture"] == 0
    assert values["gagar_patch_lines_sum",] == 10
    assert values["gagar_turns_count",] == 7
    assert kinds["gagar_groups"] == kinds["gagar_tokens"] == "counter"
    assert kinds["gagar_episode_seconds"] == "histogram"
    assert values["process_resident_memory_bytes",] > 1e6


def test_outcomes_in_words(batch):
    assert [outcome_of(episode) for episode in batch.episodes] == ["passed", "passed", "failed", "cut", "masked"]
    broken = batch.episodes[0].model_copy(update={"report": None})
    assert outcome_of(broken) == "error"
    assert {"passed", "failed", "masked", "error"} == {str(outcome) for outcome in Outcome}


def test_what_is_watched_is_asked_at_each_scrape(endpoint):
    class Queues:
        waiting = 3

        def levels(self):
            return {"waiting": self.waiting, "acting": 2}

    queues = Queues()
    endpoint.watch(queues)
    endpoint.watch(lambda: 1 / 0)
    endpoint.watch(object())  # says nothing of itself
    values, kinds = scrape(endpoint)
    assert (values["gagar_level", "waiting"], values["gagar_level", "acting"]) == (3, 2)
    assert kinds["gagar_level"] == "gauge"
    queues.waiting = 0
    assert scrape(endpoint)[0]["gagar_level", "waiting"] == 0


def test_it_is_a_logger(endpoint):
    assert isinstance(endpoint, Logger)
    endpoint.log(4, {"loss": 0.5, 'odd " name\\\n': 1, "nothing": None})
    values, _ = scrape(endpoint)
    assert values["gagar_logged", "loss"] == 0.5
    assert values["gagar_logged", "step"] == 4
    assert values["gagar_logged", 'odd " name\\\n'] == 1
    assert ("gagar_logged", "nothing") not in values


def test_open_sandboxes_are_counted(endpoint, tmp_path):
    before = live_sandboxes()
    sandbox = open_sandbox("process", SandboxSpec(tree=tmp_path))
    assert scrape(endpoint)[0]["gagar_live_sandboxes",] == before + 1
    sandbox.close()
    assert scrape(endpoint)[0]["gagar_live_sandboxes",] == before


def test_counts_of_many_threads_add_up_while_it_is_read(endpoint, batch):
    threads = [threading.Thread(target=lambda: [endpoint.count(batch) for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        scrape(endpoint)
    for thread in threads:
        thread.join()
    assert scrape(endpoint)[0]["gagar_groups_total", "kept"] == 40


def test_what_cannot_be_counted_ends_no_run(endpoint, batch, caplog):
    with caplog.at_level(logging.WARNING):
        endpoint.count(type(batch)(result=batch.result, episodes=(None,), task=batch.task, attempt=0, seed=0))
    assert "is not in the numbers for Prometheus" in caplog.text


def test_ports(endpoint):
    with pytest.raises(
        GagarError, match=rf"^a Prometheus endpoint cannot listen on 127.0.0.1:{endpoint.port}: [^\n]*use"
    ):
        PrometheusEndpoint(endpoint.port)
    with pytest.raises(GagarError, match="a port is 0 to 65535, got 70000"):
        PrometheusEndpoint(70000)


def test_it_listens_on_this_machine_alone_and_is_gone_when_it_is_closed():
    endpoint = PrometheusEndpoint(0)
    assert endpoint._server.server_address[0] == "127.0.0.1"
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=30)
    connection.request("POST", "/metrics")
    assert connection.getresponse().status == 405
    connection.close()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(endpoint.address.replace("metrics", "secrets"), timeout=30)
    endpoint.close()
    endpoint.close()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(endpoint.address, timeout=5)
    PrometheusEndpoint(endpoint.port).close()


def test_without_the_package_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'gagar-env\[prometheus\]'"):
        PrometheusEndpoint(0)


def test_a_name_that_is_no_text_does_not_end_the_endpoint(endpoint):
    endpoint.log(1, {"bad\udcff": 1.0, "good": 2.0})
    endpoint.watch(lambda: {"level\ud800": 3.0})
    values, _ = scrape(endpoint)
    assert values["gagar_logged", "good"] == 2.0
    assert sorted(value for (name, *_), value in values.items() if name == "gagar_level") == [3.0]
