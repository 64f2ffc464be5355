"""A learner's own records of a group -> a number for each: the core that every adapter shares."""

import asyncio
import threading
from types import SimpleNamespace

import pytest

from gagar_env.agents.graders import RuleGrader
from gagar_env.episode import Episode, EpisodeStatus, Outcome, TestReport, Turn
from gagar_env.integrations import verl
from gagar_env.integrations.groups import LOST, Attempt, GroupGrader, Meeting
from gagar_env.tasks.registry import load_task


def episode(record):
    """`p`: passed, `f`: failed, `e`: no result; further letters make the patch longer."""
    outcome = {"p": Outcome.PASSED, "f": Outcome.FAILED}.get(record[0])
    patch = b"".join(b"--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+%d\n" % n for n in range(len(record)))
    common = {"id": "of the learner", "group_id": "of the learner", "task_id": "ledger-rounding", "patch": patch}
    if outcome is None:
        return Episode(status=EpisodeStatus.ERROR, error="the machine broke", **common)
    turn = Turn(action="a", observation="b", completion_tokens=len(record))
    return Episode(status=EpisodeStatus.SUBMITTED, report=TestReport(outcome=outcome), turns=(turn,), **common)


def test_numbers_sum_to_zero_and_members_without_a_result_have_none():
    groups = GroupGrader(episode, base="dr_grpo")
    members = groups.grade(["p", "f", "e", "f", "p"], "g")
    assert [m.advantage for m in members] == [0.5, -0.5, None, -0.5, 0.5]
    assert [m.outcome for m in members] == [1.0, 0.0, None, 0.0, 1.0]
    assert [m.valid for m in members] == [True, True, False, True, True]
    assert members[2].error == "the machine broke"
    assert {(m.group_valid, m.group_passed) for m in members} == {(4, 2)}
    assert groups.metrics.as_dict()["invalid_episodes"] == 1


@pytest.mark.parametrize(("records", "reason"), [("pp", "all_passed"), ("ff", "all_failed"), ("pe", "too_few_valid")])
def test_a_group_without_a_signal_has_zeros(records, reason):
    groups = GroupGrader(episode)
    members = groups.grade(list(records), "g")
    assert [m.advantage for m in members] == [None if r == "e" else 0.0 for r in records]
    assert not any(m.kept for m in members)
    assert groups.metrics.dropped == {reason: 1}


def test_whatever_a_conversion_does_costs_one_member():
    def broken(record):
        if record == "raises":
            raise KeyError("patch")
        return None if record == "none" else episode(record)

    members = GroupGrader(broken, base="dr_grpo").grade(["p", "raises", "f", "none"], "g")
    assert [m.advantage for m in members] == [0.5, None, -0.5, None]
    assert members[1].error == "KeyError: 'patch'"
    assert members[3].error == "the learner has no result of it"


def test_a_group_of_which_nothing_can_be_read_is_dropped():
    members = GroupGrader(lambda record: None, RuleGrader()).grade([1, 2], "g")
    assert [m.advantage for m in members] == [None, None]


def test_ids_are_the_groups_own():
    seen = []
    groups = GroupGrader(episode, on_group=lambda result, episodes: seen.append((result, episodes)))
    groups.grade_all({"one": ["p", "f"], "two": ["f", "p"]})
    ((first, _), (second, episodes)) = sorted(seen, key=lambda pair: pair[0].group_id)
    assert (first.group_id, second.group_id) == ("one", "two")
    assert len(set(second.episode_ids)) == 2
    assert all(e.group_id == "two" for e in episodes)
    assert first.seed != second.seed


class Breaks:
    name = "breaks"

    def grade(self, workspace):
        raise RuntimeError("no model")


def test_a_grader_that_breaks_leaves_plain_advantages():
    assert [m.advantage for m in GroupGrader(episode, Breaks(), base="dr_grpo").grade(["p", "pp", "f", "f"], "g")] == [
        0.5,
        0.5,
        -0.5,
        -0.5,
    ]


def test_a_base_tree_that_cannot_be_made_leaves_plain_advantages(caplog):
    def of_nowhere(record):
        return episode(record).model_copy(update={"task_id": "no such task"})

    seen = []
    groups = GroupGrader(of_nowhere, RuleGrader(), base="dr_grpo", on_group=lambda r, e: seen.append(r.fallback))
    assert [m.advantage for m in groups.grade(["p", "pp", "f", "f"], "g")] == [0.5, 0.5, -0.5, -0.5]
    assert "no such task" in seen[0]
    assert "keeps its plain advantages" in caplog.text


def test_what_on_group_raises_costs_no_number(caplog):
    def full(result, episodes):
        raise OSError("disk full")

    members = GroupGrader(episode, base="dr_grpo", on_group=full).grade(["p", "f"], "g")
    assert [m.advantage for m in members] == [0.5, -0.5]
    assert "disk full" in caplog.text


