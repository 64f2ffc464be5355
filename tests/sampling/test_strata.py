import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.sampling.strata import Strata, check_strata_state, uniform

weights = st.lists(st.floats(0.01, 100), min_size=2, max_size=12)


def names_of(count):
    return [f"n{number}" for number in range(count)]


@given(weights, st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_shares_hold_at_any_time(weights, seed):
    given, n = np.array(weights), len(weights)
    share = given / given.sum()
    strata, drawn = Strata(names_of(n), salt=str(seed)), np.zeros(n)
    for total in range(1, 200):
        drawn[strata.draw(given)] += 1
        assert np.all(np.abs(drawn - total * share) <= 1 + share * (n - 2) + 1e-9)


@given(st.integers(2, 20), st.integers(0, 99))
@settings(max_examples=20, deadline=None)
def test_equal_weights_give_permutations(n, seed):
    strata = Strata(names_of(n), salt=str(seed))
    epochs = [[strata.draw(np.ones(n)) for _ in range(n)] for _ in range(4)]
    assert all(sorted(epoch) == list(range(n)) for epoch in epochs)
    if n > 8:
        assert len({tuple(epoch) for epoch in epochs}) == 4


@given(weights, st.integers(0, 50))
@settings(max_examples=20, deadline=None)
def test_the_order_of_names_plays_no_role(weights, turn):
    names, given = names_of(len(weights)), np.array(weights)
    turned = [*names[turn % len(names) :], *names[: turn % len(names)]]
    one, other = Strata(names, salt="s"), Strata(turned, salt="s")
    moved = np.array([given[names.index(name)] for name in turned])
    for _ in range(100):
        assert names[one.draw(given)] == turned[other.draw(moved)]


@given(st.lists(st.floats(0.05, 1), min_size=2, max_size=10), st.integers(0, 999))
@settings(max_examples=20, deadline=None)
def test_none_is_starved_while_weights_change(floor, seed):
    n, least = len(floor), min(floor)
    strata, last, chance = Strata(names_of(n), salt="s"), np.zeros(n), np.random.default_rng(seed)
    for step in range(1, 400):
        last[strata.draw(chance.uniform(least, 1, n))] = step
        assert np.all(step - last <= (2 / least + 1) * n)


def test_weight_zero_is_never_drawn_and_keeps_what_it_waited_for():
    strata = Strata(names_of(3), salt="s")
    drawn = Counter(strata.draw(np.array([1.0, 0.0, 2.0])) for _ in range(300))
    assert drawn[1] == 0
    assert abs(drawn[2] - 200) <= 2


@given(weights, st.integers(0, 60))
@settings(max_examples=20, deadline=None)
def test_a_state_goes_through_json(weights, steps):
    given = np.array(weights)
    strata = Strata(names_of(len(weights)), salt="s")
    for _ in range(steps):
        strata.draw(given)
    state = json.loads(json.dumps(strata.state_dict()))
    check_strata_state(state, "here")
    other = Strata(names_of(len(weights)), salt="s")
    other.load_state_dict(state)
    assert [strata.draw(given) for _ in range(50)] == [other.draw(given) for _ in range(50)]


@pytest.mark.parametrize(
    "state", [3, {"a": 1}, {"a": [1]}, {"a": [1, -1.0]}, {"a": [0.5, 1]}, {"a": [1, "x"]}, {"a": [1, float("nan")]}]
)
def test_what_is_no_state_is_refused(state):
    with pytest.raises(ValueError, match="here"):
        check_strata_state(state, "here")


def test_uniform_is_the_same_everywhere():
    assert uniform("a", "b") != uniform("ab", "") != uniform("", "ab")
    assert uniform("split 0", "flask") == 0.9554953424910868
    found = [uniform("x", str(number)) for number in range(4000)]
    assert all(0 <= value < 1 for value in found)
    assert np.abs(np.histogram(found, bins=10)[0] - 400).max() < 80


def test_only_proportions_count_at_the_ends_of_the_range():
    wanted = [Strata("abc", salt="s").draw(np.ones(3))]
    for size in (5e-324, 1e-310, 1e308):
        assert [Strata("abc", salt="s").draw(np.full(3, size))] == wanted
    strata = Strata("abc", salt="s")
    drawn = Counter(strata.draw(np.full(3, 5e-324)) for _ in range(30))
    assert drawn == {0: 10, 1: 10, 2: 10}
