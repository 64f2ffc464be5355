"""What runs at the same time, and what does not: stages that wait for each other, and counts. No times."""

import threading

import pytest
from pipelines import FIX, LONG_S, MIXED, OTHER_FIX, Crowd, First, Scripted, meet, wait_for, wait_until

from gagar_env.agents.policies import BatchedPolicy
from gagar_env.envs.group_vector import GroupVectorEnv
from gagar_env.jobs import GroupJob
from gagar_env.verify import Verifier

pytestmark = pytest.mark.usefixtures("judged_at_once")


def test_the_next_group_acts_while_one_is_graded(make, jobs):
    acting = threading.Event()
    policy = Scripted(*([lambda seed: acting.set() if seed >= 3 else None, *script] for script in MIXED))
    seen = []

    def second_acts(workspace):
        wait_for(acting)  # with one place for groups: it must be free
        seen.append(workspace.seed)

    with make(policy, First(second_acts), groups=1) as pipeline:
        batches = list(pipeline.run(jobs(2)))
    assert sorted(seen) == [0, 3]
    assert all(batch.result.graded for batch in batches)


def test_a_group_is_verified_while_another_acts_and_a_third_is_graded(make, jobs, monkeypatch):
    quick, meeting = Verifier.verify, threading.Barrier(3, timeout=LONG_S)
    met = threading.local()

    def verify(self, task, patch, *rest, **more):
        if met.__dict__.pop("seed", None) == 3:
            meeting.wait()
        return quick(self, task, patch, *rest, **more)

    monkeypatch.setattr(Verifier, "verify", verify)

    def act(seed):
        met.seed = seed  # a member is verified in the thread it acts in
        if seed == 6:
            meeting.wait()

    policy = Scripted(*([act, *script] for script in MIXED))
    grader = First(lambda workspace: meeting.wait() if workspace.seed == 0 else None)
    with make(policy, grader, groups=2) as pipeline:
        assert len(list(pipeline.run(jobs(3)))) == 3
    assert not meeting.broken


def test_a_slow_grader_stops_new_groups(make, jobs):
    taken, ended, looked = [], [], threading.Event()

    def given():
        for job in jobs(6):
            taken.append(job.number)
            yield job

    def blocked(workspace):
        if workspace.seed == 0:
            wait_until(lambda: len(ended) == 6)  # the members of all that may act meanwhile
            assert len(taken) == 2
            looked.set()

    policy = Scripted(*MIXED)
    on_episode = lambda job, episode: ended.append(episode.id)  # noqa: E731
    with make(policy, First(blocked), groups=1, gradings=1, on_episode=on_episode) as pipeline:
        batches = list(pipeline.run(given()))
    assert looked.is_set()
    assert [batch.attempt for batch in batches] == list(range(6))
    assert not any(batch.result.fallback for batch in batches)


@pytest.mark.parametrize(
    ("groups", "ahead"),
    [(1, 1), pytest.param(1, 0, marks=pytest.mark.slow), pytest.param(2, 3, marks=pytest.mark.slow)],
)
def test_a_slow_caller_stops_new_groups(make, jobs, groups, ahead):
    taken, handed_out, graded = [], [], []

    def given():
        for job in jobs(8):
            taken.append(job)
            assert len(taken) - len(handed_out) <= groups + ahead
            yield job

    with make(Scripted(*MIXED), First(lambda w: graded.append(w)), groups=groups, ahead=ahead) as pipeline:
        for batch in pipeline.run(given()):
            handed_out.append(batch)
            if len(handed_out) == 1:
                wait_until(lambda: len(graded) == len(taken))  # all that was taken goes on without the caller
                assert len(taken) == groups + ahead
    assert len(handed_out) == 8


def test_jobs_may_follow_from_results(make, tiny_task):
    results = []

    def given():
        for number in range(4):
            assert len(results) == number
            yield GroupJob(number, tiny_task, seed=3 * number)

    with make(Scripted(*MIXED), groups=1, ahead=0) as pipeline:
        for batch in pipeline.run(given()):
            results.append(batch.result)
    assert len(results) == 4


