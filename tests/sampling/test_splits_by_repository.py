import logging
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.sampling import folds, held_out, repository_of
from gagar_env.sampling.splits import _position
from gagar_env.tasks.registry import load_tasks
from gagar_env.tasks.task import RepoSource


def source(kind="git", path="", url=""):
    return RepoSource(kind=kind, path=Path(path), url=url)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"extra": {"repo": "pallets/flask"}}, "pallets/flask"),
        ({"extra": {"REPO": "Pallets/Flask"}}, "pallets/flask"),
        ({"extra": {"repo_name": "flask"}}, "flask"),
        ({"extra": {"repo": "swesmith/oauthlib__oauthlib.1fd52536"}}, "oauthlib/oauthlib"),
        ({"extra": {"repo": "pallets__flask"}}, "pallets/flask"),
        ({"extra": {"repo": " "}, "tags": ("swe-bench", "pallets/flask")}, "pallets/flask"),
        ({"extra": {"repo": 3}, "id": "pallets__flask-4992"}, "pallets/flask"),
        ({"id": "oauthlib__oauthlib.1fd52536.combine_file__09vlzwgc"}, "oauthlib/oauthlib"),
        ({"id": "gagar/pallets__flask-4992"}, "pallets/flask"),
        ({"repo": source(url="https://git.example/pallets/flask.git")}, "pallets/flask"),
        ({"repo": source(url="git@git.example:pallets/flask.git")}, "pallets/flask"),
        ({"repo": source(url="ssh://git@git.example:22/pallets/flask/")}, "pallets/flask"),
        ({"repo": source(url="git.example/pallets/flask")}, "pallets/flask"),
        ({"repo": source("archive", url="https://files.example/a/b/flask-2.3.1.tar.gz#x")}, "flask"),
        ({"repo": source("archive", url="https://git.example/pallets/flask/archive/0a1b2c.tar.gz")}, "pallets/flask"),
        ({"repo": source(path="/some/where/flask.git")}, "flask"),
        ({"repo": source(path="/some/where/pallets__flask")}, "pallets/flask"),
        ({"repo": source("archive", "/some/where/marshmallow-3.13.0.tar.gz")}, "marshmallow"),
        ({"repo": source("archive", "/some/where/typing_extensions-4.1.0.zip")}, "typing_extensions"),
        ({"repo": source("tree", "/some/where/repo"), "id": "Mine"}, "mine"),
        ({"extra": {"library": "attrs"}, "repo": source("archive", "/cache/0a1b.tar.gz")}, "attrs"),
    ],
)
def test_the_repository_of_a_task(task_named, fields, name):
    assert repository_of(task_named(**{"name": fields.pop("id", "some-task"), **fields})) == name


def test_built_in_tasks_are_repositories_of_their_own():
    tasks = load_tasks("gagar/builtin")
    assert len({repository_of(task) for task in tasks}) == len(tasks)


@pytest.mark.parametrize(
    "other",
    [
        {"extra": {"repo": "someone/scikit-learn"}},
        {"extra": {"repo": "swesmith/scikit-learn__scikit-learn.0123abcd"}},
        {"extra": {"repo": "Scikit_Learn"}},
        {"repo": source(url="https://git.example/fork/scikit-learn.git")},
        {"repo": source("archive", "/cache/scikit_learn-1.0.2.tar.gz")},
    ],
)
def test_forks_mirrors_and_releases_stay_together(task_named, other):
    original = task_named("a", extra={"repo": "scikit-learn/scikit-learn"})
    for seed in range(20):
        assert _position(original, seed, None) == _position(task_named("b", **other), seed, None)


def test_a_renamed_repository_can_be_named(task_named):
    old, new = (task_named(n, extra={"repo": r}) for n, r in (("a", "x/old"), ("b", "x/new")))
    same = {"x/old": "x/new"}
    assert all(_position(old, s, same) == _position(new, s, same) for s in range(9))
    assert any(_position(old, s, None) != _position(new, s, None) for s in range(9))


def many(task_named, repositories, each=3):
    return [
        task_named(f"r{number}-{k}", extra={"repo": f"o{number % 17}/r{number}"})
        for number in range(repositories)
        for k in range(each)
    ]


@pytest.mark.parametrize("fraction", [0.1, 0.3, 0.5])
def test_no_repository_is_on_both_sides_and_the_fraction_is_near(task_named, fraction):
    tasks = many(task_named, 400)
    split = held_out(tasks, fraction=fraction, seed=3)
    assert not {repository_of(t) for t in split.train} & {repository_of(t) for t in split.test}
    assert sorted(t.id for t in (*split.train, *split.test)) == sorted(t.id for t in tasks)
    assert abs(split.test_share - fraction) < 0.06
    assert held_out(reversed(tasks), fraction=fraction, seed=3).test == split.test[::-1]
    assert held_out(tasks, fraction=fraction, seed=4).test != split.test


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_adding_tasks_never_moves_an_old_one(task_named, few, more, seed):
    def of(count):
        return [task_named(f"t{n}", extra={"repo": f"o/r{n % 40}"}) for n in range(count)]

    before, after = held_out(of(few), fraction=0.3, seed=seed), held_out(of(few + more), fraction=0.3, seed=seed)
    assert {t.id for t in before.test} <= {t.id for t in after.test}
    assert {t.id for t in before.train} <= {t.id for t in after.train}


def test_folds_hold_out_each_repository_once(task_named):
    tasks = many(task_named, 200)
    found = folds(tasks, 4, seed=1)
    assert sorted(t.id for split in found for t in split.test) == sorted(t.id for t in tasks)
    for split in found:
        assert not {repository_of(t) for t in split.train} & {repository_of(t) for t in split.test}
        assert 0.15 < split.test_share < 0.35
    with pytest.raises(ValueError, match="k must be 2"):
        folds(tasks, 1)


def test_ends_and_an_empty_side(task_named, caplog):
    tasks = many(task_named, 2)
    assert held_out(tasks, fraction=0).test == held_out(tasks, fraction=1).train == ()
    assert held_out([], fraction=0.5).test_share == 0
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        held_out(tasks, fraction=1e-9)
    assert "held-out side is empty: 2 repositories are few" in caplog.text
    with pytest.raises(ValueError, match="fraction must be in"):
        held_out(tasks, fraction=1.1)
