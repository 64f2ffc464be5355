import itertools
import json
import threading
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gagar_env.errors import TaskError
from gagar_env.sampling import Curriculum, GymTask, Mixture, Sampler

CART = GymTask("CartPole-v1", policy=lambda space, seed: lambda seen: 0, success=475)


def drawn(sampler, count):
    return [(d.number, d.source, d.task.id, d.seed) for d in itertools.islice(sampler, count)]


def play(sampler, count, feed=None):
    """Draws of a sampler that is told of scripted results; a result depends on the draw alone."""
    found = []
    for draw in itertools.islice(sampler, count):
        found.append((draw.number, draw.source, draw.task.id, draw.seed))
        if sampler.curriculum is not None and draw.task is not CART:
            (feed or sampler.curriculum).update_counts(draw.task.id, passed=draw.seed % 9, failed=8 - draw.seed % 9)
    return found


@pytest.fixture
def nested(tasks_of):
    code = Mixture({"easy": tasks_of(5), "hard": tasks_of(3, "h")}, {"easy": 2})
    return Mixture({"code": code, "gym": [CART]}, {"code": 3})


def test_shares_of_nested_sources_hold_at_any_time(nested):
    counts = Counter()
    for total, draw in enumerate(itertools.islice(Sampler(nested), 400), 1):
        counts[draw.source] += 1
        for source, share in {"gym": 0.25, "code/easy": 0.5, "code/hard": 0.25}.items():
            assert abs(counts[source] - share * total) <= 2
    assert draw.number == 399


def test_each_task_comes_once_in_an_epoch_of_its_source(tasks_of):
    sampler = Sampler({"a": tasks_of(7), "b": tasks_of(3, "u")}, seed=4)
    of = {"a": [], "b": []}
    for _, source, task_id, _ in drawn(sampler, 210):
        of[source].append(task_id)
    for source, size in (("a", 7), ("b", 3)):
        for start in range(0, 105 - size, size):
            assert len(set(of[source][start : start + size])) == size
    assert of["a"][:7] != of["a"][7:14]


def test_weights_of_tasks(tasks_of):
    sampler = Sampler(Mixture({"a": tasks_of(4)}, task_weights={"t0": 5}))
    counts = Counter(task_id for _, _, task_id, _ in drawn(sampler, 800))
    assert abs(counts["t0"] - 500) <= 3
    assert all(abs(counts[f"t{n}"] - 100) <= 3 for n in (1, 2, 3))


def test_draws_depend_on_the_seed_and_not_on_the_order_of_tasks(tasks_of):
    tasks = tasks_of(9)
    assert drawn(Sampler(tasks), 40) == drawn(Sampler(tasks[::-1]), 40)
    assert drawn(Sampler(tasks, seed=1), 40) != drawn(Sampler(tasks), 40)
    seeds = [seed for *_, seed in drawn(Sampler(tasks), 1000)]
    assert len(set(seeds)) == 1000
    assert all(0 <= seed < 2**31 for seed in seeds)


