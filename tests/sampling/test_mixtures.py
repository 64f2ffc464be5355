import logging

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.errors import TaskError, UnknownTaskError
from gagar_env.sampling import GymTask, Mixture
from gagar_env.sampling.mixture import as_mixture


def test_shares_are_of_sources_or_of_tasks(tasks_of):
    sources = {"a": tasks_of(6), "b": tasks_of(2, "u")}
    assert Mixture(sources).shares == {"a": 0.5, "b": 0.5}
    assert Mixture(sources, {"a": 3}).shares == {"a": 0.75, "b": 0.25}
    assert Mixture(sources, by="task").shares == {"a": 0.75, "b": 0.25}
    assert Mixture(sources, {"b": 3}, by="task").shares == {"a": 0.5, "b": 0.5}


def test_weights_at_the_end_of_the_range(tasks_of):
    sources = {"a": tasks_of(3), "b": tasks_of(2, "u")}
    assert Mixture(sources, {"a": 1e308, "b": 1e308}).shares == {"a": 0.5, "b": 0.5}
    assert Mixture(sources, {"a": 5e-324, "b": 5e-324}, by="task").shares == {"a": 0.6, "b": 0.4}


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=9), st.sampled_from(["source", "task"]))
@settings(max_examples=40, deadline=None)
def test_shares_sum_to_one_and_keep_their_proportions(tasks_of, weights, by):
    names = [f"s{number}" for number in range(len(weights))]
    sources = {name: tasks_of(number + 1) for number, name in enumerate(names)}
    shares = Mixture(sources, dict(zip(names, weights, strict=True)), by=by).shares
    assert sum(shares.values()) == pytest.approx(1)
    size = [len(source) if by == "task" else 1 for source in sources.values()]
    for name, weight, count in zip(names, weights, size, strict=True):
        assert shares[name] * weights[0] * size[0] == pytest.approx(shares["s0"] * weight * count)


def test_sources_are_sets_tasks_environments_and_mixtures(tasks_of):
    cart = GymTask("CartPole-v1", policy=lambda space, seed: lambda seen: 0, success=475)
    inner = Mixture({"x": tasks_of(2), "y": tasks_of(3, "u")}, {"x": 2})
    mixture = Mixture(
        {"set": "gagar/builtin", "one": ["ledger-rounding"], "in": inner, "map": {"z": tasks_of(1)}, "gym": [cart]}
    )
    assert len(mixture) == len(list(mixture)) == len(mixture.sources["set"]) + 1 + 5 + 1 + 1
    assert "ledger-rounding" in {task.id for task in mixture.sources["set"]}
    assert cart in list(mixture)
    assert "in 0.2" in repr(mixture)
    assert as_mixture(mixture) is mixture
    assert list(as_mixture(tasks_of(2)).sources) == ["tasks"]
    assert len(as_mixture("gagar/builtin")) == len(mixture.sources["set"])


@pytest.mark.parametrize(
    ("sources", "arguments", "says"),
    [
        ({}, {}, "at least one source"),
        ({"a": []}, {}, "source 'a' has no task"),
        ({"a/b": "ledger-rounding"}, {}, "without '/'"),
        ({"a": [3]}, {}, "holds a int: neither a task nor a name"),
        ({"a": ["ledger-rounding"]}, {"by": "size"}, "by must be"),
        ({"a": ["ledger-rounding"]}, {"weights": {"b": 1}}, "weights names 'b', which is no source"),
        ({"a": ["ledger-rounding"]}, {"weights": {"a": 0}}, "a must be finite and above 0, got 0"),
        ({"a": ["ledger-rounding"]}, {"weights": {"a": float("nan")}}, "finite and above 0"),
        ({"a": ["ledger-rounding"]}, {"task_weights": {"x": 2}}, "task_weights names 'x', which is no task"),
    ],
)
def test_what_is_wrong_is_named(sources, arguments, says):
    with pytest.raises(ValueError, match=says):
        Mixture(sources, **arguments)


def test_a_task_alone_and_an_unknown_name_are_refused(task_named):
    with pytest.raises(ValueError, match="must be a list of tasks, not one Task"):
        Mixture({"a": task_named("t")})
    with pytest.raises(UnknownTaskError, match="ledger-rouding"):
        Mixture({"a": ["ledger-rouding"]})


def test_a_task_that_is_there_twice_counts_once(task_named, caplog):
    with caplog.at_level(logging.WARNING):
        assert len(Mixture({"a": [task_named("t"), task_named("t")]})) == 1
    assert "source 'a': task t is in it twice" in caplog.text
    caplog.clear()
    assert len(Mixture({"a": [task for _ in range(2) for task in (task_named(n) for n in "abcde")]})) == 5
    assert len(caplog.messages) == 1
    assert caplog.messages[0].endswith("counts once, as are 4 more")
    with pytest.raises(TaskError, match="two different tasks have the id 't'"):
        Mixture({"a": [task_named("t"), task_named("t", title="other")]})


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"env": gym.Env}, ValueError, "needs an `id`"),
        ({"policy": None}, TypeError, "CartPole-v1: policy must be a function"),
        ({"success": float("nan")}, ValueError, "success must be a finite return"),
        ({"group_size": 1}, ValueError, "group_size must be 2 or more"),
        ({"max_steps": 0}, ValueError, "max_steps must be 1 or more"),
        ({"at_once": 0}, ValueError, "at_once must be 1 or more"),
        ({"scale": 0}, ValueError, "scale must be finite and above 0"),
    ],
)
def test_a_wrong_gym_task_is_named(arguments, error, says):
    good = {"env": "CartPole-v1", "policy": lambda space, seed: lambda seen: 0, "success": 1}
    with pytest.raises(error, match=says):
        GymTask(**{**good, **arguments})
