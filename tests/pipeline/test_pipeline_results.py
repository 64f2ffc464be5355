"""What a job gives: the same as without a pipeline, and what is told of the rest."""

import pickle
import random
import threading

import pytest
from chat_server import text
from pipelines import FIX, MIXED, First, Scripted

from gagar_env.agents.policies import ChatPolicy
from gagar_env.episode import Episode, TestReport
from gagar_env.errors import GagarError, TaskError
from gagar_env.group import grade_group
from gagar_env.group_engine import grade_job
from gagar_env.jobs import GroupJob
from gagar_env.pipeline import Pipeline
from gagar_env.rollout import run_group
from gagar_env.tasks.task import RepoSource


def seen(result, episodes):
    """All of a group that is not new with each run: ids and times are."""
    members = [(e.task_id, e.status, e.patch, e.seed, e.error, [t.action for t in e.turns]) for e in episodes]
    drop = {"group_id", "episode_ids", "seconds", "verdict"}
    verdict = result.verdict and result.verdict.model_dump(exclude={"usage", "record"})
    return members, result.model_dump(exclude=drop), verdict


@pytest.fixture
def broken_task(tiny_task, tmp_path):
    return tiny_task.model_copy(
        update={"id": "broken", "repo": RepoSource(kind="tree", path=tmp_path / "away")},
    )


