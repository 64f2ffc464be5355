import json
import math
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.sampling import Curriculum, Sampler, mixed_probability

rates = st.floats(0, 1)
sizes = st.integers(2, 64)


@given(rates, sizes)
@settings(deadline=None)
def test_the_closed_form(p, size):
    mixed = mixed_probability(p, size)
    exact = sum(math.comb(size, k) * p**k * (1 - p) ** (size - k) for k in range(1, size))
    assert mixed == pytest.approx(exact, abs=1e-9)
    assert 0 <= mixed <= mixed_probability(0.5, size) == pytest.approx(1 - 2.0 ** (1 - size))
    assert mixed == pytest.approx(mixed_probability(1 - p, size), abs=1e-12)


@given(st.lists(st.floats(0, 0.5), min_size=2, max_size=20), sizes)
@settings(deadline=None)
def test_it_rises_towards_one_half(values, size):
    values.sort()
    assert np.all(np.diff(mixed_probability(np.array(values), size)) >= -1e-12)


def test_ends_and_faults():
    assert mixed_probability(0, 8) == mixed_probability(1, 8) == mixed_probability(0.3, 1) == 0
    for p, size in ((-0.1, 8), (1.1, 8), (math.nan, 8), (0.5, 0)):
        with pytest.raises(ValueError, match="pass_rate must be"):
            mixed_probability(p, size)


settings_of = st.fixed_dictionaries(
    {
        "group_size": sizes,
        "prior": st.tuples(st.floats(0.1, 20), st.floats(0.1, 20)),
        "half_life": st.none() | st.floats(0.1, 100),
        "optimism": st.floats(0, 3),
        "sharpness": st.floats(0, 8),
        "floor": st.floats(0.001, 1),
    }
)
counts = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 64), st.integers(0, 64)), max_size=30)


@given(settings_of, counts)
@settings(max_examples=50, deadline=None)
def test_weights_are_finite_and_above_the_floor_and_states_go_through_json(settings, counts):
    curriculum = Curriculum(**settings)
    for task_id, passed, failed in counts:
        curriculum.update_counts(task_id, passed=passed, failed=failed)
    for task_id in "abcde":
        assert settings["floor"] <= curriculum.weight(task_id) <= 1
        assert 0 < curriculum.pass_rate(task_id) < 1
    other = Curriculum(**settings)
    other.add(sorted({task_id for task_id, *_ in counts}))
    other.load_state_dict(json.loads(json.dumps(curriculum.state_dict())))
    assert [other.weight(t) for t in "abcde"] == [curriculum.weight(t) for t in "abcde"]
    assert other.state_dict() == curriculum.state_dict()


@given(settings_of, st.integers(1, 64))
@settings(max_examples=50, deadline=None)
def test_of_equal_evidence_weights_rise_towards_one_half(settings, total):
    settings["prior"] = (1.0, 1.0)
    curriculum = Curriculum(**settings)
    for passed in range(total + 1):
        curriculum.update_counts(f"t{passed}", passed=passed, failed=total - passed)
    if settings["half_life"] is not None:
        return
    found = [curriculum.weight(f"t{passed}") for passed in range(total + 1)]
    half = (total + 1) // 2
    assert np.all(np.diff(found[: half + 1]) >= -1e-9)
    assert found == pytest.approx(found[::-1])


def test_unseen_tasks_weigh_most_and_solved_and_impossible_ones_sink_to_the_floor():
    curriculum = Curriculum(half_life=None)
    assert curriculum.weight("unseen") == 1
    assert curriculum.pass_rate("unseen") == 0.5
    seen = []
    for _ in range(30):
        curriculum.update_counts("solved", passed=8, failed=0)
        curriculum.update_counts("hopeless", passed=0, failed=8)
        curriculum.update_counts("mixed", passed=4, failed=4)
        seen.append(curriculum.weight("solved"))
    assert seen == sorted(seen, reverse=True)
    assert curriculum.weight("solved") == curriculum.weight("hopeless") == curriculum.floor
    assert curriculum.weight("mixed") == 1
    assert curriculum.pass_rate("solved") > 0.99


