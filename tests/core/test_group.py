import json
import math
import threading
import time

import pytest

from gagar_env.episode import Episode, TestReport, Turn
from gagar_env.errors import UnknownTaskError
from gagar_env.grading import Usage, Verdict, VerdictOutcome
from gagar_env.group import GroupResult, grade_group
from gagar_env.provision import provision_base
from gagar_env.tasks.task import RepoSource, Task, Tests

RANKED = VerdictOutcome.RANKED


@pytest.fixture
def task(tmp_path, monkeypatch):
    monkeypatch.setenv("GAGAR_CACHE", str(tmp_path / "cache"))
    tree = tmp_path / "repo"
    tree.mkdir()
    (tree / "a.py").write_text("a = 0\n")
    return Task(
        id="tiny-task",
        problem_statement="a must be 1.",
        repo=RepoSource(kind="tree", path=tree),
        tests=Tests(files=("t.py",), fail_to_pass=("t.py::t",)),
    )


def patch(number):
    head = "diff --git a/a.py b/a.py\nindex 1111111..2222222 100644\n--- a/a.py\n+++ b/a.py\n"
    return f"{head}@@ -1 +1 @@\n-a = 0\n+a = 1 + {number}\n".encode()


def episode(name, outcome="passed", *, group="g", task="tiny-task", text=None, turns=1, tokens=0):
    turn = Turn(action="x", observation="y", completion_tokens=tokens)
    known = {"id": name, "group_id": group, "task_id": task, "turns": (turn,) * turns}
    if outcome is None:
        return Episode(**known, status="error", error="no disk")
    report = TestReport(outcome=outcome)
    return Episode(**known, status="submitted", patch=patch(name) if text is None else text, report=report)


def group(outcomes="ppff", **more):
    full = {"p": "passed", "f": "failed", "e": "error", "x": None}
    return [episode(f"e{n}", full[letter], **more) for n, letter in enumerate(outcomes)]


class ByPatch:
    """Ranks by the text of the patches, best first, whatever the labels."""

    name = "by-patch"

    def __init__(self, confidence=1.0):
        self.confidence = confidence
        self.seen = []

    def grade(self, workspace):
        self.seen.append(workspace)
        order = sorted(workspace.passing, key=lambda label: workspace.candidates[label].patch)
        tiers = tuple((label,) for label in order)
        return Verdict(grader=self.name, outcome=RANKED, tiers=tiers, confidence=self.confidence)


class Answers:
    """Gives a fixed answer, or what a function makes of the passing labels."""

    name = "answers"

    def __init__(self, answer):
        self.answer = answer

    def grade(self, workspace):
        answer = self.answer(workspace.passing) if callable(self.answer) else self.answer
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, tuple):
            return Verdict(grader=self.name, outcome=RANKED, tiers=answer)
        return answer


def assert_plain(result, needle=""):
    """The group is whole, with its plain advantages, and says why."""
    plain = grade_group(group("ppff"), None)
    assert result.kept
    assert not result.graded
    assert needle in result.fallback
    assert result.fallback
    assert "\n" not in result.fallback
    assert result.advantages == result.advantages_before == plain.advantages
    assert result.weights == (1.0,) * 4
    assert result.ranks == (None,) * 4
    assert result.verdict.outcome is VerdictOutcome.FAILED
    assert result.verdict.error


def test_credit_moves_between_passing_members_and_the_sum_stays(task):
    result = grade_group(group("pfppf"), ByPatch(), task=task)
    assert result.graded
    assert result.fallback == ""
    assert result.reason == "kept"
    assert result.ranks == (0, None, 1, 2, None)
    assert result.advantages[0] > result.advantages[2] > result.advantages[3] > 0
    assert [result.advantages[i] for i in (1, 4)] == [result.advantages_before[i] for i in (1, 4)]
    assert math.isclose(result.sum_before, result.sum_after, abs_tol=1e-12)
    assert result.mask == (True,) * 5
    assert result.weights[1] == 1.0


