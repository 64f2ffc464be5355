import pytest
from chat_server import replies, text
from judging import by_size

from gagar_env.agents.graders import AgenticGrader, FallbackGrader, ListwiseGrader, RuleGrader
from gagar_env.agents.graders.agentic.votes import replay
from gagar_env.agents.graders.fallback import fell_back
from gagar_env.grading import Usage, Verdict, VerdictOutcome
from gagar_env.group import grade_group
from gagar_env.totals import grading_totals


class Says:
    """A grader that ranks all as equal, or fails."""

    def __init__(self, name, outcome="tied", **more):
        self.name, self.outcome, self.more, self.asked = name, outcome, more, 0

    def grade(self, workspace):
        self.asked += 1
        tiers = (workspace.passing,) if self.outcome == "tied" else ()
        return Verdict(grader=self.name, outcome=self.outcome, tiers=tiers, usage=Usage(calls=1), **self.more)


class Raises:
    name = "raises"

    def grade(self, workspace):
        raise RuntimeError("no idea")


@pytest.fixture
def workspace(bench):
    with bench.workspace() as made:
        yield made


def test_the_first_that_ranks_is_used_and_no_later_one_is_asked(workspace):
    first, second = Says("first", confidence=0.3), Says("second")
    verdict = FallbackGrader(first, second).grade(workspace)
    assert verdict.grader == "fallback(first,second)"
    assert verdict.record["ranked_by"] == "first"
    assert verdict.record["earlier"] == []
    assert (verdict.confidence, verdict.usage.calls, second.asked) == (0.3, 1, 0)
    assert not fell_back(verdict)


def test_it_says_why_the_earlier_ones_failed_and_counts_what_they_cost(workspace):
    chain = FallbackGrader(Raises(), Says("bad", "failed", error="declined"), Says("none", "skipped"), Says("last"))
    verdict = chain.grade(workspace)
    assert verdict.record["ranked_by"] == "last"
    assert [v["grader"] for v in verdict.record["earlier"]] == ["raises", "bad", "none"]
    assert verdict.warnings == (
        "raises failed: RuntimeError: no idea",
        "bad failed: declined",
        "none failed: outcome skipped",
    )
    assert verdict.usage.calls == 3
    assert fell_back(verdict)
    Verdict.model_validate_json(verdict.model_dump_json())


def test_none_ranks(bench):
    chain = FallbackGrader(Says("bad", "failed", error="declined", failure="refused"), Raises())
    result = grade_group(bench.group(), chain, task=bench.task)
    assert result.advantages == result.advantages_before
    assert result.fallback == "bad failed: declined; raises failed: RuntimeError: no idea"
    assert (result.verdict.outcome, result.verdict.failure) == (VerdictOutcome.FAILED, "refused")
    assert result.verdict.usage.calls == 1
    assert not fell_back(result.verdict)


def test_rules_behind_a_model(bench, chat_server):
    chat_server.script = replies(text("no"))
    chain = FallbackGrader(ListwiseGrader("m", base_url=chat_server.url), RuleGrader())
    result = grade_group(bench.group(), chain, task=bench.task)
    assert result.graded
    assert result.verdict.record["ranked_by"] == "rule"
    assert result.verdict.usage.calls == 2
    plain = grade_group(bench.group(), RuleGrader(), task=bench.task)
    assert result.advantages == plain.advantages


def test_what_is_no_grader():
    with pytest.raises(TypeError, match="not its name"):
        FallbackGrader(RuleGrader(), "rule")


def test_the_record_of_the_one_that_ranked_is_found_in_that_of_the_chain(bench, chat_server):
    chat_server.script = lambda request, number: by_size(request)
    judge = AgenticGrader("scripted", base_url=chat_server.url, cache=False, sandbox="none")
    chain = FallbackGrader(FallbackGrader(judge, RuleGrader()), RuleGrader())
    result = grade_group(bench.group(), chain, task=bench.task)
    again = replay(result.verdict.record)
    assert (again.tiers, again.confidence) == (result.verdict.tiers, result.verdict.confidence)
    assert grading_totals([result]).length_tau < 0