@given(st.integers(0, 60), st.integers(1, 60), st.booleans(), st.integers(0, 5), st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_a_stop_changes_nothing(tasks_of, before, after, measured, seed, world):
    mixture = Mixture({"code": {"a": tasks_of(5), "b": tasks_of(2, "u")}, "gym": [CART]}, {"code": 2})

    def make():
        curriculum = Curriculum() if measured else None
        return Sampler(mixture, seed=seed, curriculum=curriculum, rank=world - 1, world_size=world)

    whole = make()
    play(whole, before)
    state = json.loads(json.dumps(whole.state_dict()))
    resumed = make()
    assert resumed.load_state_dict(state) == []
    assert resumed.state_dict() == whole.state_dict()
    assert play(resumed, after) == play(whole, after)
    assert resumed.state_dict() == whole.state_dict()


@pytest.mark.parametrize("world", [1, 2, 5])
def test_workers_share_one_sequence(nested, world):
    alone = drawn(Sampler(nested, seed=2), 60)
    parts = [drawn(Sampler(nested, seed=2, rank=r, world_size=world), 60 // world) for r in range(world)]
    assert sorted(itertools.chain(*parts)) == alone
    assert all(number % world == rank for rank, part in enumerate(parts) for number, *_ in part)


def test_workers_that_hear_of_all_results_agree_with_a_curriculum(tasks_of):
    workers = [Sampler(tasks_of(6), curriculum=Curriculum(), rank=r, world_size=3) for r in range(3)]
    for _ in range(30):
        draws = [next(worker) for worker in workers]
        for worker in workers:
            for draw in draws:
                worker.curriculum.update_counts(draw.task.id, passed=draw.seed % 9, failed=8 - draw.seed % 9)
    assert workers[0].state_dict() == workers[1].state_dict() == workers[2].state_dict()


def test_another_number_of_workers_goes_on_from_the_state_of_any(nested):
    many = [Sampler(nested, rank=r, world_size=4) for r in range(4)]
    for worker in many:
        drawn(worker, 5)
    assert len({json.dumps(worker.state_dict()) for worker in many}) == 1
    alone, whole = Sampler(nested), Sampler(nested)
    alone.load_state_dict(many[3].state_dict())
    drawn(whole, 20)
    assert drawn(alone, 30) == drawn(whole, 30)


def test_changed_tasks_are_said_and_the_others_go_on(tasks_of, caplog):
    old = Sampler({"a": tasks_of(6), "b": tasks_of(2, "u")}, curriculum=Curriculum())
    play(old, 40)
    state = old.state_dict()
    now = Sampler({"a": tasks_of(9)[2:], "c": tasks_of(1, "w")}, curriculum=Curriculum())
    notes = now.load_state_dict(state)
    assert notes == [
        "the mixture: 1 source new (c)",
        "the mixture: 1 source gone (b)",
        "source 'a': 3 tasks new (t6, t7, t8)",
        "source 'a': 2 tasks gone (t0, t1)",
        "source 'c' is new",
        "source 'b' is gone",
    ]
    assert all(note in caplog.text for note in notes)
    assert now.curriculum.pass_rate("t3") == old.curriculum.pass_rate("t3") != 0.5
    assert now.curriculum.pass_rate("u1") == old.curriculum.pass_rate("u1")
    found = play(now, 60)
    assert found[0][0] == 40
    assert {task_id for _, _, task_id, _ in found} == {*(f"t{n}" for n in range(2, 9)), "w0"}


def test_a_curriculum_that_comes_or_goes_is_said(tasks_of):
    plain, measured = Sampler(tasks_of(2)), Sampler(tasks_of(2), curriculum=Curriculum())
    assert "no pass rates" in measured.load_state_dict(plain.state_dict())[0]
    assert "no curriculum" in plain.load_state_dict(measured.state_dict())[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 9}, "version must be 1, got 9"),
        ({"seed": 5}, "made with seed 5, not 0"),
        ({"drawn": -1}, "`drawn` must be a count"),
        ({"strata": {"": {"a": [1]}}}, "strata '': a: must be"),
        ({"curriculum": {"version": 3}}, "state of a curriculum"),
    ],
)
def test_a_wrong_state_changes_nothing(tasks_of, change, says):
    sampler = Sampler(tasks_of(3), curriculum=Curriculum())
    play(sampler, 7)
    before = sampler.state_dict()
    with pytest.raises(ValueError, match=says):
        sampler.load_state_dict({**before, **change})
    assert sampler.state_dict() == before
    with pytest.raises(ValueError, match="version must be"):
        sampler.load_state_dict([])


def test_a_curriculum_weighs_within_a_source_and_leaves_shares_alone(tasks_of, result_of):
    sampler = Sampler({"a": tasks_of(4), "b": tasks_of(2, "u"), "gym": [CART]}, curriculum=Curriculum())
    for _ in range(40):
        for task_id in ("t0", "t1", "t2", "u0"):
            sampler.update(result_of(task_id, "pppppppp"))
        sampler.update(result_of("t3", "ppppffff"))
    before = sampler.state_dict()["curriculum"]
    sampler.update(result_of("CartPole-v1", "ffff"))
    sampler.update([])
    assert sampler.state_dict()["curriculum"] == before
    counts = Counter((source, task_id) for _, source, task_id, _ in drawn(sampler, 600))
    shares = Counter(itertools.chain.from_iterable([s] * n for (s, _), n in counts.items()))
    assert all(abs(shares[source] - 200) <= 2 for source in ("a", "b", "gym"))
    assert counts["a", "t3"] > 5 * counts["a", "t0"] > 0
    assert counts["b", "u1"] > 5 * counts["b", "u0"] > 0


def test_a_task_that_is_left_out_is_drawn_no_more(nested):
    sampler = Sampler(nested)
    for number in range(5):
        sampler.leave_out(f"t{number}", "broken")
    counts = Counter(source for _, source, _, _ in drawn(sampler, 100))
    assert set(counts) == {"code/hard", "gym"}
    assert abs(counts["gym"] - 25) <= 2
    assert sampler.left_out["t3"] == "broken"
    for task_id in ("h0", "h1", "h2", "CartPole-v1"):
        sampler.leave_out(task_id, "broken")
    with pytest.raises(TaskError, match="no task is left"):
        next(sampler)


def test_threads_get_every_number_once(tasks_of):
    sampler, found = Sampler(tasks_of(5)), []
    threads = [threading.Thread(target=lambda: found.extend(drawn(sampler, 100))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == drawn(Sampler(tasks_of(5)), 600)


@pytest.mark.parametrize("wrong", [{"seed": -1}, {"world_size": 0}, {"rank": 2, "world_size": 2}, {"rank": -1}])
def test_wrong_numbers_are_named(tasks_of, wrong):
    with pytest.raises(ValueError, match="a sampler needs seed >= 0"):
        Sampler(tasks_of(2), **wrong)