def test_the_record_survives_json(task):
    result = grade_group(group("pfp"), ByPatch(), task=task)
    text = result.model_dump_json()
    assert GroupResult.model_validate_json(text) == result
    assert json.loads(text)["schema_version"] == 1
    with pytest.raises(ValueError, match="ranks"):
        GroupResult.model_validate({**json.loads(text), "ranks": [0]})


def test_the_same_seed_gives_the_same_result(task):
    one, two = (grade_group(group("pfpp"), ByPatch(), task=task, seed=5) for _ in range(2))
    assert one.model_copy(update={"seconds": 0.0}) == two.model_copy(update={"seconds": 0.0})


def test_confidence_tempers(task):
    sure = grade_group(group(), ByPatch(), task=task)
    unsure = grade_group(group(), ByPatch(0.5), task=task)
    none = grade_group(group(), ByPatch(0.0), task=task)
    assert sure.advantages[0] > unsure.advantages[0] > none.advantages[0] == none.advantages_before[0]


def test_a_tie_is_a_grading_that_changes_nothing(task):
    result = grade_group(group(), Answers(lambda passing: (passing,)), task=task)
    assert result.graded
    assert result.verdict.outcome is VerdictOutcome.TIED
    assert result.ranks == (0, 0, None, None)
    assert result.advantages == result.advantages_before


def test_no_grader_is_said_and_needs_no_task():
    result = grade_group(group(), None)
    assert result.kept
    assert not result.graded
    assert result.fallback == ""
    assert result.verdict is None
    assert result.ranks == (None,) * 4
    assert result.advantages == result.advantages_before


@pytest.mark.parametrize(
    ("outcomes", "reason"),
    [("ppp", "all_passed"), ("ff", "all_failed"), ("p", "too_few_valid"), ("pxe", "too_few_valid")],
)
def test_judge_11_a_dropped_group_is_not_graded_and_says_so(outcomes, reason):
    grader = ByPatch()
    result = grade_group(group(outcomes), grader)
    assert (result.kept, result.reason, result.graded, result.verdict) == (False, reason, False, None)
    assert grader.seen == []
    assert result.ranks == (None,) * len(outcomes)
    assert result.advantages == (0.0,) * len(outcomes)
    assert not any(result.mask)


def test_judge_11_one_passing_member_is_skipped_not_ranked(task):
    grader = ByPatch()
    result = grade_group(group("pff"), grader, task=task)
    assert result.kept
    assert not result.graded
    assert result.fallback == ""
    assert grader.seen == []
    assert result.verdict.outcome is VerdictOutcome.SKIPPED
    assert result.ranks == (None,) * 3
    assert result.advantages == result.advantages_before
    assert result.advantages[0] > 0


def test_math_1_a_group_of_one_after_filtering_has_no_advantage():
    for outcomes in ("p", "pxxx"):
        result = grade_group(group(outcomes), None)
        assert not result.kept
        assert result.advantages[0] == 0.0
        assert result.invalid_count == len(outcomes) - 1


def test_math_2_invalid_members_do_not_vote(task):
    mixed = grade_group(group("pxpfe"), ByPatch(), task=task)
    clean = grade_group([e for e in group("pxpfe") if e.valid], ByPatch(), task=task)
    assert [mixed.advantages[i] for i in (0, 2, 3)] == list(clean.advantages)
    assert mixed.advantages[1] == mixed.advantages[4] == 0.0
    assert mixed.mask == (True, False, True, True, False)
    assert mixed.invalid_count == 2
    assert mixed.labels[1] is None
    assert mixed.sum_before == clean.sum_before


@pytest.mark.parametrize(
    "answer",
    [lambda p: ((p[0],),), lambda p: (), lambda p: ((p[0],), ())],
    ids=["one of two", "none", "an empty tier"],
)
def test_judge_2_missing_labels_are_no_verdict(task, answer):
    assert_plain(grade_group(group(), Answers(answer), task=task), "no partition")


