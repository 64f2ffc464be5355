"""Whatever an agent printed comes back exactly, from files that any strict parser reads."""

import json
import os
from datetime import date
from pathlib import Path

import pydantic_core
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.episode import (
    Dropped,
    Episode,
    EpisodeStatus,
    Flag,
    Outcome,
    TestRecord,
    TestReport,
    TestStatus,
    Timings,
    Turn,
    TurnTokens,
)
from gagar_env.grading import Usage, Verdict, VerdictOutcome
from gagar_env.group_result import GroupResult
from gagar_env.store.atif import from_atif, to_atif
from gagar_env.store.exact import plain_json, read_exact
from gagar_env.store.records import group_line, read_group
from gagar_env.store.tasks import StoredTasks
from gagar_env.tasks.task import RepoSource, Task, Tests

words = st.text(st.characters(exclude_categories=()), max_size=12) | st.sampled_from(
    [
        "\udcff",
        "a\ud800b",
        "\ud83d\ude00",
        "\x10",
        "\x10d800",
        "\0",
        "\u2028\r\n",
        "\N{PILE OF POO}",
        '"}{',
        "\x1b[0m",
        "",
    ]
)
floats = st.floats(allow_nan=False)
ids = st.lists(st.integers(0, 1 << 40), max_size=4).map(tuple)
tokens = st.builds(
    TurnTokens, kept=st.integers(0, 9), prompt=ids, completion=ids, logprobs=st.none() | st.tuples(floats, floats)
)
turns = st.builds(
    Turn,
    action=words,
    observation=words,
    exit_code=st.none() | st.integers(-99, 255),
    timed_out=st.booleans(),
    seconds=floats,
    prompt_tokens=st.integers(0, 99),
    completion_tokens=st.integers(0, 99),
    tokens=st.none() | tokens,
)
records = st.builds(TestRecord, status=st.sampled_from(TestStatus), seconds=floats, message=words)
reports = st.builds(
    TestReport,
    outcome=st.sampled_from(Outcome),
    reason=words,
    tests=st.dictionaries(
        words, st.builds(TestRecord, status=st.sampled_from(TestStatus), seconds=floats, message=words), max_size=2
    ),
    unmet=st.lists(words, max_size=2).map(tuple),
    exit_code=st.none() | st.integers(-9, 9),
    flags=st.lists(st.builds(Flag, kind=words, path=words, detail=words), max_size=1).map(tuple),
    score=st.none() | floats,
    output_tail=words,
)
episodes = st.builds(
    Episode,
    id=words,
    group_id=words,
    task_id=words,
    status=st.sampled_from(EpisodeStatus),
    turns=st.lists(turns, max_size=3).map(tuple),
    patch=st.binary(max_size=12) | words.map(lambda text: text.encode("utf-8", "surrogatepass")),
    dropped=st.lists(st.builds(Dropped, path=words, reason=words, size_bytes=st.integers(0, 9)), max_size=1).map(tuple),
    report=st.none() | reports,
    error=words.map(lambda text: f"e{text}"),
    first_observation=words,
    seed=st.none() | st.integers(0, 1 << 62),
    policy=words,
    timings=st.builds(Timings, reset_s=floats),
)


def strict(data):
    """Parse as a parser does that knows no NaN and no lone surrogates."""
    assert data.count(b"\n") <= 1
    return pydantic_core.from_json(data, allow_inf_nan=False)


few = settings(max_examples=12, deadline=None)
many = settings(max_examples=300, deadline=None)


@few
@given(episodes)
def test_disk_1_an_episode_comes_back_exactly(episode):
    check_episode(episode)


@pytest.mark.slow
@many
@given(episodes)
def test_disk_1_any_episode_comes_back_exactly(episode):
    check_episode(episode)


def test_disk_1_a_patch_that_looks_like_what_surrogates_are_spelled_as():
    check_episode(Episode(id="\ud800", group_id="g", task_id="t", status="submitted", patch=b"\x10d800\xe2\x82\xac"))
    check_episode(Episode(id="\ud800", group_id="g", task_id="t", status="submitted", patch=b"\x10d800\xff"))


def check_episode(episode):
    data = to_atif(episode)
    found = strict(data)
    assert found["schema_version"] == "ATIF-v1.8"
    assert from_atif(data, "here") == episode
    if "gagar_exact" not in found["extra"]:
        assert Episode.model_validate(found["extra"]["gagar"]) == episode


@few
@given(episodes)
def test_an_episode_is_a_trajectory_in_atif(episode):
    atif = pytest.importorskip("atif", reason="the package atif is for Python 3.11 and newer")
    found = atif.Trajectory.model_validate_json(to_atif(episode))
    agent = [step for step in found.steps if step.source == "agent"]
    assert len(agent) == len(episode.turns)
    shown = [(step.message, step.observation.results[0].content) for step in agent]
    assert shown == [(_shown(turn.action), _shown(turn.observation)) for turn in episode.turns]
    assert found.final_metrics.total_prompt_tokens == sum(turn.prompt_tokens for turn in episode.turns)