@pytest.mark.parametrize("tests_run", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_job_gives_what_run_group_and_grade_group_give(make, tiny_task, best_kind, request, tests_run):
    if not tests_run:
        request.getfixturevalue("judged_at_once")
    policy = Scripted(*MIXED, ["true", "echo 1 > new.txt"])
    settings = {"strength": 0.8, "base": "rloo"}
    jobs = [GroupJob(n, tiny_task, seed=n) for n in range(3)]  # members change places
    with make(policy, First(), groups=3, group_size=4, grading=settings) as pipeline:
        batches = {batch.attempt: batch for batch in pipeline.run(jobs)}
    assert len(batches) == 3
    for job in jobs:
        alone = run_group(tiny_task, policy, group_size=4, seed=job.seed, sandbox=best_kind)
        result = grade_group(alone, First(), task=tiny_task, seed=job.seed, **settings)
        assert result.graded
        batch = batches[job.number]
        assert seen(batch.result, batch.episodes) == seen(result, alone)
        assert batch.seed == job.seed
        assert batch.task is tiny_task


def test_a_group_has_the_id_that_its_job_names(make, tiny_task):
    with make(Scripted([]), group_size=1, verify=False) as pipeline:
        (batch,) = pipeline.run([GroupJob(3, tiny_task, seed=5, group_id="mine")])
    assert (batch.result.group_id, batch.attempt, batch.seed) == ("mine", 3, 5)
    assert batch.episodes[0].group_id == "mine"


def test_episodes_are_told_of_before_their_group(make, jobs):
    told = []
    with make(
        Scripted([]), verify=False, on_episode=lambda job, episode: told.append((job.number, episode.id))
    ) as pipeline:
        for batch in pipeline.run(jobs(3)):
            assert {(batch.attempt, episode.id) for episode in batch.episodes} <= set(told)
    assert len(told) == 9


@pytest.mark.usefixtures("judged_at_once")
def test_dist_3_a_grader_that_breaks_costs_its_own_group_the_ranking(make, jobs):
    def away(workspace):
        if workspace.seed == 3:
            raise OSError("the judge is away")

    with make(Scripted(*MIXED), First(away)) as pipeline:
        batches = {batch.attempt: batch.result for batch in pipeline.run(jobs(3))}
    assert "the judge is away" in batches[1].fallback
    assert batches[1].advantages == batches[1].advantages_before
    assert batches[0].graded
    assert batches[2].graded


def test_a_group_whose_base_tree_is_gone_keeps_its_plain_advantages(broken_task, caplog):
    records = [("passed", b"one"), ("passed", b"other"), ("failed", b"")]
    episodes = tuple(
        Episode(
            id=str(number),
            group_id="g",
            task_id=broken_task.id,
            status="submitted",
            patch=patch,
            report=TestReport(outcome=outcome),
        )
        for number, (outcome, patch) in enumerate(records)
    )
    job = GroupJob(4, broken_task, seed=9)
    batch = grade_job(job, episodes, First(), {"base": "dr_grpo"})
    assert batch.result.fallback.startswith("TaskError: ")
    assert batch.result.advantages == grade_job(job, episodes, None, {"base": "dr_grpo"}).result.advantages
    assert "keeps its plain advantages" in caplog.text


class Counting(Scripted):
    """Counts tokens in groups with an even seed."""

    def start(self, *, task, actions, seed):
        actor = super().start(task=task, actions=actions, seed=seed)
        actor.usage = None if seed // 3 % 2 else (9, 5)
        return actor


@pytest.mark.usefixtures("judged_at_once")
@pytest.mark.parametrize("ranks", [True, False])
def test_tokens_that_nobody_counted_cost_their_own_group_the_ranking(make, jobs, ranks):
    with make(Counting(*MIXED), First() if ranks else None, grading={"preserve": "token"}) as pipeline:
        batches = {batch.attempt: batch.result for batch in pipeline.run(jobs(3))}
    assert [batches[n].preserve for n in range(3)] == ["token", "episode", "token"]
    assert [batches[n].graded for n in range(3)] == [ranks, False, ranks]
    assert batches[1].kept
    assert batches[1].advantages == batches[1].advantages_before == pytest.approx(batches[0].advantages_before)
    assert ("needs `tokens`" in batches[1].fallback) == ranks
    assert not batches[0].fallback


@pytest.mark.usefixtures("judged_at_once")
def test_a_dropped_group_without_tokens_has_no_fallback(make, jobs):
    with make(Scripted([FIX]), First(), grading={"preserve": "token"}) as pipeline:
        (batch,) = pipeline.run(jobs(1))
    assert (batch.result.reason, batch.result.fallback) == ("all_passed", "")


def test_dist_2_a_fresh_pipeline_can_be_pickled(best_kind, jobs):
    made = Pipeline(Scripted([]), group_size=1, sandbox=best_kind, verify=False, deadline_s=60.0)
    with pickle.loads(pickle.dumps(made)) as pipeline:
        assert len(list(pipeline.run(jobs(2, size=1)))) == 2
    made.close()


def test_dist_3_a_task_that_is_broken_costs_its_own_jobs(make, jobs, broken_task):
    failed = []
    mixed = [GroupJob(7, broken_task, seed=0), *jobs(2), GroupJob(8, broken_task, seed=0)]
    with make(Scripted([]), verify=False, on_failed=failed.append) as pipeline:
        assert len(list(pipeline.run(mixed))) == 2
        assert list(pipeline.run(mixed[:1])) == []
    assert sorted(one.job.number for one in failed) == [7, 7, 8]
    assert all(isinstance(one.error, TaskError) for one in failed)


def test_without_a_listener_a_run_of_broken_tasks_raises(make, jobs, broken_task, caplog):
    with make(Scripted([]), verify=False) as pipeline:
        with pytest.raises(TaskError):
            list(pipeline.run([GroupJob(0, broken_task, seed=0)]))
        assert len(list(pipeline.run([GroupJob(0, broken_task, seed=0), *jobs(1)]))) == 1
    assert caplog.text.count("job 0: task broken cannot be run") == 2


def test_runs_follow_each_other_but_do_not_overlap(make, jobs):
    pipeline = make(Scripted([]), verify=False, group_size=1)
    assert list(pipeline.run([])) == []
    first = pipeline.run(jobs(3))
    next(first)
    with pytest.raises(GagarError, match="runs already"):
        next(pipeline.run(jobs(1)))
    first.close()
    assert len(list(pipeline.run(jobs(2)))) == 2
    pipeline.close()
    with pytest.raises(GagarError, match="is closed"):
        next(pipeline.run(jobs(1)))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"groups": 0}, "sizes must be 1 or more"),
        ({"gradings": 0}, "gradings of 1 or more"),
        ({"ahead": -1}, "ahead of 0 or more"),
        ({"verifications": 0}, "slots must be 1 or more"),
        ({"deadline_s": 0.0}, "deadline_s above 0"),
        ({"grading": {"strength": 2.0}}, "strength"),
        ({"turns": 0}, "turns"),
    ],
)
def test_bad_settings_are_found_at_once(make, settings, says):
    with pytest.raises(ValueError, match=says):
        make(Scripted([]), **settings)


def test_what_is_no_policy_is_refused(make):
    with pytest.raises(TypeError, match="NoneType"):
        make(None)


def test_jobs_with_negative_numbers_are_refused(tiny_task):
    with pytest.raises(ValueError, match="0 or more, got 0 and -1"):
        GroupJob(0, tiny_task, seed=-1)


@pytest.mark.slow
def test_a_model_far_away_is_asked_by_all_members_at_one_time(make, jobs, chat_server):
    meeting = threading.Barrier(16, timeout=60)
    latency = random.Random(0)

    def script(request, number):
        if number < 16:
            meeting.wait()  # the first turns of four groups
        if len(request["messages"]) > 2:
            return text("submit", usage=(40, 2))
        return {**text("```bash\nls\n```", usage=(20, 5)), "after_s": min(2.0, 0.01 * latency.paretovariate(1.1))}

    chat_server.script = script
    policy = ChatPolicy("scripted", base_url=chat_server.url, api_key="none")
    with make(policy, groups=4, group_size=4, verify=False, deadline_s=100) as pipeline:
        batches = list(pipeline.run(jobs(10, size=4)))
    assert len(batches) == 10
    assert {(e.status, len(e.turns)) for batch in batches for e in batch.episodes} == {("submitted", 2)}
    assert len(chat_server.requests) == 80