@pytest.mark.parametrize(
    "answer",
    [
        lambda p: ((p[0],), (p[0],), (p[1],)),
        lambda p: ((p[0],), (p[1],), ("Z",)),
        lambda p: ((p[0].lower(),), (p[1],)),
        lambda p: ((p[0], p[0]), (p[1],)),
        lambda p: ((0,), (1,)),
    ],
    ids=["twice", "unknown", "other case", "twice in a tier", "numbers"],
)
def test_judge_3_wrong_labels_are_no_verdict(task, answer):
    assert_plain(grade_group(group(), Answers(answer), task=task))


def test_judge_3_failing_members_cannot_be_ranked(task):
    class All(ByPatch):
        def grade(self, workspace):
            return Verdict(grader="all", outcome=RANKED, tiers=(tuple(workspace.candidates),))

    assert_plain(grade_group(group(), All(), task=task), "unknown")


@pytest.mark.parametrize(
    "answer",
    [
        RuntimeError("boom\nsecond line"),
        None,
        {"tiers": [["A"]]},
        Verdict(grader="x", outcome=VerdictOutcome.FAILED, error="the model refused"),
    ],
)
def test_a_grader_that_has_no_verdict_costs_only_the_ranking(task, answer):
    assert_plain(grade_group(group(), Answers(answer), task=task))


@pytest.mark.parametrize(
    "more",
    [
        {"evidence": {"A": {"lines": object()}}},
        {"reasons": {"A": "a lone surrogate \udc80"}},
        {"usage": Usage(cost_usd=math.nan)},
    ],
    ids=["an object", "no text", "no number"],
)
def test_a_verdict_that_cannot_be_recorded_costs_only_the_ranking(task, more):
    def answer(passing):
        return Verdict(grader="x", outcome=RANKED, tiers=tuple((label,) for label in passing), **more)

    result = grade_group(group(), Answers(answer), task=task)
    assert_plain(result, "cannot be recorded as JSON")
    assert GroupResult.model_validate_json(result.model_dump_json()) == result


def test_a_fault_that_is_no_text_can_be_recorded(task):
    result = grade_group(group(), Answers(OSError("no file caf\udce9")), task=task)
    assert_plain(result, "no file caf\\udce9")
    assert GroupResult.model_validate_json(result.model_dump_json()) == result


def test_the_base_tree_is_the_one_that_the_episodes_had(task):
    provision_base(task)
    (task.repo.path / "a.py").write_text("a = 'changed while it ran'\n")

    class Reads(ByPatch):
        def grade(self, workspace):
            assert all(workspace.candidates[label].changes for label in workspace.passing)
            return super().grade(workspace)

    assert grade_group(group(), Reads(), task=task).graded


def test_a_verdict_that_skips_two_passing_members_is_a_fallback(task):
    verdict = Verdict(grader="x", outcome=VerdictOutcome.SKIPPED)
    result = grade_group(group(), Answers(verdict), task=task)
    assert result.fallback
    assert not result.graded
    assert result.advantages == result.advantages_before


def test_a_late_verdict_is_thrown_away(task):
    go_on, ended = threading.Event(), threading.Event()

    class Slow(ByPatch):
        def grade(self, workspace):
            go_on.wait(30)
            try:
                return super().grade(workspace)
            finally:
                ended.set()

    result = grade_group(group(), Slow(), task=task, deadline_s=0.05)
    assert_plain(result, "no verdict in 0.05 seconds")
    go_on.set()
    assert ended.wait(30)
    assert not result.graded


@pytest.mark.parametrize("deadline_s", [60, 1e12, math.inf])
def test_a_verdict_in_time_counts(task, deadline_s):
    class Slow(ByPatch):
        def grade(self, workspace):
            time.sleep(0.2)
            return super().grade(workspace)

    assert grade_group(group(), Slow(), task=task, deadline_s=deadline_s).ranks == (0, 1, None, None)