def test_evidence_fades_with_groups_per_task():
    curriculum = Curriculum(half_life=2)
    curriculum.add(["solved", "other"])
    curriculum.update_counts("solved", passed=80, failed=0)
    weight, rate = curriculum.weight("solved"), curriculum.pass_rate("solved")
    for _ in range(4):  # two groups per task
        curriculum.update_counts("other", passed=4, failed=4)
    assert curriculum.pass_rate("solved") == pytest.approx((0.5 + 40) / (1 + 40))
    for _ in range(40):
        curriculum.update_counts("other", passed=4, failed=4)
    assert curriculum.weight("solved") > 0.9 > weight
    assert abs(curriculum.pass_rate("solved") - 0.5) < 0.05 < rate - 0.5


def test_members_without_a_result_count_nowhere(result_of, episodes_of):
    curriculum, plain = Curriculum(), Curriculum()
    curriculum.update(result_of("t", "ppfmexx"))
    plain.update_counts("t", passed=2, failed=1)
    assert curriculum.state_dict() == plain.state_dict()
    curriculum.update(result_of("t", "mxe"))
    curriculum.update([])
    assert curriculum.state_dict() == plain.state_dict()
    curriculum.update(episodes_of("t", "pp"))
    plain.update_counts("t", passed=2, failed=0)
    assert curriculum.state_dict() == plain.state_dict()


@pytest.mark.parametrize(
    "wrong",
    [
        {"group_size": 1},
        {"prior": (0, 1)},
        {"half_life": 0},
        {"optimism": -1},
        {"sharpness": math.inf},
        {"floor": 0},
        {"floor": 1.5},
    ],
)
def test_wrong_settings_are_named(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        Curriculum(**wrong)


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"version": 2},
        {"version": 1, "time": -1, "tasks": {}},
        {"version": 1, "time": 1.0, "tasks": []},
        {"version": 1, "time": 1.0, "tasks": {"t": [1, 2]}},
        {"version": 1, "time": 1.0, "tasks": {"t": [1, 2, 3.0]}},
        {"version": 1, "time": 1.0, "tasks": {"t": [-1, 2, 1.0]}},
    ],
)
def test_a_wrong_state_changes_nothing(state):
    curriculum = Curriculum()
    curriculum.update_counts("t", passed=3, failed=1)
    before = curriculum.state_dict()
    with pytest.raises(ValueError, match="state of a curriculum"):
        curriculum.load_state_dict(state)
    assert curriculum.state_dict() == before


def test_wrong_counts_are_named():
    with pytest.raises(ValueError, match="failed of t must be 0 or more"):
        Curriculum().update_counts("t", passed=1, failed=-1)


def test_many_threads_lose_no_count():
    curriculum = Curriculum(half_life=None)

    def work():
        for number in range(200):
            curriculum.update_counts(f"t{number % 7}", passed=1, failed=0)
            curriculum.weight("t3")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(row[0] for row in curriculum.state_dict()["tasks"].values()) == 1600


def mixed_groups(tasks, curriculum, seed, groups=1200, size=8):
    """Kept groups of a policy that climbs a ladder of tasks: from none to most of them."""
    sampler = Sampler(tasks, seed=seed, curriculum=curriculum)
    level = dict(zip([t.id for t in tasks], np.random.default_rng(5).normal(2, 4, len(tasks)), strict=True))
    chance, kept = np.random.default_rng(seed), 0
    seen = dict.fromkeys(level, 0)
    for number in range(groups):
        task_id = next(sampler).task.id
        seen[task_id] += 1
        passed = int(chance.binomial(size, 1 / (1 + np.exp(level[task_id] - 6 * number / groups))))
        kept += 0 < passed < size
        if curriculum is not None:
            curriculum.update_counts(task_id, passed=passed, failed=size - passed)
    return kept, min(seen.values())


@pytest.mark.parametrize("seed", range(2))
def test_a_curriculum_gives_more_mixed_groups_than_uniform_draws(tasks_of, seed):
    tasks = tasks_of(120)
    uniform, _ = mixed_groups(tasks, None, seed)
    favoured, least = mixed_groups(tasks, Curriculum(), seed)
    assert favoured > 1.3 * uniform
    assert least >= 2