def test_limits_hold(make, jobs, monkeypatch):
    quick, acting, verifying, grading = Verifier.verify, Crowd(), Crowd(), Crowd()
    begun = threading.Event()

    def verify(*arguments, **more):
        with verifying:
            begun.wait(0.02)
            return quick(*arguments, **more)

    def act(seed):
        with acting:
            begun.wait(0.02)

    def grade(workspace):
        with grading:
            begun.wait(0.02)

    monkeypatch.setattr(Verifier, "verify", verify)
    policy = Scripted(*([act, *script] for script in MIXED))
    with make(policy, First(grade), groups=3, verifications=2, gradings=1) as pipeline:
        assert len(list(pipeline.run(jobs(8)))) == 8
    assert 1 < acting.most <= 9
    assert verifying.most <= 2
    assert grading.most == 1


def test_sandboxes_can_be_fewer_than_members(make, jobs):
    acting, two = Crowd(), threading.Barrier(2, timeout=LONG_S)

    def act(seed):
        with acting:
            two.wait()  # of the twelve, there are always two

    policy = Scripted(*([act, *script] for script in MIXED))
    with make(policy, First(), groups=3, sandboxes=2) as pipeline:
        batches = list(pipeline.run(jobs(4)))
    assert acting.most == 2
    assert all(batch.result.graded for batch in batches)


@pytest.mark.slow
def test_who_waits_for_a_sandbox_is_no_straggler(make, jobs):
    straggles, hold = threading.Event(), threading.Event()

    def given():
        first, second = jobs(2, size=1)
        yield first
        wait_for(straggles)
        yield second

    def straggle(seed):
        straggles.set()
        hold.wait(LONG_S)

    policy = Scripted([straggle], [FIX])
    with make(policy, groups=2, group_size=1, sandboxes=1, deadline_s=5) as pipeline:
        statuses = [batch.episodes[0].status for batch in pipeline.run(given())]
    hold.set()
    assert statuses == ["cut", "submitted"]


def test_sandboxes_that_are_fewer_are_not_for_steps_in_lockstep(tiny_task, best_kind):
    env = GroupVectorEnv(tiny_task, group_size=3, sandbox=best_kind, sandboxes=2)
    with pytest.raises(ValueError, match="driven one by one"):
        env.reset()
    env.close()


@pytest.mark.slow
def test_who_waits_for_a_verification_lets_others_act_and_is_no_straggler(make, jobs, monkeypatch):
    quick, cut, one_verifies, hold = Verifier.verify, threading.Event(), threading.Event(), threading.Event()

    def verify(*arguments, **more):
        one_verifies.set()
        wait_for(cut)  # the first one that is verified keeps the only slot beyond the deadline
        return quick(*arguments, **more)

    def straggle(seed):
        wait_for(one_verifies)
        hold.wait(LONG_S)

    monkeypatch.setattr(Verifier, "verify", verify)
    on_episode = lambda job, episode: episode.status == "cut" and cut.set()  # noqa: E731
    policy = Scripted([FIX], [OTHER_FIX], [straggle])
    with make(policy, verifications=1, deadline_s=8, on_episode=on_episode) as pipeline:
        (batch,) = pipeline.run(jobs(1))
    hold.set()
    assert [episode.status for episode in batch.episodes] == ["submitted", "submitted", "cut"]
    assert batch.result.passed == (True, True, False)
    assert batch.result.valid == (True, True, False)


def test_groups_that_run_at_one_time_share_the_batches_of_a_local_policy(make, jobs):
    sizes = []

    def generate(chats):
        sizes.append(len(chats))
        return ["submit"] * len(chats)

    policy = BatchedPolicy(generate, max_batch=12, max_wait_s=LONG_S)
    with make(policy, groups=4) as pipeline:
        assert len(list(pipeline.run(jobs(4)))) == 4
    assert sizes == [12]


@pytest.mark.slow
def test_sixty_four_episodes_at_one_time(make, jobs):
    meeting = threading.Barrier(64, timeout=LONG_S)
    policy = Scripted(*([lambda seed: meet(meeting), *script] for script in (*MIXED, [])))
    with make(policy, First(), groups=8, group_size=8) as pipeline:
        batches = list(pipeline.run(jobs(16, size=8)))
    assert len(batches) == 16
    assert [e.error for batch in batches for e in batch.episodes if not e.valid] == []
    assert [batch.result.fallback for batch in batches if not batch.result.graded] == []