def _shown(text):
    return "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in text)


numbers = st.floats(allow_nan=False, allow_infinity=False)
evidence = st.dictionaries(
    words, st.dictionaries(words, words | numbers | st.booleans() | st.none(), max_size=2), max_size=2
)


@st.composite
def results(draw):
    size = draw(st.integers(1, 3))

    def each(values):
        return tuple(draw(st.lists(values, min_size=size, max_size=size)))

    verdict = Verdict(
        grader=draw(words),
        outcome=draw(st.sampled_from(VerdictOutcome)),
        tiers=tuple((name,) for name in each(words)),
        reasons=draw(st.dictionaries(words, words, max_size=2)),
        evidence=draw(evidence),
        confidence=draw(st.floats(0, 1)),
        usage=Usage(calls=2, cost_usd=0.5),
        turn_marks={name: {1: "useful"} for name in each(words)},
        record={"raw": draw(words), "n": [1, 2.5, None]},
    )
    return GroupResult(
        group_id=draw(words),
        task_id=draw(words),
        kept=draw(st.booleans()),
        reason=draw(st.sampled_from(["kept", "all_passed", "too_few_valid"])),
        episode_ids=each(words),
        labels=each(words | st.none()),
        passed=each(st.booleans()),
        valid=each(st.booleans()),
        ranks=each(st.none() | st.integers(0, 3)),
        weights=each(floats),
        advantages_before=each(floats),
        advantages=each(floats),
        verdict=draw(st.none() | st.just(verdict)),
        fallback=draw(words),
        tokens=draw(st.none() | st.just((1.0,) * size)),
        turn_advantages=draw(st.none() | st.just(((0.5,),) * size)),
    )


attempts = st.none() | st.integers(0, 9)


@few
@given(results(), attempts)
def test_disk_1_a_group_comes_back_exactly(result, attempt):
    check_group(result, attempt)


@pytest.mark.slow
@many
@given(results(), attempts)
def test_disk_1_any_group_comes_back_exactly(result, attempt):
    check_group(result, attempt)


def check_group(result, attempt):
    line = group_line(result, attempt, "ab")
    found = strict(line)
    record = read_group(json.loads(line), "here")
    assert record.result == result
    assert record.attempt == attempt
    assert found["attempt"] == attempt


def test_disk_1_numbers_that_json_does_not_have():
    odd = TurnTokens(completion=(1, 2), logprobs=(float("nan"), float("-inf")))
    episode = Episode(
        id="e", group_id="g", task_id="t", status="submitted", turns=(Turn(action="a", observation="o", tokens=odd),)
    )
    data = to_atif(episode)
    assert strict(data)["extra"]["gagar"]["turns"][0]["tokens"]["logprobs"] == [None, None]
    nan, low = from_atif(data, "here").turns[0].tokens.logprobs
    assert nan != nan
    assert low == float("-inf")


odd_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, max_examples=60)
@given(statement=words, extra=st.dictionaries(words, odd_values, max_size=3), name=st.binary(min_size=1, max_size=9))
def test_disk_1_any_task_comes_back_exactly(tmp_path_factory, statement, extra, name):
    """With numbers and words that JSON does not have, and a path in bytes that are no text."""
    tree = Path("/nowhere") / (os.fsdecode(name).replace("/", "_").replace("\0", "_"))
    task = Task(
        id="t",
        problem_statement=f"x{statement}",
        repo=RepoSource(kind="tree", path=tree),
        tests=Tests(files=("t.py",), fail_to_pass=("t.py::t",)),
        extra=extra,
    )
    folder = tmp_path_factory.mktemp("tasks")
    StoredTasks(folder).add(task)
    (file,) = folder.glob("*.json")
    strict(file.read_bytes())
    assert StoredTasks(folder).get("t") == task


def test_disk_1_evidence_of_any_kind_beside_a_number_that_json_does_not_have():
    odd = {
        "nan": float("nan"),
        "set": {1},
        "when": date(2024, 1, 1),
        "path": Path("a"),
        "deep": {(1, 2): 3},
        "inf": float("inf"),
    }
    verdict = Verdict(grader="mine", outcome=VerdictOutcome.RANKED, tiers=(("A",),), evidence={"A": odd})
    readable, exact = plain_json(verdict)
    assert strict(readable)["evidence"]["A"]["nan"] is None
    found = read_exact(exact)["evidence"]["A"]
    assert found.pop("nan") != found.get("nan")
    assert found == {"set": [1], "when": "2024-01-01", "path": "a", "deep": {"1,2": 3}, "inf": float("inf")}