def test_a_group_whose_grading_is_late_is_counted_once():
    asked, goes_on, seen, read = threading.Event(), threading.Event(), [], []

    class Late(Breaks):
        def grade(self, workspace):
            asked.set()
            goes_on.wait(30)
            return super().grade(workspace)

    def reads(record):
        read.append(record)
        return episode(record)

    groups = GroupGrader(reads, Late(), base="dr_grpo", on_group=lambda r, e: seen.append(r))
    grading = threading.Thread(target=groups.grade, args=(["p", "pp", "f", "f"], "g"))
    grading.start()
    assert asked.wait(30)
    assert [m.advantage for m in groups.plain(["p", "pp", "f", "f"], "g")] == [0.5, 0.5, -0.5, -0.5]
    goes_on.set()
    grading.join(30)
    assert (len(seen), groups.metrics.groups) == (1, 1)
    assert len(read) == 4  # nothing is verified twice
    assert (groups._at_work, groups._given_up) == ({}, set())


def test_faults_of_the_caller_are_said_at_once():
    with pytest.raises(ValueError, match="preserve='episode' only, not with 'token'"):
        GroupGrader(episode, preserve="token")
    GroupGrader(episode, preserve="token", zero_sum=False)
    with pytest.raises(ValueError, match="strength"):
        GroupGrader(episode, strength=1.5)
    with pytest.raises(ValueError, match="has no records"):
        GroupGrader(episode).grade([], "g")
    with pytest.raises(ValueError, match="workers must be 1 or more"):
        GroupGrader(episode, workers=0)


def test_outcome_alone_is_neither_compared_nor_counted():
    groups = GroupGrader(episode)
    assert [member.outcome for member in groups.outcomes("pfe")] == [1.0, 0.0, None]
    assert groups.metrics.groups == 0


def test_a_meeting_gives_one_that_is_alone_its_outcome_and_one_that_has_nothing_none():
    meeting = Meeting(GroupGrader(episode, base="dr_grpo"), deadline_s=60, grading_deadline_s=60)

    async def one(name, record):
        async def roll_out():
            if record == "raises":
                raise RuntimeError("no engine")
            return record

        return (await meeting.attend(name, roll_out, lambda found: found if found != "nothing" else None))[1]

    async def main():
        alone = [await one("alone", record) for record in "pfe"]
        records = ["p", "nothing", "f", "raises"]
        return alone, await asyncio.gather(*[one("together", r) for r in records], return_exceptions=True)

    alone, (first, nothing, third, error) = asyncio.run(main())
    assert [m.advantage for m in alone] == [1.0, 0.0, None]
    assert (first.advantage, nothing, third.advantage) == (0.5, LOST, -0.5)
    assert isinstance(error, RuntimeError)
    assert meeting.rendezvous.waiting == 0


def test_who_is_late_leaves_the_others_their_group():
    @verl.grouped(lambda rollout: episode(rollout.fields["record"]), base="dr_grpo", deadline_s=0.3)
    class Loop:
        async def run(self, sampling_params, *, record, **fields):
            await asyncio.sleep(0.6 if record == "late" else 0.0)
            return SimpleNamespace(reward_score=None, extra_fields={})

    async def main(*records):
        return await asyncio.gather(*[Loop().run({}, uid="u", record=r) for r in records], return_exceptions=True)

    first, late, third = asyncio.run(main("p", "late", "f"))
    assert (first.reward_score, late, third.reward_score) == (0.5, [], -0.5)  # an error would fail the whole prompt
    assert [str(e)[:41] for e in asyncio.run(main("late", "late"))] == ["no session of this prompt has a result; t"] * 2


@pytest.mark.slow
def test_attempts_are_verified_and_ranked_by_real_tests():
    task = load_task("ledger-rounding")
    longer = task.solution_patch + (
        b"diff --git a/NOTES b/NOTES\nnew file mode 100644\n--- /dev/null\n+++ b/NOTES\n@@ -0,0 +1 @@\n+left behind\n"
    )
    patches = [task.solution_patch, longer, b"", b"no patch at all", None]
    groups = GroupGrader(
        lambda patch: Attempt(task.id, patch or b"", error="" if patch is not None else "the engine died"),
        RuleGrader(),
        base="dr_grpo",
    )
    members = groups.grade(patches, "g")
    numbers = [m.advantage for m in members]
    assert [m.outcome for m in members] == [1.0, 1.0, 0.0, 0.0, None]
    assert numbers[0] > numbers[1] > 0
    assert sum(numbers[:4]) == pytest.approx(0, abs=1e-12)
    assert (numbers[4], members[4].error) == (None, "the engine died")
