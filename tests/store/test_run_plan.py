"""Which groups are left: a run that was stopped anywhere goes on with the groups that it would have had."""

import random

import pytest

from gagar_env.advantages import KeepReason
from gagar_env.cli.resuming import stored
from gagar_env.cli.runplan import DONE, Done, curriculum_plan, plain_plan
from gagar_env.errors import GagarError
from gagar_env.group_result import GroupResult
from gagar_env.jobs import group_seed
from gagar_env.store import FailureRecord
from gagar_env.tasks.task import RepoSource, Task, Tests

TASKS = [
    Task(
        id=f"t{number}",
        problem_statement="x",
        repo=RepoSource(kind="tree"),
        tests=Tests(files=("t.py",), fail_to_pass=("t.py::t",)),
    )
    for number in range(4)
]
BROKEN = "t3"


def result_of(job):
    """What a job comes to: a function of its task and seed."""
    chance = random.Random(f"{job.task.id} {job.seed}")
    passed = tuple(chance.random() < int(job.task.id[1]) / 3 for _ in range(4))
    return GroupResult(
        group_id=job.group_id,
        task_id=job.task.id,
        kept=0 < sum(passed) < 4,
        reason=KeepReason.KEPT if 0 < sum(passed) < 4 else KeepReason.ALL_PASSED,
        episode_ids=tuple(f"{job.group_id}-{place}" for place in range(4)),
        labels=(None,) * 4,
        passed=passed,
        valid=(True,) * 4,
        ranks=(None,) * 4,
        weights=(1.0,) * 4,
        advantages_before=(0.0,) * 4,
        advantages=(0.0,) * 4,
    )


def work(make, done=DONE, *, order=None, stop=None, at_once=1, count=40):
    """Run a plan; the jobs that were run, with what became of them, and what was skipped."""
    plan = make(TASKS, count=count, group_size=4, seed=7, at_once=at_once, run_id="r", done=done)
    jobs, results, failures = [], {}, {}
    for wave in plan:
        ready = []
        for job in wave:
            jobs.append((job.number, job.task.id, job.seed, job.group_id))
            ready.append(job)
            if make is plain_plan:
                end(plan, ready.pop(), results, failures)
        for job in sorted(ready, key=lambda job: (order or random.Random(0)).random()):
            if stop is not None and len(results) + len(failures) >= stop:
                return jobs, results, failures, plan.skipped
            end(plan, job, results, failures)
    return jobs, results, failures, plan.skipped


def end(plan, job, results, failures):
    if job.task.id == BROKEN:
        plan.failed(job.number, BROKEN, "broken")
        failures[job.number] = FailureRecord(attempt=job.number, task_id=BROKEN, error="broken")
    else:
        results[job.number] = result_of(job)
        plan.ended(job.number, results[job.number])


def test_round_robin_skips_what_is_there_and_tries_what_failed_again():
    jobs, results, failures, skipped = work(plain_plan)
    assert [job[:3] for job in jobs if job[1] != BROKEN] == [
        (number, f"t{number % 4}", group_seed(7, number)) for number in range(40) if number % 4 != 3
    ]
    assert list(failures) == [3]
    assert [number for number, _ in skipped] == list(range(7, 40, 4))
    for seed in range(5):
        some = set(random.Random(seed).sample(sorted(results), 17))
        done = Done(groups={n: results[n] for n in some}, failures=failures)
        again, more, _, left = work(plain_plan, done)
        assert {**more, **done.groups} == results
        assert not some & {number for number, *_ in again}
        assert [number for number, _ in left] == [number for number, _ in skipped]


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_curriculum_draws_the_same_whatever_was_faster_and_wherever_it_was_stopped(at_once):
    jobs, results, failures, _ = work(curriculum_plan, at_once=at_once)
    assert len({task for _, task, *_ in jobs}) == 4
    assert [job[0] for job in jobs] == list(range(40))
    assert work(curriculum_plan, at_once=at_once, order=random.Random(5))[0] == jobs
    for stop in (0, 1, 11, 20, 39, 40):
        first, some, failed, _ = work(curriculum_plan, at_once=at_once, order=random.Random(stop), stop=stop)
        assert len(some) + len(failed) == stop
        again, more, broken, _ = work(curriculum_plan, Done(groups=some, failures=failed), at_once=at_once)
        assert {**some, **more} == results
        assert {**failed, **broken} == failures
        assert not {number for number, *_ in again} & (some.keys() | failed.keys())
        assert first == jobs[: len(first)]


def test_a_curriculum_does_not_go_on_with_what_it_would_not_have_drawn():
    _, results, failures, _ = work(curriculum_plan)
    number = next(iter(results))
    other = {**results, number: results[number].model_copy(update={"task_id": "other"})}
    with pytest.raises(GagarError, match="cannot be gone on with"):
        work(curriculum_plan, Done(groups=other, failures=failures))


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("http://me:secret@host:80/v1?a@b", "http://host:80/v1?a@b"),
        ("http://me:s@cret@[::1]/", "http://[::1]/"),
        ("http://[me:secret@host", "http://host"),
        ("http://host/a@b", "http://host/a@b"),
        ("module:Name", "module:Name"),
    ],
)
def test_what_is_kept_of_options_has_no_passwords(said, kept):
    assert stored({"model_url": said, "out": "x"})["model_url"] == kept


def test_runs_of_other_seeds_have_other_members():
    members = [group_seed(seed, number) + place for seed in range(20) for number in range(50) for place in range(16)]
    assert len(set(members)) == len(members)