@pytest.mark.parametrize("deadline_s", [None, 60])
def test_an_interrupt_passes_through(task, deadline_s):
    with pytest.raises(KeyboardInterrupt):
        grade_group(group(), Answers(KeyboardInterrupt()), task=task, deadline_s=deadline_s)


def test_a_passing_patch_that_does_not_apply_costs_only_the_ranking(task):
    class Reads(ByPatch):
        def grade(self, workspace):
            assert all(workspace.candidates[label].changes for label in workspace.passing)
            return super().grade(workspace)

    members = [*group("pff"), episode("odd", text=patch(3).replace(b"-a = 0", b"-b = 0"))]
    result = grade_group(members, Reads(), task=task)
    assert "PatchError" in result.fallback
    assert result.advantages == result.advantages_before


def test_equal_patches_are_one_candidate(task):
    twin = patch("e0").replace(b"1111111..2222222", b"3333333..4444444")
    members = [*group("ppf"), episode("twin", text=twin, turns=3)]
    grader = ByPatch()
    result = grade_group(members, grader, task=task)
    assert len(grader.seen[0].passing) == 2
    assert "twin" not in grader.seen[0].episode_ids.values()
    assert result.ranks == (0, 1, None, 0)
    assert result.labels[0] == result.labels[3]
    assert result.advantages[0] == result.advantages[3] > result.advantages[1]
    assert math.isclose(result.sum_before, result.sum_after, abs_tol=1e-12)


def test_all_passing_patches_equal_is_nothing_to_rank(task):
    members = [episode(f"e{n}", text=patch(1)) for n in range(3)] + [episode("f", "failed")]
    result = grade_group(members, ByPatch(), task=task)
    assert result.verdict.outcome is VerdictOutcome.SKIPPED
    assert result.advantages == result.advantages_before


def test_tokens_are_preserved_when_asked(task):
    members = [episode(f"e{n}", tokens=10 * (n + 1)) for n in range(3)] + [episode("f", "failed")]
    result = grade_group(members, ByPatch(), task=task, preserve="token")
    assert result.tokens == (10.0, 20.0, 30.0, 0.0)
    assert math.isclose(result.sum_before, result.sum_after, rel_tol=1e-12)
    with pytest.raises(ValueError, match="preserve='token' needs `tokens`: episode 'e0' has no completion tokens"):
        grade_group(group(), None, preserve="token")
    with pytest.raises(ValueError, match="tokens"):
        grade_group(group(), None, preserve="token", tokens=[0, 1, 1, 1])


def test_the_workspace_is_kept_where_asked(task, tmp_path):
    for _ in range(2):
        members = group(group="../odd id/\udc80")
        grade_group(members, ByPatch(), task=task, workspace_root=tmp_path / "ws")
    folders = sorted(p.name for p in (tmp_path / "ws").iterdir())
    assert len(folders) == 2
    assert all(name.startswith("group-") for name in folders)


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], "at least one"),
        ([episode("a"), episode("b", group="h")], "group_id"),
        ([episode("a"), episode("b", task="other")], "task_id"),
        ([episode("a"), episode("a")], "twice"),
        ([episode("a", task="other"), episode("b", task="other")], "not of 'tiny-task'"),
    ],
)
def test_what_is_no_group_is_refused(task, members, message):
    with pytest.raises(ValueError, match=message) as caught:
        grade_group(members, None, task=task)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", [{"strength": 1.0}, {"scheme": "x"}, {"base": "x"}, {"preserve": "x"}])
def test_settings_out_of_range_are_refused_before_grading(task, wrong):
    grader = ByPatch()
    with pytest.raises(ValueError):  # noqa: PT011
        grade_group(group(), grader, task=task, **wrong)
    assert grader.seen == []


def test_an_unknown_task_is_the_callers_fault():
    with pytest.raises(UnknownTaskError):
        grade_group(group(task="no-such-task"), ByPatch())


