"""Runs to look at, and a real browser to look with."""

import shutil
from pathlib import Path

import pytest
from shown_runs import Eyes, add_plain, mixed_group, write_nasty_run

from gagar_env.store import RunFolder

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("browser"):
            item.user_properties.append(("marker", "browser"))


@pytest.fixture(scope="session")
def shown_run(tmp_path_factory, bench) -> Path:
    """Groups: mixed, all passed, all failed, too few valid, kept without a grader."""
    path = tmp_path_factory.mktemp("shown") / "first"
    run = RunFolder.create(path, {"policy": "scripted", "group_size": 6})
    members, result = mixed_group(bench)
    run.add(result, members, task=bench.task, attempt=0)
    for number, results in enumerate(((1, 1), (0, 0), (1, None), (1, 0, 0)), 1):
        add_plain(run, number, results)
    run.add_metrics(1, {"loss": 0.5})
    run.add_metrics(2, {"loss": 0.25})
    return path


@pytest.fixture
def nasty_run(tmp_path) -> Path:
    """Everything that somebody else writes, hostile."""
    write_nasty_run(tmp_path / "nasty")
    return tmp_path / "nasty"


@pytest.fixture(scope="module")
def chromium():
    """A headless Chromium of the system. For no longer: while it is open, this thread can run no other event loop."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def eyes(chromium):
    """What is seen must be without errors: refused scripts and styles are errors too."""
    looking = Eyes(chromium)
    yield looking
    for context in looking.contexts:
        context.close()
    assert looking.faults == []
