"""Shares of an episode's advantage for its turns: closed forms, a loop as reference, and properties."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.turn_credit import TurnMark, mark_codes, share_out, turn_advantages, turn_weights

needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
BACKENDS = [
    pytest.param((library, dtype), id=f"{library}-{dtype}", marks=marks)
    for library, marks in (("numpy", ()), ("torch", needs_torch))
    for dtype in ("float32", "float64")
]
each_backend = pytest.mark.parametrize("backend", BACKENDS)


def made(backend, values) -> Any:
    library, dtype = backend
    host = np.asarray(values, dtype=dtype)
    return host if library == "numpy" else pytest.importorskip("torch").from_numpy(host.copy())


def holds(**strategies):
    def decorate(test):
        return settings(deadline=None, max_examples=60)(given(**strategies)(test))

    return decorate


@st.composite
def batches(draw):
    """Up to 6 episodes of up to 12 turns each, none at all included, their turns mixed."""
    advantages = draw(st.lists(st.floats(-1e6, 1e6, width=32) | st.sampled_from([0.0, 1e-30]), max_size=6))
    turns = []
    for number in range(len(advantages)):
        marks = draw(st.lists(st.integers(-1, 2), max_size=12))
        turns += [(number, mark, draw(st.integers(0, 5000))) for mark in marks]
    turns = draw(st.permutations(turns))
    episode, mark, tokens = (np.array([t[i] for t in turns], dtype=np.int64) for i in range(3))
    return np.array(advantages, dtype=np.float32), mark, episode, tokens


VALUE = {0: 1.0, 1: -0.5, 2: -1.0, -1: 0.0}
STRENGTH = st.floats(0, 0.999)


def test_closed_form() -> None:
    marks, episode = mark_codes(["useful", "wasted", "harmful"]), np.zeros(3, dtype=int)
    assert turn_advantages([1.0], marks, episode, strength=0.5).tolist() == pytest.approx([18 / 11, 9 / 11, 6 / 11])
    assert turn_advantages([-1.0], marks, episode, strength=0.5).tolist() == pytest.approx(
        [-6 / 13, -15 / 13, -18 / 13]
    )
    by_token = turn_advantages([1.0], marks, episode, strength=0.5, preserve="token", tokens=[2, 0, 1])
    assert by_token.tolist() == pytest.approx([9 / 7, 9 / 14, 3 / 7])
    sparse = turn_advantages([1.0], mark_codes(["useful", None]), np.zeros(2, dtype=int), strength=0.5)
    assert sparse.tolist() == pytest.approx([1.2, 0.8])


def test_marks_have_names() -> None:
    assert mark_codes(list(TurnMark)).tolist() == [0, 1, 2]
    assert mark_codes([None]).tolist() == [-1]
    assert mark_codes([]).tolist() == []
    with pytest.raises(ValueError, match="one of useful, wasted, harmful or None, got 'good'"):
        mark_codes(["useful", "good"])


def test_records_are_shared_out_one_by_one() -> None:
    shared = share_out((1.0, 2.0, -3.0, 4.0), (("useful", None), None, ("harmful",), ()), strength=0.5)
    assert shared == (pytest.approx((1.2, 0.8)), None, (-3.0,), ())
    assert share_out((), ()) == ()
    by_token = share_out((1.0,), (("useful", "wasted"),), preserve="token", tokens=((1, 3),))
    assert by_token[0][0] + 3 * by_token[0][1] == pytest.approx(4)


@each_backend
@holds(batch=batches(), strength=STRENGTH, by_token=st.booleans())
def test_the_sum_of_each_episode_is_kept(backend, batch, strength, by_token) -> None:
    whole, mark, episode, tokens = batch
    options = {"preserve": "token", "tokens": tokens} if by_token else {}
    given_, each = made(backend, whole), np.asarray(tokens, float) if by_token else np.ones(len(mark))
    after = turn_advantages(given_, mark, episode, strength=strength, **options)
    assert str(after.dtype) == str(given_.dtype)
    host = np.asarray(after, dtype=np.float64)
    assert np.isfinite(host).all()
    eps = float(np.finfo(backend[1]).eps)
    for number, advantage in enumerate(whole.astype(float)):
        own = episode == number
        before = math.fsum(each[own] * advantage)
        assert math.fsum(each[own] * host[own]) == pytest.approx(before, rel=8 * eps, abs=1e-34)


@each_backend
@holds(batch=batches(), strength=STRENGTH)
def test_better_marks_never_have_the_lower_advantage_and_no_sign_turns(backend, batch, strength) -> None:
    whole, mark, episode, _ = batch
    after = np.asarray(turn_advantages(made(backend, whole), mark, episode, strength=strength), dtype=np.float64)
    assert (np.sign(after) == np.sign(whole[episode])).all()
    for number in range(len(whole)):
        own = np.flatnonzero(episode == number)
        for i in own:
            for j in own:
                if VALUE[int(mark[i])] > VALUE[int(mark[j])]:
                    assert after[i] >= after[j]
                elif mark[i] == mark[j]:
                    assert after[i] == after[j]


@holds(batch=batches(), strength=STRENGTH)
def test_equal_marks_and_no_marks_change_nothing(batch, strength) -> None:
    whole, mark, episode, _ = batch
    for same in (-1, 0, 1, 2):
        after = turn_advantages(whole, np.full(len(mark), same), episode, strength=strength)
        assert after.tobytes() == whole[episode].tobytes()
    assert turn_advantages(whole, mark, episode, strength=0.0).tobytes() == whole[episode].tobytes()


@holds(batch=batches(), strength=STRENGTH)
def test_no_turn_depends_on_another_episode(batch, strength) -> None:
    whole, mark, episode, tokens = batch
    after = turn_advantages(whole, mark, episode, strength=strength, preserve="token", tokens=tokens)
    for number in range(len(whole)):
        own = episode == number
        alone = turn_advantages(
            whole[[number]],
            mark[own],
            np.zeros(own.sum(), int),
            strength=strength,
            preserve="token",
            tokens=tokens[own],
        )
        np.testing.assert_allclose(after[own], alone, rtol=1e-6)


@holds(batch=batches(), strength=STRENGTH)
def test_weights_have_mean_one_and_equal_a_loop(batch, strength) -> None:
    whole, mark, episode, tokens = batch
    found = turn_weights(mark, episode, whole < 0, strength=strength, tokens=tokens)
    for number in range(len(whole)):
        own = np.flatnonzero(episode == number)
        sign = -1 if whole[number] < 0 else 1
        share = [1 + sign * strength * VALUE[int(mark[i])] for i in own]
        total = math.fsum(int(tokens[i]) for i in own)
        credit = math.fsum(int(tokens[i]) * part for i, part in zip(own, share, strict=True))
        expected = [part * total / credit if total else 1.0 for part in share]
        np.testing.assert_allclose(found[own], expected, rtol=1e-9)
        if total:
            assert math.fsum(found[own] * tokens[own]) / total == pytest.approx(1.0)


def test_hundreds_of_turns_and_extreme_numbers_stay_finite() -> None:
    rng = np.random.default_rng(0)
    mark, episode = rng.integers(0, 3, 1200), np.repeat([0, 1, 2], 400)
    whole = np.array([1e300, -5e-324, 3.0])
    after = turn_advantages(whole, mark, episode, strength=0.999, preserve="token", tokens=rng.integers(0, 2**40, 1200))
    assert np.isfinite(after).all()
    assert (np.sign(after) == np.sign(whole[episode])).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"marks": [3]}, "marks.* must be -1, 0, 1 or 2"),
        ({"marks": [0.5]}, "marks must be integers"),
        ({"episode": [1]}, r"episode\[0\] must be in \[0, 1\)"),
        ({"episode": [-1]}, r"episode\[0\] must be"),
        ({"advantages": [math.inf]}, r"advantages\[0\] must be finite"),
        ({"strength": 1.0}, "strength must be in"),
        ({"preserve": "token"}, "tokens must be given"),
        ({"preserve": "token", "tokens": [-1]}, r"tokens\[0\] must be >= 0"),
        ({"preserve": "sum"}, "preserve must be turn or token"),
    ],
)
def test_wrong_input_is_one_clear_line(arguments, message) -> None:
    good = {"advantages": [1.0], "marks": [0], "episode": [0]}
    with pytest.raises(ValueError, match=message) as caught:
        turn_advantages(**{**good, **arguments})
    assert "\n" not in str(caught.value)