@pytest.mark.parametrize("wrong", [[3], "ab"])
def test_what_are_no_episodes_is_refused(wrong):
    with pytest.raises(TypeError, match="Episode records"):
        grade_group(wrong, None)


def test_marks_of_turns_share_out_an_advantage_and_keep_its_sum(task):
    class Marks(ByPatch):
        def grade(self, workspace):
            by_id = {name: label for label, name in workspace.episode_ids.items()}
            marks = {by_id["e0"]: {1: "useful", 3: "harmful"}, by_id["e2"]: {2: "harmful"}}
            return Verdict.model_validate({**super().grade(workspace).model_dump(), "turn_marks": marks})

    members = [*group("ppff", turns=4), episode("e9", text=patch("e0"), turns=5)]  # e9 repeats the work of e0
    plain, marked = grade_group(members, ByPatch(), task=task), grade_group(members, Marks(), task=task)
    assert marked.advantages == plain.advantages
    assert plain.turn_advantages is None
    assert [each is None for each in marked.turn_advantages] == [False, True, False, True, True]
    for number in (0, 2):
        assert math.fsum(marked.turn_advantages[number]) == pytest.approx(4 * marked.advantages[number])
    won, lost = marked.turn_advantages[0], marked.turn_advantages[2]
    assert won[0] > won[1] == won[3] > won[2] > 0
    assert 0 > lost[0] == lost[2] == lost[3] > lost[1]
    assert GroupResult.model_validate_json(marked.model_dump_json()) == marked
    flat = grade_group(members, Marks(), task=task, turn_strength=0)
    assert flat.turn_advantages[0] == (flat.advantages[0],) * 4


def test_marks_of_turns_that_there_are_not_cost_the_ranking(task):
    def answer(passing):
        tiers = tuple((label,) for label in passing)
        return Verdict(grader="g", outcome=RANKED, tiers=tiers, turn_marks={passing[0]: {2: "useful"}})

    class Wrong(Answers):
        def grade(self, workspace):
            return answer(workspace.passing)

    result = grade_group(group("ppf"), Wrong(None), task=task)
    assert not result.graded
    assert "marks what there is not: turn 2 of" in result.fallback
    assert result.advantages == result.advantages_before
    with pytest.raises(ValueError, match="strength must be in"):
        grade_group(group("ppf"), ByPatch(), task=task, turn_strength=1.0)


class MarksFirst(ByPatch):
    """Of each candidate, the first turn is useful."""

    def grade(self, workspace):
        marks = {label: {1: "useful"} for label in workspace.candidates}
        return Verdict.model_validate({**super().grade(workspace).model_dump(), "turn_marks": marks})


def test_marks_count_when_only_the_tokens_of_whole_episodes_are_known(task):
    members = group("ppff", turns=4)
    result = grade_group(members, MarksFirst(), task=task, preserve="token", tokens=[40, 80, 40, 40])
    first, *rest = result.turn_advantages[0]
    assert first > rest[0] == rest[-1] > 0
    assert math.fsum(10 * each for each in (first, *rest)) == pytest.approx(40 * result.advantages[0])


def test_the_sum_that_marks_keep_is_that_of_the_tokens_given(task):
    members = []
    for each in group("ppff", turns=2):
        turns = [turn.model_copy(update={"completion_tokens": 10 * (n + 1)}) for n, turn in enumerate(each.turns)]
        members.append(each.model_copy(update={"turns": tuple(turns)}))
    given = [60, 90, 60, 60]  # twice and three times what the turns say: other tokens are trained, too
    result = grade_group(members, MarksFirst(), task=task, preserve="token", tokens=given)
    for shared, whole, n in zip(result.turn_advantages, result.advantages, given, strict=True):
        parts = (n / 3, 2 * n / 3)
        assert math.fsum(a * b for a, b in zip(shared, parts, strict=True)) == pytest.approx(n * whole)
