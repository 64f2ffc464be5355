"""A worker grades as one machine does, and a group that no node could grade is no group without its ranking."""

import pickle
import queue

import pytest

from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport
from gagar_env.group_engine import grade_job
from gagar_env.jobs import GroupJob
from gagar_env.scheduling import Bounds

pytest.importorskip("ray")


@pytest.fixture
def members():
    def members(task, *outcomes):
        common = {"group_id": "g", "task_id": task.id, "status": EpisodeStatus.SUBMITTED}
        return tuple(Episode(id=str(n), report=TestReport(outcome=o), **common) for n, o in enumerate(outcomes))

    return members


def test_dist_2_a_job_keeps_its_seed_whatever_else_is_said_of_grading(tiny_task, best_kind, members):
    from ray_policies import FIX, Scripted

    from gagar_env.integrations.ray_setup import Setup
    from gagar_env.integrations.ray_worker import Worker

    grading = {"seed": 5, "base": "rloo"}
    setup = Setup(
        policy=Scripted([FIX]),
        policy_factory=None,
        grader=None,
        grader_factory=None,
        verifications=None,
        flag_policy="flag",
        grading=grading,
        env_kwargs={"sandbox": best_kind},
    )
    job, episodes = GroupJob(3, tiny_task, seed=70), members(tiny_task, Outcome.PASSED, Outcome.FAILED)
    worker = Worker(pickle.dumps(setup), 1)
    try:
        assert not worker.ready().fault
        graded = worker.grade(job, list(episodes))
    finally:
        worker.stop()
    assert graded.result == grade_job(job, episodes, None, grading).result
    assert (graded.result.seed, graded.result.base) == (70, "rloo")


@pytest.mark.parametrize(
    ("ranks", "outcomes", "fallback"),
    [
        (True, (Outcome.PASSED, Outcome.FAILED), "every node died"),
        (True, (Outcome.FAILED, Outcome.FAILED), ""),
        (False, (Outcome.PASSED, Outcome.FAILED), ""),
    ],
)
def test_dist_2_only_a_kept_group_of_a_run_with_a_grader_lacks_its_ranking(
    tiny_task, members, ranks, outcomes, fallback
):
    from gagar_env.integrations.ray_run import Run, _Held

    done = queue.SimpleQueue()
    run = Run(Bounds(group_size=2), grading={}, ranks=ranks, on_episode=None, post=print, down=print, done=done)
    run._held[0] = _Held(GroupJob(9, tiny_task, seed=1), "g", None, list(members(tiny_task, *outcomes)))
    run._plain(0, "every node died")
    batch = done.get_nowait().what
    assert (batch.attempt, batch.result.fallback) == (9, fallback)
    run.end()
    run.end()  # as `close` and then the loop that it ended do
